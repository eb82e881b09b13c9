//! Requests of the agent to its helper processes, and their replies.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::users::Users;

/// One task for a helper process. The first file of the message is the control socket, over which
/// [`Reply`] and [`Resize`] go as lines of JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Job {
    /// Hold the namespaces of a sandbox.
    Pause(PauseJob),
    /// Run a container and watch over it.
    Monitor(MonitorJob),
    /// Run a command in a container.
    Exec(ExecJob),
}

/// A sandbox to hold.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct PauseJob {
    /// The directory of the sandbox.
    pub(super) dir: PathBuf,
    /// Which namespaces are its own; others stay the machine's.
    pub(super) network: bool,
    pub(super) ipc: bool,
    pub(super) uts: bool,
    pub(super) pid: bool,
    /// Users of its own, in a namespace that all others then belong to.
    pub(super) users: Option<Users>,
    /// Set in a UTS namespace of its own.
    pub(super) hostname: String,
    /// Kernel parameters of its namespaces.
    pub(super) sysctls: BTreeMap<String, String>,
}

/// A container to run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct MonitorJob {
    pub(super) id: String,
    /// The directory of the container.
    pub(super) dir: PathBuf,
    /// The path of its cgroup.
    pub(super) cgroup: String,
    pub(super) log_path: Option<PathBuf>,
    pub(super) terminal: bool,
    /// Whether standard input is kept open for clients that attach.
    pub(super) stdin: bool,
    /// Whether it is closed when the first of them leaves.
    pub(super) stdin_once: bool,
    /// Whether the end of the first process ends all others by itself.
    pub(super) has_pid_namespace: bool,
    /// Mounts whose propagation is narrower than that of the container's root.
    pub(super) narrowed: Vec<Narrowed>,
    /// Mounts that are made read-only with all below them.
    pub(super) read_only: Vec<PathBuf>,
}

/// A mount in a container, and how it is joined to the machine's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Narrowed {
    pub(super) path: PathBuf,
    /// Whether mounts of the machine still come in.
    pub(super) follows: bool,
}

/// A command to run in a container. The files after the control socket are the streams, in order.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ExecJob {
    pub(super) id: String,
    /// The directory of the container.
    pub(super) dir: PathBuf,
    /// The path of its cgroup.
    pub(super) cgroup: String,
    pub(super) command: Vec<String>,
    pub(super) terminal: bool,
}

/// What a helper process answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Reply {
    /// The process runs.
    Started {
        /// Its number on the machine.
        pid: i32,
    },
    /// It could not be started.
    Failed {
        /// Why.
        message: String,
    },
    /// A command has ended.
    Exited {
        /// Its exit code; 128 and the signal's number if one ended it.
        code: i32,
    },
}

/// A terminal's new size.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Resize {
    pub(super) width: u16,
    pub(super) height: u16,
}
