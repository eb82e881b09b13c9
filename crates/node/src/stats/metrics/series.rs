//! The series of `/metrics/cadvisor`, in the order of their names.
//!
//! Names, helps and conditions match cAdvisor's metrics/prometheus.go as v1.36 carries it.

use plimsoll_core::eviction::summary::{PsiData, PsiStats};

use super::super::cgroup_reader::MemorySample;
use super::super::network::{Direction, Interface};
use super::cadvisor::{Disk, Entry};
use super::details::DeviceIo;
use super::exposition::{Family, Kind, float, seconds, unix_seconds};

/// One name and where its samples come from.
pub(super) struct Series {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) help: &'static str,
    pub(super) add: fn(&Entry<'_>, &mut Family<'_>),
}

macro_rules! series {
    ($($kind:ident $name:literal $help:literal $add:expr;)+) => {
        pub(super) const SERIES: &[Series] = &[
            $(Series {
                name: $name,
                kind: Kind::$kind,
                help: $help,
                add: $add,
            },)+
        ];
    };
}

series! {
    Counter "container_cpu_cfs_burst_periods_total" "Number of periods when burst occurs."
        |e, f| throttled(e, f, float(e.details.throttling.burst_periods));
    Counter "container_cpu_cfs_burst_seconds_total" "Total time duration the container has been bursted."
        |e, f| throttled(e, f, seconds(e.details.throttling.burst_nanos));
    Counter "container_cpu_cfs_periods_total" "Number of elapsed enforcement period intervals."
        |e, f| throttled(e, f, float(e.details.throttling.periods));
    Counter "container_cpu_cfs_throttled_periods_total" "Number of throttled period intervals."
        |e, f| throttled(e, f, float(e.details.throttling.throttled_periods));
    Counter "container_cpu_cfs_throttled_seconds_total" "Total time duration the container has been throttled."
        |e, f| throttled(e, f, seconds(e.details.throttling.throttled_nanos));
    Counter "container_cpu_system_seconds_total" "Cumulative system cpu time consumed in seconds."
        |e, f| measured(e, f, seconds(e.details.system_nanos));
    Counter "container_cpu_usage_seconds_total" "Cumulative cpu time consumed in seconds."
        cpu_usage;
    Counter "container_cpu_user_seconds_total" "Cumulative user cpu time consumed in seconds."
        |e, f| measured(e, f, seconds(e.details.user_nanos));
    Gauge "container_fs_inodes_free" "Number of available Inodes"
        |e, f| disks(e, f, |disk| disk.inodes_free);
    Gauge "container_fs_inodes_total" "Number of Inodes"
        |e, f| disks(e, f, |disk| disk.inodes);
    Gauge "container_fs_limit_bytes" "Number of bytes that can be consumed by the container on this filesystem."
        |e, f| disks(e, f, |disk| Some(disk.capacity));
    Counter "container_fs_reads_bytes_total" "Cumulative count of bytes read"
        |e, f| devices(e, f, |io| io.read_bytes);
    Counter "container_fs_reads_total" "Cumulative count of reads completed"
        |e, f| devices(e, f, |io| io.reads);
    Gauge "container_fs_usage_bytes" "Number of bytes that are consumed by the container on this filesystem."
        |e, f| disks(e, f, |disk| disk.used);
    Counter "container_fs_writes_bytes_total" "Cumulative count of bytes written"
        |e, f| devices(e, f, |io| io.written_bytes);
    Counter "container_fs_writes_total" "Cumulative count of writes completed"
        |e, f| devices(e, f, |io| io.writes);
    Gauge "container_last_seen" "Last time a container was seen by the exporter"
        |e, f| f.add(e.labels.as_str(), unix_seconds(e.now).floor(), Some(e.now));
    Gauge "container_memory_cache" "Number of bytes of page cache memory."
        |e, f| memory(e, f, |memory| memory.cache);
    Counter "container_memory_failcnt" "Number of memory usage hits limits"
        |e, f| memory_details(e, f, |details| details.failures);
    Counter "container_memory_failures_total" "Cumulative count of memory allocation failures."
        memory_failures;
    Gauge "container_memory_mapped_file" "Size of memory mapped files in bytes."
        |e, f| memory(e, f, |memory| memory.mapped_file);
    Gauge "container_memory_max_usage_bytes" "Maximum memory usage recorded in bytes"
        |e, f| memory_details(e, f, |details| details.peak);
    Gauge "container_memory_rss" "Size of RSS in bytes."
        |e, f| memory(e, f, |memory| memory.rss);
    Gauge "container_memory_swap" "Container swap usage in bytes."
        |e, f| memory(e, f, |memory| memory.swap);
    Gauge "container_memory_total_active_file_bytes" "Current total active file in bytes."
        |e, f| memory(e, f, |memory| memory.active_file);
    Gauge "container_memory_total_inactive_file_bytes" "Current total inactive file in bytes."
        |e, f| memory(e, f, |memory| memory.inactive_file);
    Gauge "container_memory_usage_bytes" "Current memory usage in bytes, including all memory regardless of when it was accessed"
        |e, f| memory(e, f, |memory| memory.usage);
    Gauge "container_memory_working_set_bytes" "Current working set in bytes."
        |e, f| memory(e, f, |memory| memory.working_set);
    Counter "container_network_receive_bytes_total" "Cumulative count of bytes received"
        |e, f| network(e, f, received, |way| way.bytes);
    Counter "container_network_receive_errors_total" "Cumulative count of errors encountered while receiving"
        |e, f| network(e, f, received, |way| way.errors);
    Counter "container_network_receive_packets_dropped_total" "Cumulative count of packets dropped while receiving"
        |e, f| network(e, f, received, |way| way.dropped);
    Counter "container_network_receive_packets_total" "Cumulative count of packets received"
        |e, f| network(e, f, received, |way| way.packets);
    Counter "container_network_transmit_bytes_total" "Cumulative count of bytes transmitted"
        |e, f| network(e, f, sent, |way| way.bytes);
    Counter "container_network_transmit_errors_total" "Cumulative count of errors encountered while transmitting"
        |e, f| network(e, f, sent, |way| way.errors);
    Counter "container_network_transmit_packets_dropped_total" "Cumulative count of packets dropped while transmitting"
        |e, f| network(e, f, sent, |way| way.dropped);
    Counter "container_network_transmit_packets_total" "Cumulative count of packets transmitted"
        |e, f| network(e, f, sent, |way| way.packets);
    Counter "container_oom_events_total" "Count of out of memory events observed for the container"
        |e, f| measured(e, f, float(e.details.oom_kills));
    Counter "container_pressure_cpu_stalled_seconds_total" "Total time duration no tasks in the container could make progress due to CPU congestion."
        |e, f| stalled(e, f, cpu_pressure(e), |psi| &psi.full);
    Counter "container_pressure_cpu_waiting_seconds_total" "Total time duration tasks in the container have waited due to CPU congestion."
        |e, f| stalled(e, f, cpu_pressure(e), |psi| &psi.some);
    Counter "container_pressure_io_stalled_seconds_total" "Total time duration no tasks in the container could make progress due to IO congestion."
        |e, f| stalled(e, f, io_pressure(e), |psi| &psi.full);
    Counter "container_pressure_io_waiting_seconds_total" "Total time duration tasks in the container have waited due to IO congestion."
        |e, f| stalled(e, f, io_pressure(e), |psi| &psi.some);
    Counter "container_pressure_memory_stalled_seconds_total" "Total time duration no tasks in the container could make progress due to memory congestion."
        |e, f| stalled(e, f, memory_pressure(e), |psi| &psi.full);
    Counter "container_pressure_memory_waiting_seconds_total" "Total time duration tasks in the container have waited due to memory congestion."
        |e, f| stalled(e, f, memory_pressure(e), |psi| &psi.some);
    Gauge "container_processes" "Number of processes running inside the container."
        processes;
    Gauge "container_spec_cpu_period" "CPU period of the container."
        |e, f| f.add(e.labels.as_str(), float(e.details.cpu.period), None);
    Gauge "container_spec_cpu_quota" "CPU quota of the container."
        cpu_quota;
    Gauge "container_spec_cpu_shares" "CPU share of the container."
        |e, f| f.add(e.labels.as_str(), float(e.details.cpu.shares), None);
    Gauge "container_spec_memory_limit_bytes" "Memory limit for the container."
        |e, f| memory_spec(e, f, |memory, _| memory.limit);
    Gauge "container_spec_memory_reservation_limit_bytes" "Memory reservation limit for the container."
        |e, f| memory_spec(e, f, |_, reservation| reservation);
    Gauge "container_spec_memory_swap_limit_bytes" "Memory swap limit for the container."
        |e, f| memory_spec(e, f, |memory, _| memory.swap_limit);
    Gauge "container_start_time_seconds" "Start time of the container since unix epoch in seconds."
        start_time;
    Gauge "container_threads" "Number of threads running inside the container"
        threads;
    Gauge "container_threads_max" "Maximum number of threads allowed inside the container, infinity if value is zero"
        |e, f| measured(e, f, float(e.details.threads_max));
}

