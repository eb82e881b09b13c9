//! The record of a shortfall, and of the consumers that hold the memory instead of pods.

use serde::{Deserialize, Serialize};

use crate::object::timestamp::Timestamp;
use crate::resources::Bytes;
use crate::threshold::Duration;

use super::super::shortfall::{Held, Shortfall};
use super::super::summary::time;

/// The record of a [`Shortfall`]. Amounts are bytes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShortfallRecord {
    /// What is short.
    pub signal: String,
    /// Where the threshold is on the node.
    pub threshold: i64,
    /// What was left.
    pub available: i64,
    /// How many pods might be evicted.
    pub pods: usize,
    /// What they held together.
    pub evictable: i64,
    /// What pods held that may not be evicted.
    pub exempt: i64,
    /// How long the back-off is, in nanoseconds.
    pub back_off_nanos: i64,
    /// When it ends.
    #[serde(with = "time")]
    pub until: Option<Timestamp>,
    /// Whether it begins with this decision.
    pub is_new: bool,
}

impl ShortfallRecord {
    pub(super) fn of(shortfall: &Shortfall) -> ShortfallRecord {
        ShortfallRecord {
            signal: shortfall.signal.to_string(),
            threshold: shortfall.threshold.0,
            available: shortfall.available.0,
            pods: shortfall.pods,
            evictable: shortfall.evictable.0,
            exempt: shortfall.exempt.0,
            back_off_nanos: shortfall.back_off.as_nanos(),
            until: Some(shortfall.until),
            is_new: shortfall.is_new,
        }
    }

    /// How long the back-off is.
    pub fn back_off(&self) -> Duration {
        Duration::from_nanos(self.back_off_nanos)
    }
}

/// What holds memory of a node beside its pods.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Consumer {
    /// `kubelet` for the agent, the path of a cgroup, `kernel` for what the kernel holds outside of
    /// these cgroups, `unaccounted` for the rest.
    pub name: String,
    /// Its working set in bytes.
    pub working_set: i64,
    /// How much of that is the kernel's: inodes and directory entries in its caches, for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<i64>,
}

/// What pods held that a record has left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OmittedMemory {
    pods: usize,
    evictable: i64,
    exempt: i64,
}

impl OmittedMemory {
    pub(super) fn of(held: Held) -> OmittedMemory {
        OmittedMemory {
            pods: held.pods,
            evictable: held.evictable.0,
            exempt: held.exempt.0,
        }
    }

    pub(super) fn to_held(self) -> Held {
        Held {
            pods: self.pods,
            evictable: Bytes(self.evictable),
            exempt: Bytes(self.exempt),
        }
    }
}
