//! Figures of a cgroup that only scrapers need. They are read at a scrape.

use std::path::PathBuf;

use plimsoll_core::cgroup::conversion::shares_from_kubelet_weight;
use plimsoll_core::cgroup::{CgroupPath, Version};
use plimsoll_runtime::cgroup::Layout;

use super::super::kept_file::Buffer;
use super::super::keyed::{entry, number_or_max};

/// What a cgroup may have and what became of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Details {
    pub(super) user_nanos: u64,
    pub(super) system_nanos: u64,
    pub(super) cpu: CpuSpec,
    pub(super) throttling: Throttling,
    /// `None` where there is no memory controller.
    pub(super) memory: Option<MemoryDetails>,
    pub(super) oom_kills: u64,
    pub(super) threads: Option<u64>,
    /// Zero for no limit.
    pub(super) threads_max: u64,
    pub(super) io: Vec<DeviceIo>,
}

/// Limits on cpu.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CpuSpec {
    pub(super) shares: u64,
    pub(super) period: u64,
    /// Zero for no limit.
    pub(super) quota: u64,
}

/// What became of the limit on cpu.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Throttling {
    pub(super) periods: u64,
    pub(super) throttled_periods: u64,
    pub(super) throttled_nanos: u64,
    pub(super) burst_periods: u64,
    pub(super) burst_nanos: u64,
}

/// Memory besides what is measured regularly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct MemoryDetails {
    pub(super) failures: u64,
    pub(super) peak: u64,
    pub(super) reservation: u64,
}

/// Accesses to one disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct DeviceIo {
    pub(super) major: u32,
    pub(super) minor: u32,
    pub(super) read_bytes: u64,
    pub(super) written_bytes: u64,
    pub(super) reads: u64,
    pub(super) writes: u64,
}

/// Reads the files of one cgroup.
struct Files<'a> {
    layout: &'a Layout,
    cgroup: &'a CgroupPath,
    buffer: &'a mut Buffer,
}

impl Details {
    pub(super) fn read(layout: &Layout, cgroup: &CgroupPath, buffer: &mut Buffer) -> Details {
        let mut files = Files {
            layout,
            cgroup,
            buffer,
        };
        let mut details = match layout.version() {
            Version::V1 => files.read_v1(),
            Version::V2 => files.read_v2(),
        };
        details.threads = files.number("pids.current");
        let max = files.number("pids.max");
        details.threads_max = max.filter(|max| *max != u64::MAX).unwrap_or(0);
        details
    }
}

impl Files<'_> {
    fn path(&self, file: &str) -> Option<PathBuf> {
        let controller = file.split('.').next()?;
        let directory = self.layout.directory(controller, self.cgroup)?;
        Some(directory.join(file))
    }

    fn text(&mut self, file: &str) -> Option<&str> {
        let path = self.path(file)?;
        self.buffer.read_once(&path).ok()
    }

    fn number(&mut self, file: &str) -> Option<u64> {
        number_or_max(self.text(file)?)
    }

    fn entries<const N: usize>(&mut self, file: &str, keys: [&str; N]) -> [u64; N] {
        let text = self.text(file).unwrap_or_default();
        keys.map(|key| entry(text, key).unwrap_or(0))
    }

    fn read_v1(&mut self) -> Details {
        /// Of processor time in `cpuacct.stat`.
        const NANOS_PER_TICK: u64 = 10_000_000;
        let [user, system] = self.entries("cpuacct.stat", ["user", "system"]);
        let keys = [
            "nr_periods",
            "nr_throttled",
            "throttled_time",
            "nr_bursts",
            "burst_time",
        ];
        let [
            periods,
            throttled_periods,
            throttled_nanos,
            burst_periods,
            burst_nanos,
        ] = self.entries("cpu.stat", keys);
        let memory = self.number("memory.failcnt").map(|failures| MemoryDetails {
            failures,
            peak: self.number("memory.max_usage_in_bytes").unwrap_or(0),
            reservation: self.number("memory.soft_limit_in_bytes").unwrap_or(0),
        });
        let [oom_kills] = self.entries("memory.oom_control", ["oom_kill"]);
        Details {
            user_nanos: user.saturating_mul(NANOS_PER_TICK),
            system_nanos: system.saturating_mul(NANOS_PER_TICK),
            cpu: CpuSpec {
                shares: self.number("cpu.shares").unwrap_or(0),
                period: self.number("cpu.cfs_period_us").unwrap_or(0),
                quota: self.number("cpu.cfs_quota_us").unwrap_or(0),
            },
            throttling: Throttling {
                periods,
                throttled_periods,
                throttled_nanos,
                burst_periods,
                burst_nanos,
            },
            memory,
            oom_kills,
            io: self.io_v1(),
            ..Details::default()
        }
    }

    fn io_v1(&mut self) -> Vec<DeviceIo> {
        let mut devices = Vec::new();
        let bytes = self.text("blkio.throttle.io_service_bytes_recursive");
        add_io_v1(bytes.unwrap_or_default(), &mut devices, |device| {
            (&mut device.read_bytes, &mut device.written_bytes)
        });
        let counts = self.text("blkio.throttle.io_serviced_recursive");
        add_io_v1(counts.unwrap_or_default(), &mut devices, |device| {
            (&mut device.reads, &mut device.writes)
        });
        devices
    }

    fn read_v2(&mut self) -> Details {
        let keys = [
            "user_usec",
            "system_usec",
            "nr_periods",
            "nr_throttled",
            "throttled_usec",
            "nr_bursts",
            "burst_usec",
        ];
        let [
            user,
            system,
            periods,
            throttled_periods,
            throttled,
            burst_periods,
            burst,
        ] = self.entries("cpu.stat", keys);
        let nanos = |micros: u64| micros.saturating_mul(1000);
        let (quota, period) = self
            .text("cpu.max")
            .and_then(parse_cpu_max)
            .unwrap_or((0, 0));
        let weight = self.number("cpu.weight");
        let [oom_kills] = self.entries("memory.events", ["oom_kill"]);
        let reservation = self.number("memory.min");
        let io = self.text("io.stat").map(parse_io_v2).unwrap_or_default();
        Details {
            user_nanos: nanos(user),
            system_nanos: nanos(system),
            cpu: CpuSpec {
                shares: weight.map_or(0, shares_from_kubelet_weight),
                period,
                quota,
            },
            throttling: Throttling {
                periods,
                throttled_periods,
                throttled_nanos: nanos(throttled),
                burst_periods,
                burst_nanos: nanos(burst),
            },
            memory: reservation.map(|reservation| MemoryDetails {
                failures: 0,
                peak: self.number("memory.peak").unwrap_or(0),
                reservation,
            }),
            oom_kills,
            io,
            ..Details::default()
        }
    }
}

