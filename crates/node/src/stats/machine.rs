//! The machine: its memory, process ids, processors and when it was started.

use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_core::eviction::summary::{PsiStats, RlimitStats};
use plimsoll_core::object::timestamp::Timestamp;
use plimsoll_runtime::cgroup::Layout;

use super::collector::Settings;
use super::kept_file::{Budget, Buffer, KeptFile};
use super::pressure::parse_pressure;

/// Reads `/proc`.
#[derive(Debug)]
pub(super) struct MachineReader {
    meminfo: KeptFile,
    tasks: Tasks,
    cpu_pressure: KeptFile,
    memory_pressure: KeptFile,
    io_pressure: KeptFile,
    /// Does not change while the machine runs.
    pub(super) boot_time: Option<Timestamp>,
    pub(super) processors: Processors,
}

/// Where the number of tasks and its limit are read from.
#[derive(Debug)]
enum Tasks {
    /// The whole machine.
    Machine {
        loadavg: KeptFile,
        pid_max: KeptFile,
        threads_max: KeptFile,
    },
    /// A cgroup that plays the machine, and what it was given.
    Played { current: KeptFile, most: i64 },
}

impl Tasks {
    fn new(settings: &Settings, layout: &Layout) -> Tasks {
        let played = settings.played.as_ref();
        let played = played.and_then(|played| {
            let directory = layout.directory("pids", &played.cgroup)?;
            Some((directory.join("pids.current"), played.max_processes?))
        });
        let kept = |path: &str| KeptFile::new(settings.mount_root.join("proc").join(path));
        match played {
            Some((path, most)) => Tasks::Played {
                current: KeptFile::new(path),
                most,
            },
            None => Tasks::Machine {
                loadavg: kept("loadavg"),
                pid_max: kept("sys/kernel/pid_max"),
                threads_max: kept("sys/kernel/threads-max"),
            },
        }
    }

    /// How many there may be, and how many there are.
    fn read(&mut self, buffer: &mut Buffer, budget: &Budget) -> (Option<i64>, Option<i64>) {
        let mut number =
            |file: &mut KeptFile| -> Option<i64> { file.read(buffer, budget)?.trim().parse().ok() };
        match self {
            Tasks::Played { current, most } => (Some(*most), number(current)),
            Tasks::Machine {
                loadavg,
                pid_max,
                threads_max,
            } => {
                let bounds = [number(pid_max), number(threads_max)];
                let running = loadavg.read(buffer, budget).and_then(parse_task_count);
                (bounds.into_iter().flatten().min(), running)
            }
        }
    }
}

/// The values of `/proc/meminfo`, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct MemInfo {
    pub(super) total: u64,
    pub(super) available: u64,
    pub(super) swap_total: u64,
    pub(super) swap_free: u64,
}

/// The values of `/proc/cpuinfo`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Processors {
    pub(super) logical: u64,
    pub(super) physical: u64,
    pub(super) sockets: u64,
}

/// Stalls of the whole machine, or of a cgroup.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Pressure {
    pub(super) cpu: Option<PsiStats>,
    pub(super) memory: Option<PsiStats>,
    pub(super) io: Option<PsiStats>,
}

impl MachineReader {
    /// Reads below the mount root, `/` but in tests.
    pub(super) fn new(settings: &Settings, layout: &Layout) -> MachineReader {
        let proc = settings.mount_root.join("proc");
        let kept = |path: &str| KeptFile::new(proc.join(path));
        let text = |path: &str| fs::read_to_string(proc.join(path)).unwrap_or_default();
        MachineReader {
            meminfo: kept("meminfo"),
            tasks: Tasks::new(settings, layout),
            cpu_pressure: kept("pressure/cpu"),
            memory_pressure: kept("pressure/memory"),
            io_pressure: kept("pressure/io"),
            boot_time: parse_boot_time(&text("stat")),
            processors: parse_processors(&text("cpuinfo")),
        }
    }

    pub(super) fn memory(&mut self, buffer: &mut Buffer, budget: &Budget) -> Option<MemInfo> {
        self.meminfo.read(buffer, budget).map(parse_meminfo)
    }

    pub(super) fn pressure(&mut self, buffer: &mut Buffer, budget: &Budget) -> Pressure {
        let mut read = |file: &mut KeptFile| parse_pressure(file.read(buffer, budget)?);
        Pressure {
            cpu: read(&mut self.cpu_pressure),
            memory: read(&mut self.memory_pressure),
            io: read(&mut self.io_pressure),
        }
    }

