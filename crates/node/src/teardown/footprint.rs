//! What an agent uses of the machine, noted in its data directory before it uses it.
//!
//! The command line and the configuration decide it, and both may be gone or changed when the agent
//! is removed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use plimsoll_core::cgroup::Driver;
use serde::{Deserialize, Serialize};

/// Where it is noted.
const NOTE: &str = "agent.json";
/// How many are kept: an agent that was started with another bridge or cgroup each time.
const MOST: usize = 32;

/// What an agent uses of the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Footprint {
    /// The container runtime.
    pub runtime: Runtime,
    /// Whether systemd's names are used for cgroups.
    pub uses_systemd_cgroups: bool,
    /// The cgroup below which all pods are.
    pub cgroup_root: String,
    /// The cgroup that the configuration gives the agent; empty if none.
    pub agent_cgroup: String,
    /// Pods and volumes.
    pub root: PathBuf,
    /// Logs of pods.
    pub pod_logs: PathBuf,
    /// Links to the logs of containers.
    pub container_logs: PathBuf,
}

/// The container runtime of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Runtime {
    /// The agent's own.
    Embedded {
        /// The bridge that joins pods.
        bridge: String,
        /// Addresses of pods.
        pod_cidr: String,
        /// Where network plugins are configured.
        cni_conf_dir: PathBuf,
        /// Where network plugins are.
        cni_bin_dir: PathBuf,
    },
    /// One behind a socket.
    Cri {
        /// Its address.
        endpoint: String,
    },
}

impl Footprint {
    /// How cgroups are named.
    pub fn cgroup_driver(&self) -> Driver {
        match self.uses_systemd_cgroups {
            true => Driver::Systemd,
            false => Driver::Cgroupfs,
        }
    }

    /// The bridge that joins pods, with the embedded runtime.
    pub fn bridge(&self) -> Option<&str> {
        match &self.runtime {
            Runtime::Embedded { bridge, .. } => Some(bridge),
            Runtime::Cri { .. } => None,
        }
    }

    /// Adds it to those noted in a data directory, as the latest.
    pub fn note(&self, data_dir: &Path) -> io::Result<()> {
        // A note that is damaged is of no more use.
        let mut all = read(data_dir).unwrap_or_default();
        all.retain(|one| one != self);
        all.push(self.clone());
        let excess = all.len().saturating_sub(MOST);
        all.drain(..excess);
        let next = data_dir.join("agent.json.next");
        fs::write(&next, serde_json::to_vec_pretty(&all)?)?;
        fs::rename(next, note_file(data_dir))
    }
}

/// The file in which they are noted.
pub(super) fn note_file(data_dir: &Path) -> PathBuf {
    data_dir.join(NOTE)
}

/// What agents of a data directory have used, the latest last.
pub fn read(data_dir: &Path) -> io::Result<Vec<Footprint>> {
    match fs::read(note_file(data_dir)) {
        Ok(bytes) => Ok(serde_json::from_slice(&bytes)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::teardown::testing::footprint;

    #[test]
    fn keeps_each_footprint_once_and_latest_last() {
        let dir = tempfile::tempdir().unwrap();
        assert!(read(dir.path()).unwrap().is_empty());
        for bridge in ["a", "b", "a"] {
            footprint(dir.path(), bridge).note(dir.path()).unwrap();
        }
        let all = read(dir.path()).unwrap();
        let bridges: Vec<_> = all.iter().filter_map(Footprint::bridge).collect();
        assert_eq!(bridges, ["b", "a"]);
    }
}