/// A sample of the time at which the cgroup was measured, if it was.
fn measured(entry: &Entry<'_>, family: &mut Family<'_>, value: f64) {
    if let Some(sample) = entry.sample {
        family.add(entry.labels.as_str(), value, Some(sample.time));
    }
}

fn throttled(entry: &Entry<'_>, family: &mut Family<'_>, value: f64) {
    if entry.details.cpu.quota != 0 {
        measured(entry, family, value);
    }
}

fn cpu_usage(entry: &Entry<'_>, family: &mut Family<'_>) {
    let Some(sample) = entry.sample else {
        return;
    };
    if let Some(nanos) = sample.cpu_nanos.filter(|nanos| *nanos > 0) {
        let labels = entry.labels.with("cpu", "total");
        family.add(labels.as_str(), seconds(nanos), Some(sample.time));
    }
}

fn cpu_quota(entry: &Entry<'_>, family: &mut Family<'_>) {
    let quota = entry.details.cpu.quota;
    if quota != 0 {
        family.add(entry.labels.as_str(), float(quota), None);
    }
}

fn memory(entry: &Entry<'_>, family: &mut Family<'_>, pick: fn(&MemorySample) -> u64) {
    if let Some(memory) = entry.sample.and_then(|sample| sample.memory.as_ref()) {
        measured(entry, family, float(pick(memory)));
    }
}

