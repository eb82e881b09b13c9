//! The signals that are measured on a node, and the starved resource of each.

use std::fmt;

use crate::object::node::NodeCondition;

/// A measurement that can trigger evictions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Signal {
    /// Memory of the node that no working set holds.
    MemoryAvailable,
    /// Memory below the limit of all pods together that no pod's working set holds.
    AllocatableMemoryAvailable,
    /// Free bytes where volumes and logs are.
    NodeFsAvailable,
    /// Free inodes where volumes and logs are.
    NodeFsInodesFree,
    /// Free bytes where image layers are.
    ImageFsAvailable,
    /// Free inodes where image layers are.
    ImageFsInodesFree,
    /// Free bytes where writable layers are.
    ContainerFsAvailable,
    /// Free inodes where writable layers are.
    ContainerFsInodesFree,
    /// Process ids left.
    PidAvailable,
}

impl Signal {
    /// All signals.
    pub const ALL: [Signal; 9] = [
        Signal::MemoryAvailable,
        Signal::AllocatableMemoryAvailable,
        Signal::NodeFsAvailable,
        Signal::NodeFsInodesFree,
        Signal::ImageFsAvailable,
        Signal::ImageFsInodesFree,
        Signal::ContainerFsAvailable,
        Signal::ContainerFsInodesFree,
        Signal::PidAvailable,
    ];

    /// The name in configuration, events and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Signal::MemoryAvailable => "memory.available",
            Signal::AllocatableMemoryAvailable => "allocatableMemory.available",
            Signal::NodeFsAvailable => "nodefs.available",
            Signal::NodeFsInodesFree => "nodefs.inodesFree",
            Signal::ImageFsAvailable => "imagefs.available",
            Signal::ImageFsInodesFree => "imagefs.inodesFree",
            Signal::ContainerFsAvailable => "containerfs.available",
            Signal::ContainerFsInodesFree => "containerfs.inodesFree",
            Signal::PidAvailable => "pid.available",
        }
    }

    /// The signal of that name.
    pub fn from_name(name: &str) -> Option<Signal> {
        Signal::ALL.into_iter().find(|s| s.as_str() == name)
    }

    /// The resource that is starved when the signal is low.
    pub fn resource(self) -> StarvedResource {
        match self {
            Signal::MemoryAvailable | Signal::AllocatableMemoryAvailable => StarvedResource::Memory,
            Signal::NodeFsAvailable | Signal::ImageFsAvailable | Signal::ContainerFsAvailable => {
                StarvedResource::EphemeralStorage
            }
            Signal::NodeFsInodesFree
            | Signal::ImageFsInodesFree
            | Signal::ContainerFsInodesFree => StarvedResource::Inodes,
            Signal::PidAvailable => StarvedResource::Pids,
        }
    }

    /// The condition that the node reports when the signal is low.
    pub fn node_condition(self) -> NodeCondition {
        match self.resource() {
            StarvedResource::Memory => NodeCondition::MemoryPressure,
            StarvedResource::EphemeralStorage | StarvedResource::Inodes => {
                NodeCondition::DiskPressure
            }
            StarvedResource::Pids => NodeCondition::PidPressure,
        }
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A resource that a node can run short of. Wider than resource names: inodes and pids cannot be
/// requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StarvedResource {
    /// Memory.
    Memory,
    /// Local disk.
    EphemeralStorage,
    /// Inodes of a local disk.
    Inodes,
    /// Process ids.
    Pids,
}

impl StarvedResource {
    /// The name in messages and event annotations.
    pub fn as_str(self) -> &'static str {
        match self {
            StarvedResource::Memory => "memory",
            StarvedResource::EphemeralStorage => "ephemeral-storage",
            StarvedResource::Inodes => "inodes",
            StarvedResource::Pids => "pids",
        }
    }
}

impl fmt::Display for StarvedResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
