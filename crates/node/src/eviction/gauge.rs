//! Memory, read in microseconds.
//!
//! The files stay open and their text goes into one buffer, so that a look costs a few system
//! calls even on a node that has no page to spare. Figures are those of [`crate::stats`].

use plimsoll_core::cgroup::{CgroupPath, Version};
use plimsoll_core::eviction::MemoryObservation;
use plimsoll_core::object::timestamp::Timestamp;
use plimsoll_core::resources::Bytes;
use plimsoll_runtime::cgroup::Layout;

use super::settings::Settings;
use crate::stats::kept_file::{Budget, Buffer, KeptFile};
use crate::stats::keyed::{each_entry, entry, number_or_max};

/// A limit above is none.
const LARGEST_LIMIT: u64 = 1 << 62;

/// Room and right to read.
#[derive(Debug)]
pub(super) struct Reading {
    buffer: Buffer,
    budget: Budget,
}

impl Reading {
    /// Keeps at most that many files open.
    pub(super) fn new(files: usize) -> Reading {
        Reading {
            buffer: Buffer::default(),
            budget: Budget::new(files),
        }
    }

    fn text(&mut self, file: &mut KeptFile) -> Option<&str> {
        file.read(&mut self.buffer, &self.budget)
    }

    fn number(&mut self, file: &mut KeptFile) -> Option<u64> {
        number_or_max(self.text(file)?)
    }
}

/// The memory of one cgroup.
#[derive(Debug)]
pub(super) struct CgroupMemory {
    version: Version,
    /// The root of cgroup v2 has none.
    usage: Option<KeptFile>,
    stat: KeptFile,
}

/// What a cgroup uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Amounts {
    pub(super) usage: u64,
    pub(super) inactive_file: u64,
    pub(super) active_file: u64,
}

impl Amounts {
    pub(super) fn working_set(&self) -> u64 {
        self.usage.saturating_sub(self.inactive_file)
    }
}

impl CgroupMemory {
    pub(super) fn new(layout: &Layout, cgroup: &CgroupPath) -> CgroupMemory {
        let version = layout.version();
        let usage = match version {
            Version::V1 => Some("memory.usage_in_bytes"),
            Version::V2 if cgroup.as_str() == "/" => None,
            Version::V2 => Some("memory.current"),
        };
        CgroupMemory {
            version,
            usage: usage.map(|name| file(layout, cgroup, name)),
            stat: file(layout, cgroup, "memory.stat"),
        }
    }

    pub(super) fn read(&mut self, reading: &mut Reading) -> Option<Amounts> {
        let text = reading.text(&mut self.stat)?;
        let (mut amounts, held) = parse_stat(text, self.version);
        amounts.usage = match &mut self.usage {
            Some(usage) => reading.number(usage)?,
            None => held,
        };
        Some(amounts)
    }
}

/// What a `memory.stat` says, and anonymous memory and page cache together.
fn parse_stat(text: &str, version: Version) -> (Amounts, u64) {
    let mut amounts = Amounts::default();
    let mut held: u64 = 0;
    let prefix = match version {
        Version::V1 => "total_",
        Version::V2 => "",
    };
    each_entry(text, |key, number| match key.strip_prefix(prefix) {
        Some("inactive_file") => amounts.inactive_file = number,
        Some("active_file") => amounts.active_file = number,
        Some("anon" | "file") => held = held.saturating_add(number),
        _ => {}
    });
    (amounts, held)
}

fn file(layout: &Layout, cgroup: &CgroupPath, name: &str) -> KeptFile {
    let directory = layout.directory("memory", cgroup).unwrap_or_default();
    KeptFile::new(directory.join(name))
}

/// The memory of the machine and of all pods together.
#[derive(Debug)]
pub(super) struct Gauge {
    capacity: Option<u64>,
    machine: CgroupMemory,
    pods: CgroupMemory,
    pods_limit: KeptFile,
    mem_info: KeptFile,
    /// A cgroup that plays the machine has no `MemAvailable`.
    is_machine_whole: bool,
}

/// One look at the memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Look {
    pub(super) machine: MemoryObservation,
    /// `None` where pods together have no limit.
    pub(super) pods: Option<MemoryObservation>,
    /// Page cache that is not in the working sets: what a threshold on usage has to allow for.
    pub(super) machine_inactive: i64,
    pub(super) pods_inactive: i64,
}

