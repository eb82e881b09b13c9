//! Sums of stats. A value that is absent everywhere stays absent.

use plimsoll_core::eviction::summary::{ContainerStats, CpuStats, FsStats, MemoryStats, SwapStats};

/// Adds a part to a file system, and takes the later of their times.
pub(super) fn add_usage(total: &mut FsStats, part: &FsStats) {
    total.used_bytes = sum(total.used_bytes, part.used_bytes);
    total.inodes_used = sum(total.inodes_used, part.inodes_used);
    total.time = total.time.max(part.time);
}

pub(super) fn sum(first: Option<u64>, second: Option<u64>) -> Option<u64> {
    match (first, second) {
        (Some(first), Some(second)) => Some(first.saturating_add(second)),
        (first, second) => first.or(second),
    }
}

/// For a pod whose cgroup cannot be read: what its containers use.
pub(super) fn sum_cpu(containers: &[ContainerStats]) -> Option<CpuStats> {
    let parts = containers.iter().filter_map(|found| found.cpu.as_ref());
    parts.fold(None, |total: Option<CpuStats>, part| {
        let total = total.unwrap_or_default();
        Some(CpuStats {
            time: total.time.max(part.time),
            usage_nano_cores: sum(total.usage_nano_cores, part.usage_nano_cores),
            usage_core_nano_seconds: sum(
                total.usage_core_nano_seconds,
                part.usage_core_nano_seconds,
            ),
            psi: None,
        })
    })
}

pub(super) fn sum_memory(containers: &[ContainerStats]) -> Option<MemoryStats> {
    let parts = containers.iter().filter_map(|found| found.memory.as_ref());
    parts.fold(None, |total: Option<MemoryStats>, part| {
        let total = total.unwrap_or_default();
        Some(MemoryStats {
            time: total.time.max(part.time),
            available_bytes: sum(total.available_bytes, part.available_bytes),
            usage_bytes: sum(total.usage_bytes, part.usage_bytes),
            working_set_bytes: sum(total.working_set_bytes, part.working_set_bytes),
            rss_bytes: sum(total.rss_bytes, part.rss_bytes),
            page_faults: sum(total.page_faults, part.page_faults),
            major_page_faults: sum(total.major_page_faults, part.major_page_faults),
            ..MemoryStats::default()
        })
    })
}

pub(super) fn sum_swap(containers: &[ContainerStats]) -> Option<SwapStats> {
    let parts = containers.iter().filter_map(|found| found.swap.as_ref());
    parts.fold(None, |total: Option<SwapStats>, part| {
        let total = total.unwrap_or_default();
        Some(SwapStats {
            time: total.time.max(part.time),
            swap_available_bytes: sum(total.swap_available_bytes, part.swap_available_bytes),
            swap_usage_bytes: sum(total.swap_usage_bytes, part.swap_usage_bytes),
        })
    })
}
