//! One cgroup, measured again and again.
//!
//! Figures are cAdvisor's: the working set is usage without inactive page cache; on cgroup v1
//! children are counted in by the `total_` lines. The root of cgroup v2 has no usage file: what
//! counts is anonymous memory and page cache.

use std::fs;
use std::path::PathBuf;
use std::time::UNIX_EPOCH;

use plimsoll_core::cgroup::{CgroupPath, Version};
use plimsoll_core::object::timestamp::Timestamp;
use plimsoll_runtime::cgroup::Layout;

use super::cpu_rate::CpuRate;
use super::kept_file::{Budget, Buffer, KeptFile};
use super::keyed::{each_entry, entry, number_or_max};
use super::machine::{MemInfo, Pressure};
use super::pressure::parse_pressure;

/// Reads one cgroup.
#[derive(Debug)]
pub(super) struct CgroupReader {
    version: Version,
    is_root: bool,
    cpu: KeptFile,
    usage: KeptFile,
    stat: KeptFile,
    limit: KeptFile,
    swap: Option<KeptFile>,
    swap_limit: KeptFile,
    pressure: Option<[KeptFile; 3]>,
    /// Opened for each reading: cgroup v1 shows a list as it was at the first reading for as long as
    /// it is read again within a second.
    processes: PathBuf,
    rate: CpuRate,
    /// When the cgroup was made.
    pub(super) created: Option<Timestamp>,
    /// What was measured last.
    pub(super) last: Option<CgroupSample>,
}

/// What a cgroup uses at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct CgroupSample {
    pub(super) time: Timestamp,
    pub(super) cpu_nanos: Option<u64>,
    /// Nanoseconds per second.
    pub(super) nano_cores: u64,
    pub(super) memory: Option<MemorySample>,
    pub(super) pressure: Pressure,
    pub(super) processes: Option<u64>,
    /// One of them.
    pub(super) first_process: Option<i32>,
}

/// Memory, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct MemorySample {
    pub(super) usage: u64,
    pub(super) working_set: u64,
    pub(super) rss: u64,
    pub(super) cache: u64,
    pub(super) mapped_file: u64,
    pub(super) active_file: u64,
    pub(super) inactive_file: u64,
    pub(super) swap: u64,
    pub(super) page_faults: u64,
    pub(super) major_page_faults: u64,
    /// The largest number where there is none.
    pub(super) limit: u64,
    pub(super) swap_limit: u64,
}

impl CgroupReader {
    pub(super) fn new(layout: &Layout, cgroup: &CgroupPath) -> CgroupReader {
        let path = |controller: &str, name: &str| {
            let directory = layout.directory(controller, cgroup);
            directory.unwrap_or_default().join(name)
        };
        let file = |controller: &str, name: &str| KeptFile::new(path(controller, name));
        let version = layout.version();
        let (cpu, usage, limit, swap_limit) = match version {
            Version::V1 => (
                file("cpuacct", "cpuacct.usage"),
                file("memory", "memory.usage_in_bytes"),
                file("memory", "memory.limit_in_bytes"),
                file("memory", "memory.memsw.limit_in_bytes"),
            ),
            Version::V2 => (
                file("cpu", "cpu.stat"),
                file("memory", "memory.current"),
                file("memory", "memory.max"),
                file("memory", "memory.swap.max"),
            ),
        };
        let is_v2 = version == Version::V2;
        CgroupReader {
            version,
            is_root: cgroup.as_str() == "/",
            cpu,
            usage,
            stat: file("memory", "memory.stat"),
            limit,
            swap: is_v2.then(|| file("memory", "memory.swap.current")),
            swap_limit,
            pressure: is_v2.then(|| {
                ["cpu.pressure", "memory.pressure", "io.pressure"].map(|name| file("cpu", name))
            }),
            processes: path("cpu", "cgroup.procs"),
            rate: CpuRate::default(),
            created: created(&layout.directories(cgroup)),
            last: None,
        }
    }

    /// Measures the cgroup. What cannot be read is left out; nothing is left of one that is gone.
    pub(super) fn sample(
        &mut self,
        time: Timestamp,
        machine: &MemInfo,
        buffer: &mut Buffer,
        budget: &Budget,
    ) {
        let cpu_nanos = self.read_cpu(buffer, budget);
        let memory = self.read_memory(machine, buffer, budget);
        if cpu_nanos.is_none() && memory.is_none() {
            self.last = None;
            return;
        }
        self.last = Some(CgroupSample {
            time,
            cpu_nanos,
            nano_cores: cpu_nanos.map_or(0, |nanos| self.rate.update(time, nanos)),
            memory,
            pressure: self.read_pressure(buffer, budget),
            processes: None,
            first_process: None,
        });
    }