    /// The smaller of the two bounds on tasks, and how many there are.
    pub(super) fn process_ids(
        &mut self,
        time: Timestamp,
        buffer: &mut Buffer,
        budget: &Budget,
    ) -> RlimitStats {
        let (maxpid, curproc) = self.tasks.read(buffer, budget);
        RlimitStats {
            time: Some(time),
            maxpid,
            curproc,
        }
    }
}

/// The numbers of every interface that `/proc/1/net/dev` shows, which is the machine's own.
pub(super) fn net_dev_path(mount_root: &Path) -> PathBuf {
    mount_root.join("proc/1/net/dev")
}

fn parse_meminfo(text: &str) -> MemInfo {
    let mut info = MemInfo::default();
    for line in text.lines() {
        let Some((key, value)) = line.split_once(':') else {
            continue;
        };
        let field = match key {
            "MemTotal" => &mut info.total,
            "MemAvailable" => &mut info.available,
            "SwapTotal" => &mut info.swap_total,
            "SwapFree" => &mut info.swap_free,
            _ => continue,
        };
        let kibibytes = value.trim().trim_end_matches("kB").trim().parse::<u64>();
        *field = kibibytes.unwrap_or(0).saturating_mul(1024);
    }
    info
}

/// The number after the slash in `1.36 3.49 4.53 2/3518 3715089`.
fn parse_task_count(text: &str) -> Option<i64> {
    let field = text.split_whitespace().nth(3)?;
    let (_, count) = field.split_once('/')?;
    count.parse().ok()
}

/// The line `btime <seconds>` of `/proc/stat`.
fn parse_boot_time(text: &str) -> Option<Timestamp> {
    let seconds = super::keyed::entry(text, "btime")?;
    Some(Timestamp::from_secs(i64::try_from(seconds).ok()?))
}

/// Counts processors; a machine that does not report cores and sockets has as many cores as
/// processors, in one socket.
fn parse_processors(text: &str) -> Processors {
    let mut logical = 0;
    let mut socket = None;
    let mut cores = std::collections::BTreeSet::new();
    let mut sockets = std::collections::BTreeSet::new();
    for line in text.lines() {
        let Some((key, value)) = line.split_once(':') else {
            continue;
        };
        match (key.trim(), value.trim()) {
            ("processor", _) => logical += 1,
            ("physical id", id) => {
                socket = Some(id);
                sockets.insert(id);
            }
            ("core id", id) => {
                cores.insert((socket, id));
            }
            _ => {}
        }
    }
    Processors {
        logical,
        physical: if cores.is_empty() {
            logical
        } else {
            cores.len() as u64
        },
        sockets: sockets.len().max(1) as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_of_proc_are_read() {
        let text =
            "MemTotal:       32768 kB\nMemFree: 1 kB\nMemAvailable:   100 kB\nSwapTotal: 0 kB\n";
        let want = MemInfo {
            total: 32768 << 10,
            available: 100 << 10,
            ..MemInfo::default()
        };
        assert_eq!(parse_meminfo(text), want);
        assert_eq!(
            parse_task_count("1.36 3.49 4.53 2/3518 3715089\n"),
            Some(3518)
        );
        assert_eq!(parse_task_count("1.36"), None);
        let boot = parse_boot_time("cpu 1 2\nbtime 1700000000\n");
        assert_eq!(boot, Some(Timestamp::from_secs(1_700_000_000)));
    }

    #[test]
    fn processors_are_counted_by_socket_and_core() {
        let one = "processor\t: 0\nphysical id\t: 0\ncore id\t\t: 0\n\n\
                   processor\t: 1\nphysical id\t: 0\ncore id\t\t: 0\n\n\
                   processor\t: 2\nphysical id\t: 1\ncore id\t\t: 0\n";
        let want = Processors {
            logical: 3,
            physical: 2,
            sockets: 2,
        };
        assert_eq!(parse_processors(one), want);
        let arm = "processor\t: 0\nBogoMIPS\t: 50\n\nprocessor\t: 1\n";
        let want = Processors {
            logical: 2,
            physical: 2,
            sockets: 1,
        };
        assert_eq!(parse_processors(arm), want);
    }
}