impl Gauge {
    pub(super) fn new(settings: &Settings, layout: &Layout, kubepods: &CgroupPath) -> Gauge {
        let limit = match layout.version() {
            Version::V1 => "memory.limit_in_bytes",
            Version::V2 => "memory.max",
        };
        Gauge {
            capacity: settings
                .capacity
                .and_then(|bytes| u64::try_from(bytes.0).ok()),
            machine: CgroupMemory::new(layout, &settings.machine),
            pods: CgroupMemory::new(layout, kubepods),
            pods_limit: file(layout, kubepods, limit),
            mem_info: KeptFile::new(settings.mount_root.join("proc/meminfo")),
            is_machine_whole: settings.machine.as_str() == "/",
        }
    }

    /// Looks; `None` if the machine cannot be read.
    pub(super) fn read(&mut self, now: Timestamp, reading: &mut Reading) -> Option<Look> {
        let mem_info = reading.text(&mut self.mem_info)?;
        let kibibytes = |key| kibibytes(mem_info, key);
        let total = self.capacity.or_else(|| kibibytes("MemTotal:"))?;
        let available = kibibytes("MemAvailable:").filter(|_| self.is_machine_whole);
        let machine = self.machine.read(reading)?;
        let limit = reading.number(&mut self.pods_limit);
        let limit = limit.filter(|limit| *limit <= LARGEST_LIMIT);
        let pods = limit.and_then(|_| self.pods.read(reading));
        Some(Look {
            machine: MemoryObservation {
                kernel_available: available.map(|bytes| Bytes(signed(bytes))),
                ..observation(now, total, &machine)
            },
            pods: limit
                .zip(pods)
                .map(|(limit, pods)| observation(now, limit, &pods)),
            machine_inactive: signed(machine.inactive_file),
            pods_inactive: pods.map_or(0, |pods| signed(pods.inactive_file)),
        })
    }
}

fn observation(now: Timestamp, limit: u64, amounts: &Amounts) -> MemoryObservation {
    let working_set = signed(amounts.working_set());
    MemoryObservation {
        available: Bytes(signed(limit) - working_set),
        working_set: Bytes(working_set),
        kernel_available: None,
        active_file: Some(Bytes(signed(amounts.active_file))),
        time: Some(now),
    }
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// A line of `/proc/meminfo`, in bytes.
pub(super) fn kibibytes(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    let number: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    number.checked_mul(1024)
}

/// Counts the processes that the kernel killed for want of memory in a cgroup and below.
#[derive(Debug)]
pub(super) struct OomKills(Vec<KeptFile>);

impl OomKills {
    /// Of these cgroups: a pod's own, and with cgroup v1, which counts each apart, those in it.
    pub(super) fn new(layout: &Layout, cgroups: &[CgroupPath]) -> OomKills {
        let (name, all) = match layout.version() {
            Version::V1 => ("memory.oom_control", cgroups),
            Version::V2 => ("memory.events", &cgroups[..cgroups.len().min(1)]),
        };
        OomKills(
            all.iter()
                .map(|cgroup| file(layout, cgroup, name))
                .collect(),
        )
    }

    pub(super) fn read(&mut self, reading: &mut Reading) -> u64 {
        let files = self.0.iter_mut();
        let counts = files.filter_map(|file| entry(reading.text(file)?, "oom_kill"));
        counts.sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cgroup_v1_memory_includes_children() {
        let text = "inactive_file 1\nactive_file 2\ntotal_inactive_file 30\ntotal_active_file 40\n";
        let (amounts, _) = parse_stat(text, Version::V1);
        assert_eq!((amounts.inactive_file, amounts.active_file), (30, 40));
    }

    #[test]
    fn the_root_of_cgroup_v2_uses_anonymous_memory_and_page_cache() {
        let text = "anon 100\nfile 50\nkernel 7\ninactive_file 20\nactive_file 25\n";
        let (amounts, held) = parse_stat(text, Version::V2);
        assert_eq!((amounts.inactive_file, held), (20, 150));
    }

    #[test]
    fn mem_info_is_in_kibibytes() {
        let text = "MemTotal:       2048 kB\nMemFree:  1 kB\nMemAvailable:   512 kB\n";
        assert_eq!(kibibytes(text, "MemTotal:"), Some(2 << 20));
        assert_eq!(kibibytes(text, "MemAvailable:"), Some(512 << 10));
        assert_eq!(kibibytes(text, "SwapTotal:"), None);
    }
}
