//! Usage of a cgroup, read from its files.

use super::Cgroup;

/// Processor time and memory of a cgroup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Usage {
    pub(in super::super) cpu_nanos: u64,
    pub(in super::super) memory: u64,
    /// What could not be reclaimed easily: usage without inactive page cache.
    pub(in super::super) working_set: u64,
    pub(in super::super) rss: u64,
    pub(in super::super) page_faults: u64,
    pub(in super::super) major_page_faults: u64,
    /// `None` without a limit.
    pub(in super::super) memory_limit: Option<u64>,
}

/// Limits above this are none: the kernel shows "no limit" of v1 as a huge number.
const UNLIMITED: u64 = 1 << 62;

impl Cgroup {
    /// Its usage; `None` if the cgroup does not exist.
    pub(in super::super) fn usage(&self) -> Option<Usage> {
        let number = |name: &str| self.read(name)?.trim().parse::<u64>().ok();
        let stat = self.read("memory.stat")?;
        let of = |name: &str| field(&stat, name).unwrap_or(0);
        let usage = if self.is_v2() {
            let memory = number("memory.current")?;
            let cpu = self.read("cpu.stat").unwrap_or_default();
            Usage {
                cpu_nanos: field(&cpu, "usage_usec").unwrap_or(0) * 1000,
                memory,
                working_set: memory.saturating_sub(of("inactive_file")),
                rss: of("anon"),
                page_faults: of("pgfault"),
                major_page_faults: of("pgmajfault"),
                memory_limit: number("memory.max"),
            }
        } else {
            let memory = number("memory.usage_in_bytes")?;
            Usage {
                cpu_nanos: number("cpuacct.usage").unwrap_or(0),
                memory,
                working_set: memory.saturating_sub(of("total_inactive_file")),
                rss: of("total_rss"),
                page_faults: of("pgfault"),
                major_page_faults: of("pgmajfault"),
                memory_limit: number("memory.limit_in_bytes").filter(|limit| *limit < UNLIMITED),
            }
        };
        Some(usage)
    }
}

/// A number behind its name in a file of `name value` lines.
pub(super) fn field(text: &str, name: &str) -> Option<u64> {
    let value = |line: &str| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok();
    text.lines().find_map(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let text = "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n";
        assert_eq!(field(text, "oom_kill"), Some(3));
        assert_eq!(field(text, "under"), None);
        assert_eq!(field("", "oom_kill"), None);
    }
}
