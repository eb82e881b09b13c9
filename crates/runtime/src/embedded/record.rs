//! Records on disk beside CRI's configurations.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::process_id::ProcessId;

/// A sandbox that became ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SandboxRecord {
    /// Nanoseconds since 1970, as all times here.
    pub(super) created_at: i64,
    pub(super) pause: ProcessId,
    /// The cgroup of its own process.
    pub(super) cgroup: String,
    /// Its addresses; none with the machine's network.
    pub(super) ips: Vec<IpAddr>,
    /// Whether it was stopped: its network is given back and its process gone.
    pub(super) is_stopped: bool,
}

/// A container that was created.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ContainerRecord {
    pub(super) sandbox: String,
    pub(super) created_at: i64,
    pub(super) image_id: String,
    pub(super) image_ref: String,
    pub(super) rootfs: PathBuf,
    /// Roots of images that are mounted as volumes.
    pub(super) image_volumes: Vec<String>,
    /// `None` if no log is kept.
    pub(super) log_path: Option<PathBuf>,
    /// The number of the stop signal.
    pub(super) stop_signal: i32,
    pub(super) cgroup: String,
    pub(super) has_pid_namespace: bool,
}

/// A container whose first process runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StartedRecord {
    pub(super) process: ProcessId,
    pub(super) started_at: i64,
}

/// The exit code and reason of containers that could not be started, as containerd has them.
pub(super) const START_ERROR_CODE: i32 = 128;
pub(super) const START_ERROR: &str = "StartError";

/// How a container ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ExitRecord {
    pub(super) code: i32,
    pub(super) finished_at: i64,
    /// Empty for the usual ones, `Completed` and `Error`.
    pub(super) reason: String,
    pub(super) message: String,
}

/// The time now, as CRI counts it.
pub(super) fn now_nanos() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
    })
}
