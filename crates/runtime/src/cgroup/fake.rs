//! A folder that poses as the cgroup file systems of a machine.
//!
//! Files hold what was written last. Making a directory fills it as the kernel would; removing one
//! fails while there are others in it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use plimsoll_core::cgroup::{Driver, Version};
use tempfile::TempDir;

use super::tree::{Cgroups, DirectoryCalls};

/// A machine in a folder.
#[derive(Debug)]
pub struct FakeMachine {
    root: TempDir,
}

const V1: [&str; 8] = [
    "cpu", "cpuacct", "cpuset", "memory", "pids", "freezer", "hugetlb", "systemd",
];
const V2: &str = "cpuset cpu io memory hugetlb pids";

/// What the kernel puts into a new cgroup, by controller.
const FILES_V1: [(&str, &[(&str, &str)]); 7] = [
    (
        "cpu",
        &[
            ("cpu.shares", "1024\n"),
            ("cpu.cfs_period_us", "100000\n"),
            ("cpu.cfs_quota_us", "-1\n"),
            (
                "cpu.stat",
                "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n",
            ),
        ],
    ),
    (
        "cpuacct",
        &[
            ("cpuacct.usage", "0\n"),
            ("cpuacct.stat", "user 0\nsystem 0\n"),
        ],
    ),
    ("cpuset", &[("cpuset.cpus", "\n"), ("cpuset.mems", "\n")]),
    (
        "memory",
        &[
            ("memory.limit_in_bytes", "9223372036854771712\n"),
            ("memory.usage_in_bytes", "0\n"),
            ("memory.max_usage_in_bytes", "0\n"),
            ("memory.failcnt", "0\n"),
            ("memory.use_hierarchy", "0\n"),
            (
                "memory.oom_control",
                "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n",
            ),
            (
                "memory.stat",
                "total_cache 0\ntotal_rss 0\ntotal_inactive_file 0\n",
            ),
        ],
    ),
    ("pids", &[("pids.max", "max\n"), ("pids.current", "0\n")]),
    (
        "freezer",
        &[
            ("freezer.state", "THAWED\n"),
            ("freezer.self_freezing", "0\n"),
        ],
    ),
    (
        "hugetlb",
        &[
            ("hugetlb.2MB.limit_in_bytes", "9223372036852678656\n"),
            ("hugetlb.2MB.rsvd.limit_in_bytes", "9223372036852678656\n"),
        ],
    ),
];
const FILES_V2: [(&str, &[(&str, &str)]); 6] = [
    ("cpuset", &[("cpuset.cpus", "\n")]),
    (
        "cpu",
        &[("cpu.weight", "100\n"), ("cpu.max", "max 100000\n")],
    ),
    ("io", &[("io.weight", "default 100\n")]),
    (
        "memory",
        &[
            ("memory.max", "max\n"),
            ("memory.min", "0\n"),
            ("memory.low", "0\n"),
            ("memory.current", "0\n"),
            ("memory.stat", "anon 0\nfile 0\ninactive_file 0\n"),
            ("memory.events", "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\n"),
        ],
    ),
    (
        "hugetlb",
        &[
            ("hugetlb.2MB.max", "max\n"),
            ("hugetlb.2MB.rsvd.max", "max\n"),
        ],
    ),
    ("pids", &[("pids.max", "max\n"), ("pids.current", "0\n")]),
];

impl FakeMachine {
    /// Makes a machine with all controllers and huge pages of 2 MiB.
    pub fn new(version: Version) -> FakeMachine {
        let machine = FakeMachine {
            root: tempfile::tempdir().unwrap(),
        };
        let cgroups = machine.cgroup_mount();
        fs::create_dir_all(machine.path("sys/kernel/mm/hugepages/hugepages-2048kB")).unwrap();
        let mountinfo = match version {
            Version::V1 => {
                let mounts = V1.iter().map(|name| {
                    let option = match *name {
                        "systemd" => "name=systemd",
                        name => name,
                    };
                    format!("1 1 0:1 / /sys/fs/cgroup/{name} rw - cgroup cgroup rw,{option}\n")
                });
                for name in V1 {
                    fs::create_dir_all(cgroups.join(name)).unwrap();
                    fill(&cgroups.join(name)).unwrap();
                }
                fs::write(cgroups.join("cpuset/cpuset.cpus"), "0-3\n").unwrap();
                fs::write(cgroups.join("cpuset/cpuset.mems"), "0\n").unwrap();
                mounts.collect()
            }
            Version::V2 => {
                fs::create_dir_all(&cgroups).unwrap();
                fs::write(cgroups.join("cgroup.controllers"), V2).unwrap();
                fs::write(cgroups.join("cgroup.subtree_control"), "").unwrap();
                fs::write(cgroups.join("cgroup.procs"), "").unwrap();
                "1 1 0:1 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n".to_owned()
            }
        };
        machine.write("proc/self/mountinfo", &mountinfo);
        machine
    }

    /// What poses as `/`.
    pub fn root(&self) -> &Path {
        self.root.path()
    }

    /// A path on the machine.
    pub fn path(&self, relative: &str) -> PathBuf {
        self.root.path().join(relative)
    }

    /// Writes a file, with the directories above it.
    pub fn write(&self, relative: &str, text: &str) {
        let path = self.path(relative);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn cgroup_mount(&self) -> PathBuf {
        self.path("sys/fs/cgroup")
    }

    /// The cgroups of the machine below its root cgroup.
    pub fn cgroups(&self, driver: Driver) -> Cgroups {
        let mut cgroups = Cgroups::detect(self.root(), driver, "/").unwrap();
        cgroups.directories = FOLDER;
        cgroups
    }
}

const FOLDER: DirectoryCalls = DirectoryCalls { make, remove };

fn make(directory: &Path) -> io::Result<()> {
    fs::create_dir(directory)?;
    fill(directory)
}

/// Fills a new cgroup as the kernel would.
fn fill(directory: &Path) -> io::Result<()> {
    let parent = directory.parent().unwrap();
    fs::write(directory.join("cgroup.procs"), "")?;
    let put = |files: &[(&str, &str)]| {
        let mut files = files.iter();
        files.try_for_each(|(name, text)| fs::write(directory.join(name), text))
    };
    let Ok(control) = fs::read_to_string(parent.join("cgroup.subtree_control")) else {
        let mut parts = directory.iter().skip_while(|part| *part != "cgroup");
        let controller = parts.nth(1).unwrap();
        let mut files = FILES_V1.iter();
        return files
            .find(|(name, _)| controller == *name)
            .map_or(Ok(()), |(_, files)| put(files));
    };
    let given: Vec<&str> = control
        .split_whitespace()
        .map(|word| word.trim_start_matches('+'))
        .collect();
    fs::write(parent.join("cgroup.subtree_control"), given.join(" "))?;
    fs::write(directory.join("cgroup.controllers"), given.join(" "))?;
    fs::write(directory.join("cgroup.subtree_control"), "")?;
    fs::write(directory.join("cgroup.kill"), "")?;
    fs::write(directory.join("cgroup.freeze"), "0\n")?;
    let mut files = FILES_V2.iter();
    files.try_for_each(|(name, files)| match given.contains(name) {
        true => put(files),
        false => Ok(()),
    })
}

fn remove(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            return Err(io::Error::from_raw_os_error(
                rustix::io::Errno::BUSY.raw_os_error(),
            ));
        }
        fs::remove_file(entry.path())?;
    }
    fs::remove_dir(directory)
}
