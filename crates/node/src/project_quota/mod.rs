//! What directories hold, read from the kernel instead of walking over them.
//!
//! File systems with project quotas (ext4 with the features `project` and `quota`, XFS mounted with
//! `pquota`) count blocks and inodes by project. A directory that is made for a pod gets a project
//! of its own while it is empty; all that is made in it later belongs to it too, and asking what it
//! holds costs microseconds, however many files there are. Nothing is limited, only counted.
//!
//! The directory is the record: its project is read from it, so that nothing is to be found again
//! after a restart, and a project is free when its directory is gone.
//!
//! Reading order: [`ProjectQuotas`], `reserved` (ids that must not be used), `kernel`.

mod kernel;
mod reserved;

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use plimsoll_core::config::NodeConfig;
use rustix::fs::{Dir, Mode, OFlags, open};
use rustix::io::Errno;

use reserved::reserved_ids;

/// Upstream's gate: in beta, and off unless set.
const GATE: &str = "LocalStorageCapacityIsolationFSQuotaMonitoring";
/// Upstream's first id.
const FIRST: u32 = 1_048_577;
/// So many are enough for every directory of a node.
const LAST: u32 = FIRST + (1 << 20);
/// How many ids are tried for one directory.
const TRIES: usize = 10_000;

/// A project of a directory that the agent made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProjectId(u32);

/// What a directory holds, itself included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Allocated, also to files that were removed and are still open.
    pub bytes: u64,
    /// Files and directories.
    pub inodes: u64,
}

/// Why a directory gets no project.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel says no.
    #[error("cannot {what} of {path}")]
    Kernel {
        /// What was tried.
        what: &'static str,
        /// On which directory.
        path: String,
        /// The answer.
        #[source]
        source: Errno,
    },
    /// Too many ids are in use.
    #[error("found no free project id for {path} among {TRIES}")]
    NoneFree {
        /// For which directory.
        path: String,
    },
}

/// Whether projects are used, and which was given last.
#[derive(Clone, Debug, Default)]
pub struct ProjectQuotas(Option<Arc<Mutex<u32>>>);

impl ProjectQuotas {
    /// As configured: used where a file system has them, if the gate is on.
    pub fn configured(config: &NodeConfig) -> ProjectQuotas {
        match config.is_beta_gate_on(GATE) {
            true => ProjectQuotas::wherever_possible(),
            false => ProjectQuotas::default(),
        }
    }

    /// Used where a file system has them.
    pub fn wherever_possible() -> ProjectQuotas {
        ProjectQuotas(Some(Arc::new(Mutex::new(FIRST))))
    }

    /// Gives a directory a project of its own, if it is empty and its file system counts projects;
    /// one that has a project keeps it. Returns whether the kernel reports its usage.
    pub fn assign(&self, path: &Path) -> Result<bool, Error> {
        let Some(last) = &self.0 else {
            return Ok(false);
        };
        let failed = |what| {
            move |source| Error::Kernel {
                what,
                path: path.display().to_string(),
                source,
            }
        };
        let directory = open_directory(path).map_err(failed("open the directory"))?;
        if kernel::usage(&directory, 0).is_err() {
            return Ok(false);
        }
        if kernel::has_project(&directory).map_err(failed("read the project"))? {
            return Ok(self.project_of(path).is_some());
        }
        if !is_empty(&directory).map_err(failed("list the files"))? {
            return Ok(false);
        }
        let reserved = reserved_ids();
        let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
        for id in (*last..=LAST).chain(FIRST..*last).take(TRIES) {
            let is_taken = take(&directory, id, &reserved);
            if is_taken.map_err(failed("set the project"))? {
                *last = id;
                return Ok(true);
            }
        }
        let path = path.display().to_string();
        Err(Error::NoneFree { path })
    }

    /// The project that a directory was given. One that it has in common with the directory around
    /// it was not given by the agent.
    pub fn project_of(&self, path: &Path) -> Option<ProjectId> {
        self.0.as_ref()?;
        let of = |path: &Path| kernel::project_of(open_directory(path).ok()?).ok();
        let project = of(path).filter(|project| (FIRST..=LAST).contains(project))?;
        let around = path.parent().and_then(of);
        (around != Some(project)).then_some(ProjectId(project))
    }

    /// What a directory holds; `None` if the kernel does not say, or it has another project by now.
    pub fn held(&self, path: &Path, project: ProjectId) -> Option<Held> {
        self.0.as_ref()?;
        let directory = open_directory(path).ok()?;
        if kernel::project_of(&directory) != Ok(project.0) {
            return None;
        }
        let found = kernel::usage(&directory, project.0).ok()?;
        Some(Held {
            bytes: found.bytes,
            inodes: found.inodes,
        })
    }
}

/// Puts an empty directory into a project that no other directory has.
fn take(directory: &OwnedFd, id: u32, reserved: &BTreeSet<u32>) -> Result<bool, Errno> {
    if reserved.contains(&id) || !kernel::usage(directory, id)?.is_free() {
        return Ok(false);
    }
    kernel::set_project(directory, id)?;
    // Another process may have taken it in the same moment.
    let is_alone = kernel::usage(directory, id)?.inodes == 1;
    if !is_alone {
        kernel::set_project(directory, 0)?;
    }
    Ok(is_alone)
}

fn open_directory(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    open(path, flags, Mode::empty())
}

fn is_empty(directory: &OwnedFd) -> Result<bool, Errno> {
    for entry in Dir::read_from(directory)? {
        if !matches!(entry?.file_name().to_bytes(), b"." | b"..") {
            return Ok(false);
        }
    }
    Ok(true)
}