fn memory_details(
    entry: &Entry<'_>,
    family: &mut Family<'_>,
    pick: fn(&super::details::MemoryDetails) -> u64,
) {
    if let Some(details) = &entry.details.memory {
        measured(entry, family, float(pick(details)));
    }
}

fn memory_spec(entry: &Entry<'_>, family: &mut Family<'_>, pick: fn(&MemorySample, u64) -> u64) {
    /// Above, the kernel means "no limit", which is zero here.
    const LARGEST: u64 = 1 << 62;
    let reservation = entry.details.memory.map_or(0, |memory| memory.reservation);
    if let Some(memory) = entry.sample.and_then(|sample| sample.memory.as_ref()) {
        let value = pick(memory, reservation);
        let value = if value > LARGEST { 0 } else { value };
        family.add(entry.labels.as_str(), float(value), None);
    }
}

fn memory_failures(entry: &Entry<'_>, family: &mut Family<'_>) {
    let Some(sample) = entry.sample else {
        return;
    };
    let Some(memory) = &sample.memory else {
        return;
    };
    for scope in ["container", "hierarchy"] {
        let kinds = [
            ("pgfault", memory.page_faults),
            ("pgmajfault", memory.major_page_faults),
        ];
        for (kind, count) in kinds {
            let labels = entry.labels.with("failure_type", kind).with("scope", scope);
            family.add(labels.as_str(), float(count), Some(sample.time));
        }
    }
}

fn processes(entry: &Entry<'_>, family: &mut Family<'_>) {
    if let Some(count) = entry.sample.and_then(|sample| sample.processes) {
        measured(entry, family, float(count));
    }
}

fn threads(entry: &Entry<'_>, family: &mut Family<'_>) {
    if let Some(count) = entry.details.threads {
        measured(entry, family, float(count));
    }
}

fn start_time(entry: &Entry<'_>, family: &mut Family<'_>) {
    if let Some(started) = entry.started {
        family.add(entry.labels.as_str(), unix_seconds(started).floor(), None);
    }
}

fn disks(entry: &Entry<'_>, family: &mut Family<'_>, pick: fn(&Disk) -> Option<u64>) {
    for disk in &entry.disks {
        if let Some(value) = pick(disk) {
            let labels = entry.labels.with("device", &disk.device);
            family.add(labels.as_str(), float(value), Some(disk.time));
        }
    }
}

fn devices(entry: &Entry<'_>, family: &mut Family<'_>, pick: fn(&DeviceIo) -> u64) {
    for (io, name) in entry.details.io.iter().zip(&entry.device_names) {
        let labels = entry.labels.with("device", name);
        family.add(labels.as_str(), float(pick(io)), Some(entry.now));
    }
}

fn received(interface: &Interface) -> &Direction {
    &interface.received
}

fn sent(interface: &Interface) -> &Direction {
    &interface.sent
}

fn network(
    entry: &Entry<'_>,
    family: &mut Family<'_>,
    way: fn(&Interface) -> &Direction,
    pick: fn(&Direction) -> u64,
) {
    for interface in entry.interfaces {
        let labels = entry.labels.with("interface", &interface.name);
        let value = float(pick(way(interface)));
        family.add(labels.as_str(), value, entry.interfaces_time);
    }
}

fn cpu_pressure<'a>(entry: &Entry<'a>) -> Option<&'a PsiStats> {
    entry.sample?.pressure.cpu.as_ref()
}

fn memory_pressure<'a>(entry: &Entry<'a>) -> Option<&'a PsiStats> {
    entry.sample?.pressure.memory.as_ref()
}

fn io_pressure<'a>(entry: &Entry<'a>) -> Option<&'a PsiStats> {
    entry.sample?.pressure.io.as_ref()
}

/// The kernel counts microseconds.
fn stalled(
    entry: &Entry<'_>,
    family: &mut Family<'_>,
    pressure: Option<&PsiStats>,
    line: fn(&PsiStats) -> &PsiData,
) {
    if let Some(pressure) = pressure {
        measured(entry, family, float(line(pressure).total) / 1e6);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_order_and_each_once() {
        let names: Vec<&str> = SERIES.iter().map(|series| series.name).collect();
        assert!(
            names.is_sorted_by(|first, second| first < second),
            "{names:?}"
        );
    }
}
