//! What this machine has, read from /proc and /sys.

use std::path::{Path, PathBuf};

use plimsoll_core::allocatable::{HugePages, Machine};
use plimsoll_core::config::CpuSet;
use plimsoll_core::resources::{Bytes, Count};

/// Why the machine's capacity cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file of the kernel's cannot be read.
    #[error("cannot read {path}")]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// It holds something else than it should.
    #[error("{path} holds {text:?}, expected {expected}")]
    Parse {
        /// Which.
        path: PathBuf,
        /// What it holds.
        text: String,
        /// What was looked for.
        expected: &'static str,
    },
}

type Result<T> = std::result::Result<T, Error>;

/// Capacities of the local machine, in the kernel's own figures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LocalMachine {
    /// Logical processors that are online.
    pub cores: Count,
    /// `MemTotal`.
    pub memory: Bytes,
    /// `SwapTotal`.
    pub swap: Bytes,
    /// Size of the file system that holds the node's root directory.
    pub root_fs: Bytes,
    /// Inodes of the same file system.
    pub root_fs_inodes: Count,
    /// The largest process id, or the thread limit if that is smaller.
    pub max_pid: Count,
    /// Page size and bytes reserved in such pages.
    pub huge_pages: Vec<(Bytes, Bytes)>,
}

impl LocalMachine {
    /// The machine as allocatable is computed from it.
    pub fn to_shared_out(&self) -> Machine {
        Machine {
            cores: self.cores.0,
            memory: self.memory,
            huge_pages: (self.huge_pages.iter())
                .map(|(page_size, bytes)| HugePages {
                    page_size: *page_size,
                    count: bytes.0 / page_size.0.max(1),
                })
                .collect(),
            root_fs: Some(self.root_fs),
            max_pid: Some(self.max_pid),
        }
    }
}

/// Reads the machine; `root_dir` need not exist yet, its nearest existing parent counts.
pub fn read_local_machine(root_dir: &Path) -> Result<LocalMachine> {
    let meminfo = read("/proc/meminfo")?;
    let (root_fs, root_fs_inodes) = read_file_system(root_dir)?;
    let pid_max = read_number("/proc/sys/kernel/pid_max")?;
    let threads_max = read_number("/proc/sys/kernel/threads-max")?;
    let memory = parse_meminfo(&meminfo, "MemTotal");
    let memory = memory.ok_or_else(|| parse_error("/proc/meminfo", &meminfo, "MemTotal"))?;
    Ok(LocalMachine {
        cores: read_online_cores()?,
        memory,
        swap: parse_meminfo(&meminfo, "SwapTotal").unwrap_or_default(),
        root_fs,
        root_fs_inodes,
        max_pid: Count(pid_max.min(threads_max)),
        huge_pages: read_huge_pages()?,
    })
}

fn read_online_cores() -> Result<Count> {
    const PATH: &str = "/sys/devices/system/cpu/online";
    let text = read(PATH)?;
    let online = CpuSet::parse(text.trim());
    let online = online.map_err(|_| parse_error(PATH, &text, "a list of processors"))?;
    Ok(Count(i64::try_from(online.len()).unwrap_or(i64::MAX)))
}

fn read(path: &str) -> Result<String> {
    std::fs::read_to_string(path).map_err(|source| Error::Read {
        path: path.into(),
        source,
    })
}

fn parse_error(path: &str, text: &str, expected: &'static str) -> Error {
    Error::Parse {
        path: path.into(),
        text: text.chars().take(80).collect(),
        expected,
    }
}

fn read_number(path: &str) -> Result<i64> {
    let text = read(path)?;
    let number = text.trim().parse();
    number.map_err(|_| parse_error(path, &text, "a number"))
}

fn parse_meminfo(meminfo: &str, key: &str) -> Option<Bytes> {
    let rest = meminfo
        .lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    let kibibytes: i64 = rest.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(Bytes(kibibytes.checked_mul(1024)?))
}

fn read_file_system(directory: &Path) -> Result<(Bytes, Count)> {
    let existing = directory
        .ancestors()
        .find(|ancestor| ancestor.exists())
        .unwrap_or(Path::new("/"));
    let stat = rustix::fs::statvfs(existing).map_err(|source| Error::Read {
        path: existing.to_owned(),
        source: source.into(),
    })?;
    let size = stat.f_blocks.saturating_mul(stat.f_frsize);
    Ok((
        Bytes(i64::try_from(size).unwrap_or(i64::MAX)),
        Count(i64::try_from(stat.f_files).unwrap_or(i64::MAX)),
    ))
}

fn read_huge_pages() -> Result<Vec<(Bytes, Bytes)>> {
    let root = PathBuf::from("/sys/kernel/mm/hugepages");
    let Ok(entries) = std::fs::read_dir(&root) else {
        return Ok(Vec::new());
    };
    let mut sizes = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|source| Error::Read {
            path: root.clone(),
            source,
        })?;
        let path = entry.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let kibibytes = name
            .strip_prefix("hugepages-")
            .and_then(|rest| rest.strip_suffix("kB"))
            .and_then(|digits| digits.parse::<i64>().ok());
        let Some(kibibytes) = kibibytes else {
            continue;
        };
        let pages = read_number(&path.join("nr_hugepages").to_string_lossy())?;
        let size = kibibytes.saturating_mul(1024);
        sizes.push((Bytes(size), Bytes(size.saturating_mul(pages))));
    }
    sizes.sort();
    Ok(sizes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meminfo_lines_are_kibibytes() {
        let meminfo = "MemTotal:       32768 kB\nSwapTotal:         0 kB\n";
        assert_eq!(parse_meminfo(meminfo, "MemTotal"), Some(Bytes(32 << 20)));
        assert_eq!(parse_meminfo(meminfo, "SwapTotal"), Some(Bytes(0)));
        assert_eq!(parse_meminfo(meminfo, "MemFree"), None);
    }

    #[test]
    fn this_machine_has_cores_memory_and_a_disk() {
        let machine = read_local_machine(Path::new("/nonexistent/plimsoll")).unwrap();
        assert!(machine.cores >= Count(1));
        assert!(machine.memory > Bytes(1 << 20));
        assert!(machine.root_fs > Bytes::ZERO);
    }
}
