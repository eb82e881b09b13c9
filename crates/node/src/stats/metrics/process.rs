//! `process_*`: what the agent itself uses.

use std::fs;
use std::path::Path;

use plimsoll_core::object::timestamp::Timestamp;
use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};

use super::exposition::{Exposition, Kind, float, unix_seconds};

/// Adds the values of `/proc/self`; nothing where it cannot be read.
pub(super) fn add_process(text: &mut Exposition, proc_self: &Path, started: Timestamp) {
    let stat = fs::read_to_string(proc_self.join("stat")).unwrap_or_default();
    let Some(usage) = parse_stat(&stat) else {
        return;
    };
    let ticks = float(clock_ticks_per_second());
    let open = fs::read_dir(proc_self.join("fd")).map_or(0, Iterator::count);
    let most = getrlimit(Resource::Nofile).current;
    let metrics = [
        (
            "process_cpu_seconds_total",
            Kind::Counter,
            "Total user and system CPU time spent in seconds.",
            float(usage.ticks) / ticks,
        ),
        (
            "process_max_fds",
            Kind::Gauge,
            "Maximum number of open file descriptors.",
            most.map_or(f64::INFINITY, float),
        ),
        (
            "process_open_fds",
            Kind::Gauge,
            "Number of open file descriptors.",
            float(open as u64),
        ),
        (
            "process_resident_memory_bytes",
            Kind::Gauge,
            "Resident memory size in bytes.",
            float(usage.resident_pages.saturating_mul(page_size() as u64)),
        ),
        (
            "process_start_time_seconds",
            Kind::Gauge,
            "Start time of the process since unix epoch in seconds.",
            unix_seconds(started),
        ),
        (
            "process_virtual_memory_bytes",
            Kind::Gauge,
            "Virtual memory size in bytes.",
            float(usage.virtual_bytes),
        ),
    ];
    for (name, kind, help, value) in metrics {
        text.family(name, kind, help).add("", value, None);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ProcessUsage {
    ticks: u64,
    virtual_bytes: u64,
    resident_pages: u64,
}

/// Fields after the name, which is in parentheses and may have anything in it; see
/// proc_pid_stat(5).
fn parse_stat(text: &str) -> Option<ProcessUsage> {
    let (_, rest) = text.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    // The first one here is the third of the file.
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    Some(ProcessUsage {
        ticks: field(14)?.saturating_add(field(15)?),
        virtual_bytes: field(23)?,
        resident_pages: field(24)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_blanks_and_parentheses_does_not_confuse() {
        let text = "7 (a ) b) S 1 7 7 0 -1 4194560 1 0 0 0 11 22 0 0 20 0 1 0 5 4096 3 18446744073709551615 1";
        let want = ProcessUsage {
            ticks: 33,
            virtual_bytes: 4096,
            resident_pages: 3,
        };
        assert_eq!(parse_stat(text), Some(want));
        assert_eq!(parse_stat(""), None);
    }
}
