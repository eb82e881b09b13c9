//! Errors of cgroup operations.

use std::io;
use std::path::PathBuf;

use plimsoll_core::cgroup::{CgroupPath, InvalidComponent};

/// A failed cgroup operation.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A directory could not be made.
    #[error("failed to create cgroup {cgroup} at {}", directory.display())]
    Create {
        /// Which cgroup.
        cgroup: CgroupPath,
        /// Where.
        directory: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A file could not be read.
    #[error("failed to read {file} of cgroup {cgroup}")]
    Read {
        /// Of which cgroup.
        cgroup: CgroupPath,
        /// Which file.
        file: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A file does not hold what the kernel documents.
    #[error("{file} of cgroup {cgroup} holds {text:?}")]
    Unreadable {
        /// Of which cgroup.
        cgroup: CgroupPath,
        /// Which file.
        file: String,
        /// What it holds.
        text: String,
    },
    /// A file could not be written.
    #[error("failed to write {value:?} to {file} of cgroup {cgroup}")]
    Write {
        /// Of which cgroup.
        cgroup: CgroupPath,
        /// Which file.
        file: String,
        /// What was to be in it.
        value: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// More memory is in use than would be allowed. It may work later.
    #[error("unable to set memory limit to {limit} (current usage: {usage}, peak usage: {peak})")]
    MemoryInUse {
        /// Which cgroup.
        cgroup: CgroupPath,
        /// What was to be allowed.
        limit: String,
        /// What is in use.
        usage: u64,
        /// The most that was.
        peak: u64,
    },
    /// No tree has the controller of the file.
    #[error("failed to write {value:?} to {file} of cgroup {cgroup}: no {controller} controller")]
    NoController {
        /// Of which cgroup.
        cgroup: CgroupPath,
        /// Which file.
        file: String,
        /// What was to be in it.
        value: String,
        /// What is missing.
        controller: String,
    },
    /// Directories could not be listed.
    #[error("failed to read the cgroup directory {}", directory.display())]
    List {
        /// Which.
        directory: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A process could not be killed.
    #[error("failed to kill process {pid} of cgroup {cgroup}")]
    Kill {
        /// Which cgroup.
        cgroup: CgroupPath,
        /// Which process.
        pid: i32,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Processes outlive SIGKILL, probably in the kernel.
    #[error("failed to kill all the processes attached to cgroup {cgroup}: {pids:?} are left")]
    Populated {
        /// Which cgroup.
        cgroup: CgroupPath,
        /// Which processes.
        pids: Vec<i32>,
    },
    /// A directory could not be removed.
    #[error("failed to delete cgroup {cgroup} at {}", directory.display())]
    Remove {
        /// Which cgroup.
        cgroup: CgroupPath,
        /// Where.
        directory: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The uid of a pod is not a valid cgroup name.
    #[error(transparent)]
    Name(#[from] InvalidComponent),
}
