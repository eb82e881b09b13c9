//! Where `memory.available` comes from.
//!
//! Upstream takes capacity minus working set, which calls active page cache used and swap absent.
//! The other sources are opt-in. Node pressure by stalls ([`StallRule`]) is opt-in as well; there
//! is no such rule for CPU, because a pod throttled by its own limit stalls too.

use crate::resources::Bytes;
use crate::threshold::Duration;

use super::observation::{MemoryObservation, Observation};

/// How the two memory signals are derived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemorySource {
    /// Capacity minus working set, as upstream.
    #[default]
    WorkingSet,
    /// What the kernel could hand out without swapping. For the node that is `MemAvailable`; for
    /// the pods together the active page cache is added to what upstream calls available.
    KernelAvailable,
    /// Free swap counts as available.
    SwapAware,
}

impl MemorySource {
    /// Every source.
    pub const ALL: [MemorySource; 3] = [
        MemorySource::WorkingSet,
        MemorySource::KernelAvailable,
        MemorySource::SwapAware,
    ];

    /// Its name in configuration and records.
    pub fn as_str(self) -> &'static str {
        match self {
            MemorySource::WorkingSet => "workingSet",
            MemorySource::KernelAvailable => "memAvailable",
            MemorySource::SwapAware => "swapAware",
        }
    }

    /// The source of that name.
    pub fn from_name(name: &str) -> Option<MemorySource> {
        MemorySource::ALL.into_iter().find(|s| s.as_str() == name)
    }

    /// What is left on the node by this source, `None` where that was not measured.
    pub fn node_memory_available(
        self,
        memory: &MemoryObservation,
        swap: Option<Bytes>,
    ) -> Option<Bytes> {
        match self {
            MemorySource::WorkingSet => Some(memory.available),
            MemorySource::KernelAvailable => memory.kernel_available,
            MemorySource::SwapAware => swap.map(|swap| memory.available + swap),
        }
    }

    /// What is left to the pods together by this source, `None` where that was not measured.
    pub fn pods_memory_available(
        self,
        memory: &MemoryObservation,
        swap: Option<Bytes>,
    ) -> Option<Bytes> {
        match self {
            MemorySource::WorkingSet => Some(memory.available),
            MemorySource::KernelAvailable => memory.active_file.map(|file| memory.available + file),
            MemorySource::SwapAware => swap.map(|swap| memory.available + swap),
        }
    }
}

/// Evict when everything stands still for want of memory, whatever the signals say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StallRule {
    /// Percent of the last ten seconds (`full avg10`) from which the node counts as starved.
    pub full_avg10: f64,
    /// How long that must hold before a pod is evicted.
    pub grace_period: Duration,
}

impl Observation {
    /// `memory.available` by every source that was measured, for comparison.
    pub fn memory_available_by_source(&self) -> Vec<(MemorySource, Bytes)> {
        let Some(memory) = &self.memory else {
            return Vec::new();
        };
        let by = |source: MemorySource| {
            let available = source.node_memory_available(memory, self.swap_available)?;
            Some((source, available))
        };
        MemorySource::ALL.into_iter().filter_map(by).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threshold::Signal;

    const MIB: i64 = 1 << 20;

    /// A pod re-reads a file of 1450 MiB on a node of 1979 MiB: nearly all of the working set is
    /// page cache.
    fn page_cache() -> Observation {
        let memory = MemoryObservation {
            available: Bytes(140 * MIB),
            working_set: Bytes(1839 * MIB),
            kernel_available: Some(Bytes(1421 * MIB)),
            active_file: Some(Bytes(1400 * MIB)),
            time: None,
        };
        Observation {
            memory: Some(memory),
            pods_memory: Some(memory),
            swap_available: Some(Bytes(64 * MIB)),
            ..Observation::default()
        }
    }

    #[test]
    fn active_page_cache_is_used_memory_upstream_and_free_memory_to_the_kernel() {
        let available = |source, signal| {
            let reading = page_cache().readings(source).get(signal);
            reading.unwrap().available / MIB
        };
        let node = Signal::MemoryAvailable;
        assert_eq!(available(MemorySource::WorkingSet, node), 140);
        assert_eq!(available(MemorySource::KernelAvailable, node), 1421);
        assert_eq!(available(MemorySource::SwapAware, node), 204);
        let pods = Signal::AllocatableMemoryAvailable;
        assert_eq!(available(MemorySource::KernelAvailable, pods), 1540);
    }

    #[test]
    fn a_source_that_was_not_measured_falls_back_to_the_working_set() {
        let mut observation = page_cache();
        observation.memory.as_mut().unwrap().kernel_available = None;
        observation.swap_available = None;
        for source in MemorySource::ALL {
            let reading = observation.readings(source).get(Signal::MemoryAvailable);
            assert_eq!(reading.unwrap().available, 140 * MIB, "{source:?}");
        }
        let known = observation.memory_available_by_source();
        assert_eq!(known, [(MemorySource::WorkingSet, Bytes(140 * MIB))]);
    }

    #[test]
    fn percentages_refer_to_the_same_capacity_for_all_sources() {
        for source in MemorySource::ALL {
            let reading = page_cache().readings(source).get(Signal::MemoryAvailable);
            assert_eq!(reading.unwrap().capacity, 1979 * MIB);
        }
    }
}
