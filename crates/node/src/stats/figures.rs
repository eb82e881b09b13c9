//! Samples as the summary has them.

use plimsoll_core::eviction::summary::{CpuStats, IoStats, MemoryStats, SwapStats};
use plimsoll_core::object::timestamp::Timestamp;

use super::cgroup_reader::{CgroupSample, MemorySample};

/// A limit above is none: the kernel rounds its largest value.
const LARGEST_LIMIT: u64 = 1 << 62;

impl CgroupSample {
    pub(super) fn cpu_stats(&self) -> Option<CpuStats> {
        let nanos = self.cpu_nanos?;
        Some(CpuStats {
            time: Some(self.time),
            usage_nano_cores: Some(self.nano_cores),
            usage_core_nano_seconds: Some(nanos),
            psi: self.pressure.cpu.clone(),
        })
    }

    pub(super) fn memory_stats(&self) -> Option<MemoryStats> {
        let memory = self.memory?;
        Some(MemoryStats {
            psi: self.pressure.memory.clone(),
            ..memory.stats(self.time)
        })
    }

    pub(super) fn swap_stats(&self) -> Option<SwapStats> {
        let memory = self.memory?;
        let is_limited = memory.swap_limit <= LARGEST_LIMIT;
        let available = memory.swap_limit.wrapping_sub(memory.swap);
        Some(SwapStats {
            time: Some(self.time),
            swap_available_bytes: is_limited.then_some(available),
            swap_usage_bytes: Some(memory.swap),
        })
    }

    pub(super) fn io_stats(&self) -> Option<IoStats> {
        let psi = self.pressure.io.clone()?;
        Some(IoStats {
            time: Some(self.time),
            psi: Some(psi),
        })
    }
}

impl MemorySample {
    fn stats(&self, time: Timestamp) -> MemoryStats {
        // Wraps below zero, as upstream's: readers take it for a signed number.
        let available = self.limit.wrapping_sub(self.working_set);
        MemoryStats {
            time: Some(time),
            available_bytes: self.limit_if_any().map(|_| available),
            usage_bytes: Some(self.usage),
            working_set_bytes: Some(self.working_set),
            rss_bytes: Some(self.rss),
            page_faults: Some(self.page_faults),
            major_page_faults: Some(self.major_page_faults),
            active_file_bytes: Some(self.active_file),
            ..MemoryStats::default()
        }
    }

    /// The limit, if there is one.
    pub(super) fn limit_if_any(&self) -> Option<u64> {
        Some(self.limit).filter(|limit| *limit <= LARGEST_LIMIT)
    }
}