    /// Counts the processes of a cgroup that has no others inside.
    pub(super) fn sample_processes(&mut self, buffer: &mut Buffer) {
        if let Some(last) = &mut self.last {
            let text = buffer.read_once(&self.processes).ok();
            last.processes = text.map(|text| text.lines().count() as u64);
            last.first_process = text.and_then(|text| text.lines().next()?.parse().ok());
        }
    }

    fn read_cpu(&mut self, buffer: &mut Buffer, budget: &Budget) -> Option<u64> {
        let text = self.cpu.read(buffer, budget)?;
        match self.version {
            Version::V1 => text.trim().parse().ok(),
            Version::V2 => entry(text, "usage_usec")?.checked_mul(1000),
        }
    }

    fn read_memory(
        &mut self,
        machine: &MemInfo,
        buffer: &mut Buffer,
        budget: &Budget,
    ) -> Option<MemorySample> {
        let mut memory = match self.version {
            Version::V1 => parse_memory_stat_v1(self.stat.read(buffer, budget)?),
            Version::V2 => parse_memory_stat_v2(self.stat.read(buffer, budget)?),
        };
        let mut number = |file: &mut KeptFile| number_or_max(file.read(buffer, budget)?);
        if self.is_root {
            memory.limit = machine.total;
            memory.swap_limit = machine.swap_total;
        } else {
            memory.limit = number(&mut self.limit).unwrap_or(u64::MAX);
            memory.swap_limit = number(&mut self.swap_limit).unwrap_or(0);
        }
        memory.usage = match (self.is_root, self.version) {
            (true, Version::V2) => memory.rss.saturating_add(memory.cache),
            _ => number(&mut self.usage)?,
        };
        memory.working_set = memory.usage.saturating_sub(memory.inactive_file);
        if let Some(swap) = &mut self.swap {
            memory.swap = match self.is_root {
                true => machine.swap_total.saturating_sub(machine.swap_free),
                false => number(swap).unwrap_or(0),
            };
        }
        Some(memory)
    }

    fn read_pressure(&mut self, buffer: &mut Buffer, budget: &Budget) -> Pressure {
        let Some([cpu, memory, io]) = &mut self.pressure else {
            return Pressure::default();
        };
        let mut read = |file: &mut KeptFile| parse_pressure(file.read(buffer, budget)?);
        Pressure {
            cpu: read(cpu),
            memory: read(memory),
            io: read(io),
        }
    }
}

fn parse_memory_stat_v1(text: &str) -> MemorySample {
    let mut memory = MemorySample::default();
    each_entry(text, |key, number| {
        let field = match key {
            "total_rss" => &mut memory.rss,
            "total_cache" => &mut memory.cache,
            "total_mapped_file" => &mut memory.mapped_file,
            "total_active_file" => &mut memory.active_file,
            "total_inactive_file" => &mut memory.inactive_file,
            "total_swap" => &mut memory.swap,
            // Upstream counts the faults of the cgroup itself, without those inside.
            "pgfault" => &mut memory.page_faults,
            "pgmajfault" => &mut memory.major_page_faults,
            _ => return,
        };
        *field = number;
    });
    memory
}

fn parse_memory_stat_v2(text: &str) -> MemorySample {
    let mut memory = MemorySample::default();
    each_entry(text, |key, number| {
        let field = match key {
            "anon" => &mut memory.rss,
            "file" => &mut memory.cache,
            "file_mapped" => &mut memory.mapped_file,
            "active_file" => &mut memory.active_file,
            "inactive_file" => &mut memory.inactive_file,
            "pgfault" => &mut memory.page_faults,
            "pgmajfault" => &mut memory.major_page_faults,
            _ => return,
        };
        *field = number;
    });
    memory
}

/// The earliest modification time of any directory of the cgroup, or of a file in it that is never
/// written; a directory changes when a cgroup is made in it.
fn created(directories: &[PathBuf]) -> Option<Timestamp> {
    let files = ["", "cgroup.clone_children", "cgroup.events"];
    let paths = directories
        .iter()
        .flat_map(|directory| files.map(|file| directory.join(file)));
    let times = paths.filter_map(|path| fs::metadata(path).ok()?.modified().ok());
    let since_epoch = times.min()?.duration_since(UNIX_EPOCH).ok()?;
    let nanos = i64::try_from(since_epoch.as_nanos()).ok()?;
    Some(Timestamp::from_nanos(nanos))
}