/// `max 100000` or `50000 100000`: quota, zero for none, and period.
fn parse_cpu_max(text: &str) -> Option<(u64, u64)> {
    let (quota, period) = text.trim().split_once(' ')?;
    let quota = match quota {
        "max" => 0,
        number => number.parse().ok()?,
    };
    Some((quota, period.parse().ok()?))
}

fn parse_device(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Lines `8:0 Read 4096`; the last line is a total over devices.
fn add_io_v1(
    text: &str,
    devices: &mut Vec<DeviceIo>,
    fields: fn(&mut DeviceIo) -> (&mut u64, &mut u64),
) {
    for line in text.lines() {
        let mut words = line.split(' ');
        let (Some(device), Some(operation), Some(number)) = (
            words.next().and_then(parse_device),
            words.next(),
            words.next(),
        ) else {
            continue;
        };
        let Ok(number) = number.parse() else {
            continue;
        };
        let (major, minor) = device;
        let known = devices
            .iter()
            .position(|known| (known.major, known.minor) == device);
        let index = known.unwrap_or_else(|| {
            devices.push(DeviceIo {
                major,
                minor,
                ..DeviceIo::default()
            });
            devices.len() - 1
        });
        let (read, written) = fields(&mut devices[index]);
        match operation {
            "Read" => *read = number,
            "Write" => *written = number,
            _ => {}
        }
    }
}

/// Lines `8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=0 dios=0`.
fn parse_io_v2(text: &str) -> Vec<DeviceIo> {
    let parse = |line: &str| {
        let (device, fields) = line.split_once(' ')?;
        let (major, minor) = parse_device(device)?;
        let mut io = DeviceIo {
            major,
            minor,
            ..DeviceIo::default()
        };
        for (key, value) in fields.split(' ').filter_map(|field| field.split_once('=')) {
            let field = match key {
                "rbytes" => &mut io.read_bytes,
                "wbytes" => &mut io.written_bytes,
                "rios" => &mut io.reads,
                "wios" => &mut io.writes,
                _ => continue,
            };
            *field = value.parse().ok()?;
        }
        Some(io)
    };
    text.lines().filter_map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cgroup_v1_and_v2_report_the_same_disk_io() {
        let want = [DeviceIo {
            major: 8,
            minor: 0,
            read_bytes: 1,
            written_bytes: 2,
            reads: 3,
            writes: 4,
        }];
        let v2 = "8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=0 dios=0\n";
        assert_eq!(parse_io_v2(v2), want);
        let mut v1 = Vec::new();
        let bytes = "8:0 Read 1\n8:0 Write 2\n8:0 Sync 2\n8:0 Total 3\nTotal 3\n";
        add_io_v1(bytes, &mut v1, |io| {
            (&mut io.read_bytes, &mut io.written_bytes)
        });
        add_io_v1("8:0 Read 3\n8:0 Write 4\n", &mut v1, |io| {
            (&mut io.reads, &mut io.writes)
        });
        assert_eq!(v1, want);
    }

    #[test]
    fn a_cpu_limit_has_a_quota_only_if_there_is_one() {
        assert_eq!(parse_cpu_max("max 100000\n"), Some((0, 100_000)));
        assert_eq!(parse_cpu_max("50000 100000\n"), Some((50_000, 100_000)));
        assert_eq!(parse_cpu_max(""), None);
    }
}
