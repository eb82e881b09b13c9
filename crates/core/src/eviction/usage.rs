//! What one pod uses, as far as eviction reads it.

use crate::resources::{Bytes, Count};

/// What one pod uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodUsage {
    /// Memory of the pod's cgroup; `None` if it was not measured.
    pub memory: Option<MemoryUsage>,
    /// Writable layers, logs and local volumes together.
    pub ephemeral_storage: Option<Bytes>,
    /// Number of processes.
    pub processes: Option<Count>,
    /// Per container, in the order of the measurement.
    pub containers: Vec<ContainerUsage>,
    /// Per volume, in the order of the measurement.
    pub volumes: Vec<VolumeUsage>,
}

/// A measurement of memory that may lack its main number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUsage {
    /// Usage without the page cache that the kernel drops first.
    pub working_set: Option<Bytes>,
}

/// What one container uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainerUsage {
    /// Its name in the pod.
    pub name: String,
    /// Its working set.
    pub memory: Option<Bytes>,
    /// Its writable layer.
    pub root_fs: FsUsage,
    /// Its logs.
    pub logs: FsUsage,
}

/// What one volume holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VolumeUsage {
    /// Its name in the pod.
    pub name: String,
    /// What it holds.
    pub fs: FsUsage,
}

/// Part of a file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FsUsage {
    /// Bytes, if measured.
    pub used: Option<Bytes>,
    /// Inodes, if measured.
    pub inodes: Option<Count>,
}

impl PodUsage {
    /// The working set, zero where it was not measured.
    pub fn working_set(&self) -> Bytes {
        let working_set = self.memory.and_then(|memory| memory.working_set);
        working_set.unwrap_or_default()
    }
}
