//! One look at the node, and the signals it gives.

use crate::object::timestamp::Timestamp;
use crate::quantity::{Format, Quantity};
use crate::resources::{Bytes, Count};
use crate::threshold::{Signal, StarvedResource};

use super::signal_source::MemorySource;

/// What was measured on the node at one moment. What is absent was not measured, and thresholds
/// on it are then neither met nor resolved.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observation {
    /// The node's memory.
    pub memory: Option<MemoryObservation>,
    /// The memory of all pods together, below the limit they share.
    pub pods_memory: Option<MemoryObservation>,
    /// Where volumes and logs are.
    pub node_fs: Option<FsObservation>,
    /// Where image layers are.
    pub image_fs: Option<FsObservation>,
    /// Where writable layers are.
    pub container_fs: Option<FsObservation>,
    /// Process ids.
    pub pids: Option<PidObservation>,
    /// How long everything stood still for want of memory (PSI).
    pub memory_stall: Option<MemoryStall>,
    /// Free swap.
    pub swap_available: Option<Bytes>,
    /// Whether the kernel's OOM killer has killed in a pod since the last observation.
    pub is_oom_killed: bool,
}

/// Memory of the node or of a cgroup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryObservation {
    /// Total, or limit, minus working set. Below zero when the working set is above the limit.
    pub available: Bytes,
    /// Usage without inactive page cache.
    pub working_set: Bytes,
    /// What the kernel says it could hand out without swapping: `MemAvailable`. Node only.
    pub kernel_available: Option<Bytes>,
    /// Page cache that counts as working set though it can be dropped.
    pub active_file: Option<Bytes>,
    /// When it was measured; `None` for unknown.
    pub time: Option<Timestamp>,
}

/// A file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FsObservation {
    /// Free bytes and size.
    pub bytes: Option<Room<Bytes>>,
    /// Free and all inodes.
    pub inodes: Option<Room<Count>>,
    /// When it was measured; `None` for unknown.
    pub time: Option<Timestamp>,
}

/// How much there is and how much of it is free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Room<T> {
    /// Free.
    pub available: T,
    /// In all.
    pub capacity: T,
}

/// Process ids.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PidObservation {
    /// The most there may be.
    pub max: Count,
    /// How many are taken.
    pub running: Count,
    /// When it was measured; `None` for unknown.
    pub time: Option<Timestamp>,
}

/// Memory pressure stall information of the node, its `full` line.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MemoryStall {
    /// Percent of the last ten seconds in which no task could continue.
    pub full_avg10: f64,
    /// When it was measured; `None` if together with the memory.
    pub time: Option<Timestamp>,
}

/// One signal at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// What is left, in the unit of the signal.
    pub available: i64,
    /// What percentages refer to.
    pub capacity: i64,
    /// When it was measured; `None` for unknown.
    pub time: Option<Timestamp>,
}

/// The signals of one observation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Readings([Option<Reading>; Signal::ALL.len()]);

impl Readings {
    /// The reading of a signal, if it was observed.
    pub fn get(&self, signal: Signal) -> Option<Reading> {
        self.0[signal as usize]
    }

    fn set(&mut self, signal: Signal, reading: Reading) {
        self.0[signal as usize] = Some(reading);
    }
}

impl Reading {
    /// What is left, as messages print it.
    pub fn available_quantity(&self, signal: Signal) -> Quantity {
        Quantity::new(self.available, format_of(signal))
    }

    /// What percentages refer to, as a quantity.
    pub fn capacity_quantity(&self, signal: Signal) -> Quantity {
        Quantity::new(self.capacity, format_of(signal))
    }
}

/// How amounts of a signal are printed.
pub(super) fn format_of(signal: Signal) -> Format {
    match signal.resource() {
        StarvedResource::Memory | StarvedResource::EphemeralStorage => Format::BinarySi,
        StarvedResource::Inodes | StarvedResource::Pids => Format::DecimalSi,
    }
}

impl Observation {
    /// When stalls were measured.
    pub fn stall_time(&self) -> Option<Timestamp> {
        let with_memory = || self.memory.and_then(|memory| memory.time);
        self.memory_stall?.time.or_else(with_memory)
    }

    /// The signals. Matches v1.36 `makeSignalObservations` of pkg/kubelet/eviction/helpers.go for
    /// [`MemorySource::WorkingSet`].
    pub fn readings(&self, source: MemorySource) -> Readings {
        let mut readings = Readings::default();
        if let Some(memory) = &self.memory {
            let available = source.node_memory_available(memory, self.swap_available);
            readings.set(
                Signal::MemoryAvailable,
                memory_reading(memory, available.unwrap_or(memory.available)),
            );
        }
        if let Some(memory) = &self.pods_memory {
            let available = source.pods_memory_available(memory, self.swap_available);
            readings.set(
                Signal::AllocatableMemoryAvailable,
                memory_reading(memory, available.unwrap_or(memory.available)),
            );
        }
        let disks = [
            (
                &self.node_fs,
                Signal::NodeFsAvailable,
                Signal::NodeFsInodesFree,
            ),
            (
                &self.image_fs,
                Signal::ImageFsAvailable,
                Signal::ImageFsInodesFree,
            ),
            (
                &self.container_fs,
                Signal::ContainerFsAvailable,
                Signal::ContainerFsInodesFree,
            ),
        ];
        for (fs, available, inodes_free) in disks {
            let Some(fs) = fs else { continue };
            if let Some(bytes) = fs.bytes {
                readings.set(
                    available,
                    fs_reading(bytes.available.0, bytes.capacity.0, fs),
                );
            }
            if let Some(inodes) = fs.inodes {
                readings.set(
                    inodes_free,
                    fs_reading(inodes.available.0, inodes.capacity.0, fs),
                );
            }
        }
        if let Some(pids) = &self.pids {
            let reading = Reading {
                available: pids.max.0.wrapping_sub(pids.running.0),
                capacity: pids.max.0,
                time: pids.time,
            };
            readings.set(Signal::PidAvailable, reading);
        }
        readings
    }
}

/// The capacity stays that of upstream whatever the source, so that percentages mean the same.
fn memory_reading(memory: &MemoryObservation, available: Bytes) -> Reading {
    Reading {
        available: available.0,
        capacity: memory.available.0.wrapping_add(memory.working_set.0),
        time: memory.time,
    }
}

fn fs_reading(available: i64, capacity: i64, fs: &FsObservation) -> Reading {
    Reading {
        available,
        capacity,
        time: fs.time,
    }
}
