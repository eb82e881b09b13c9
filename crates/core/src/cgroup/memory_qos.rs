//! Protecting requested memory from reclaim.

use crate::object::pod::QosClass;
use crate::resources::Bytes;

/// The MemoryQoS feature, off by default and for cgroup v2 only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemoryQos {
    /// The gate is off.
    #[default]
    Off,
    /// The gate is on with policy `None`: memory is throttled near its limit, nothing is protected.
    NoReservation,
    /// The gate is on with policy `TieredReservation`: requests are protected as well.
    TieredReservation,
}

pub(super) const MEMORY_MIN: &str = "memory.min";
pub(super) const MEMORY_LOW: &str = "memory.low";
pub(super) const MEMORY_HIGH: &str = "memory.high";

/// The file entry that protects a request of a pod of the class: firmly for Guaranteed pods,
/// gently for others.
pub(super) fn protection(class: QosClass, request: Bytes) -> (String, String) {
    let file = match class {
        QosClass::Guaranteed => MEMORY_MIN,
        QosClass::Burstable | QosClass::BestEffort => MEMORY_LOW,
    };
    (file.to_owned(), request.0.to_string())
}
