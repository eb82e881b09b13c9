//! The facts of a machine that the rules use.

use crate::resources::{Bytes, Count};
use crate::threshold::{Signal, StarvedResource};

/// Capacities of a machine, as far as they are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MachineFacts {
    /// All memory.
    pub memory: Option<Bytes>,
    /// All swap; zero is a machine without.
    pub swap: Option<Bytes>,
    /// Size of the file system of the node's root directory.
    pub root_fs: Option<Bytes>,
    /// Inodes of it.
    pub root_fs_inodes: Option<Count>,
    /// Number of process ids.
    pub max_pid: Option<Count>,
    /// Memory that the daemons outside pods use, if it was measured.
    pub daemons: Option<Bytes>,
}

impl MachineFacts {
    /// The greatest possible value of a signal. Images are taken to be on the root file system, the
    /// layout of a machine without separate partitions.
    pub fn capacity_of(&self, signal: Signal) -> Option<i64> {
        match signal.resource() {
            StarvedResource::Memory => self.memory.map(|bytes| bytes.0),
            StarvedResource::EphemeralStorage => self.root_fs.map(|bytes| bytes.0),
            StarvedResource::Inodes => self.root_fs_inodes.map(|count| count.0),
            StarvedResource::Pids => self.max_pid.map(|count| count.0),
        }
    }
}
