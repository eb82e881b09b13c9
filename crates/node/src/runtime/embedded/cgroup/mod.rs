//! The cgroups of sandboxes and containers.
//!
//! What is written into them is core's ([`plimsoll_core::cgroup::Host::render`]); this module knows
//! where the trees are mounted ([`Trees`]) and what is done with one cgroup in all of them
//! ([`Cgroup`]): made, written, read, emptied, removed. Which devices a container may use is decided
//! in [`devices`].

pub(super) mod devices;
mod devices_v2;
mod usage;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use plimsoll_core::cgroup::{Host, HugePageSize, Version};
use plimsoll_core::resources::Bytes;
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

/// The key of the one tree of cgroup v2.
const UNIFIED: &str = "";

/// The controllers of v1 that libcontainer puts processes under by itself.
const LIBCONTAINER: [&str; 12] = [
    "cpu",
    "cpuacct",
    "cpuset",
    "devices",
    "hugetlb",
    "memory",
    "pids",
    "perf_event",
    "blkio",
    "net_prio",
    "net_cls",
    "freezer",
];

/// Where the trees of cgroups are mounted.
#[derive(Clone, Debug)]
pub(super) struct Trees {
    /// How values are written.
    pub(super) host: Host,
    /// Mount points by controller; a tree of several controllers is listed under each of them.
    mounts: BTreeMap<String, PathBuf>,
}

/// One cgroup, in all trees.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Cgroup {
    /// Its path below the mount points.
    pub(super) path: String,
    /// Mount points by controller.
    mounts: BTreeMap<String, PathBuf>,
}

impl Trees {
    /// Finds the trees of this machine.
    pub(super) fn read() -> io::Result<Trees> {
        let mounts = parse_mounts(&fs::read_to_string("/proc/self/mountinfo")?);
        let version = if mounts.contains_key(UNIFIED) {
            Version::V2
        } else {
            Version::V1
        };
        let has_hugetlb = match version {
            Version::V1 => mounts.contains_key("hugetlb"),
            Version::V2 => fs::read_to_string(mounts[UNIFIED].join("cgroup.controllers"))?
                .split_ascii_whitespace()
                .any(|controller| controller == "hugetlb"),
        };
        let host = Host {
            version,
            huge_page_sizes: read_huge_page_sizes()?,
            has_hugetlb,
        };
        Ok(Trees { host, mounts })
    }

    /// The cgroup of that path, which need not be there.
    pub(super) fn cgroup(&self, path: &str) -> Cgroup {
        Cgroup {
            path: path.to_owned(),
            mounts: self.mounts.clone(),
        }
    }
}

/// Reads mount points by controller. Where a v1 tree has controllers the v2 tree cannot have any,
/// so that a hybrid machine counts as v1 and its v2 tree is left alone.
fn parse_mounts(mountinfo: &str) -> BTreeMap<String, PathBuf> {
    let mut v1 = BTreeMap::new();
    let mut v2 = None;
    for line in mountinfo.lines() {
        let Some((left, right)) = line.split_once(" - ") else {
            continue;
        };
        let Some(mount_point) = left.split(' ').nth(4).map(PathBuf::from) else {
            continue;
        };
        let mut right = right.split(' ');
        let (kind, options) = (right.next(), right.nth(1).unwrap_or_default());
        match kind {
            Some("cgroup2") => v2 = v2.or(Some(mount_point)),
            Some("cgroup") => {
                for option in options.split(',') {
                    let name = option.strip_prefix("name=").unwrap_or(option);
                    if !matches!(name, "rw" | "ro" | "xattr" | "clone_children" | "noprefix") {
                        let shortest = v1.entry(name.to_owned());
                        let kept: &mut PathBuf = shortest.or_insert_with(|| mount_point.clone());
                        if mount_point.as_os_str().len() < kept.as_os_str().len() {
                            kept.clone_from(&mount_point);
                        }
                    }
                }
            }
            _ => {}
        }
    }
    match v2 {
        Some(mount_point) if v1.is_empty() => [(UNIFIED.to_owned(), mount_point)].into(),
        _ => v1,
    }
}

fn read_huge_page_sizes() -> io::Result<Vec<HugePageSize>> {
    let entries = match fs::read_dir("/sys/kernel/mm/hugepages") {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut sizes = Vec::new();
    for entry in entries {
        let name = entry?.file_name();
        let size = name.to_str().and_then(|name| {
            let kib = name.strip_prefix("hugepages-")?.strip_suffix("kB")?;
            kib.parse::<i64>().ok()
        });
        sizes.extend(size.map(|kib| HugePageSize(Bytes(kib * 1024))));
    }
    sizes.sort();
    Ok(sizes)
}

impl Cgroup {
    pub(super) fn is_v2(&self) -> bool {
        self.mounts.contains_key(UNIFIED)
    }

    /// Its directories, one per tree.
    pub(super) fn dirs(&self) -> Vec<PathBuf> {
        let mut dirs: Vec<PathBuf> = self
            .mounts
            .values()
            .map(|mount| self.below(mount))
            .collect();
        dirs.sort();
        dirs.dedup();
        dirs
    }

    fn below(&self, mount: &Path) -> PathBuf {
        mount.join(self.path.trim_start_matches('/'))
    }

    /// The directory that holds the files of a controller.
    fn dir(&self, controller: &str) -> Option<PathBuf> {
        let mount = self
            .mounts
            .get(UNIFIED)
            .or_else(|| self.mounts.get(controller));
        mount.map(|mount| self.below(mount))
    }

    /// Where a file is, in the tree of its controller (`cpu` for `cpu.shares`).
    fn file(&self, name: &str) -> Option<PathBuf> {
        let controller = name.split('.').next().unwrap_or_default();
        self.dir(controller).map(|dir| dir.join(name))
    }

    /// Makes it, and what is missing above it.
    pub(super) fn create(&self) -> io::Result<()> {
        for (controller, mount) in &self.mounts {
            if controller == "cpuset" {
                create_with_cpus(mount, &self.path)?;
            } else if controller == UNIFIED {
                create_with_controllers(mount, &self.path)?;
            } else {
                fs::create_dir_all(self.below(mount))?;
            }
        }
        Ok(())
    }

    /// Writes files, each into the tree of its controller. Files that the kernel does not have are
    /// an error, except where the whole controller is missing.
    pub(super) fn write(&self, files: &BTreeMap<String, String>) -> Result<(), WriteError> {
        for (name, text) in files {
            let Some(path) = self.file(name) else {
                continue;
            };
            fs::write(&path, text).map_err(|source| WriteError {
                path,
                text: text.clone(),
                source,
            })?;
        }
        Ok(())
    }

    /// Writes one file if the kernel has it.
    pub(super) fn write_if_present(&self, name: &str, text: &str) -> Result<(), WriteError> {
        match self.file(name) {
            Some(path) if path.exists() => self.write(&[(name.to_owned(), text.to_owned())].into()),
            _ => Ok(()),
        }
    }

    /// Reads a file; `None` if there is none.
    pub(super) fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.file(name)?).ok()
    }

    /// Moves a process here.
    pub(super) fn add(&self, pid: i32) -> io::Result<()> {
        for dir in self.dirs() {
            fs::write(dir.join("cgroup.procs"), pid.to_string())?;
        }
        Ok(())
    }

    /// Moves this process here in the trees that libcontainer does not know, so that those it
    /// forks begin here: libcontainer knows the trees of the kernel's controllers, but not
    /// systemd's of v1, say.
    pub(super) fn visit_named_trees(&self) -> io::Result<Visit> {
        let mut way_back = Vec::new();
        let now = fs::read_to_string("/proc/self/cgroup")?;
        for line in now.lines() {
            let mut parts = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
                continue;
            };
            let name = controllers.strip_prefix("name=").unwrap_or(controllers);
            let is_known = name.split(',').all(|one| LIBCONTAINER.contains(&one));
            if let Some(mount) = self.mounts.get(name)
                && name != UNIFIED
                && !is_known
            {
                write_own_pid(&self.below(mount))?;
                way_back.push(mount.join(path.trim_start_matches('/')));
            }
        }
        Ok(Visit { way_back })
    }

    /// How often the kernel has killed a process here for want of memory.
    pub(super) fn oom_kills(&self) -> u64 {
        let file = if self.is_v2() {
            "memory.events"
        } else {
            "memory.oom_control"
        };
        let text = self.read(file).unwrap_or_default();
        usage::field(&text, "oom_kill").unwrap_or(0)
    }

    /// The processes in it and in the cgroups below it.
    pub(super) fn pids(&self) -> Vec<i32> {
        let Some(dir) = self.dirs().into_iter().next() else {
            return Vec::new();
        };
        let mut pids = Vec::new();
        collect_pids(&dir, &mut pids);
        pids
    }

    /// Kills all that run in it, and waits until they are gone or time is up.
    pub(super) fn kill_all(&self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        loop {
            let pids = self.pids();
            if pids.is_empty() {
                return true;
            }
            for pid in pids.into_iter().filter_map(Pid::from_raw) {
                let _ = kill_process(pid, Signal::KILL);
            }
            if Instant::now() >= deadline {
                return false;
            }
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// Removes it with the cgroups below it. One that is gone is no error.
    pub(super) fn remove(&self) -> io::Result<()> {
        for dir in self.dirs() {
            remove_tree(&dir)?;
        }
        Ok(())
    }
}

/// This process is in a container's cgroup for a while.
#[derive(Debug)]
pub(super) struct Visit {
    way_back: Vec<PathBuf>,
}

impl Visit {
    /// Goes back to where it was.
    pub(super) fn leave(self) {
        for dir in self.way_back {
            let _ = write_own_pid(&dir);
        }
    }
}

fn write_own_pid(dir: &Path) -> io::Result<()> {
    fs::write(dir.join("cgroup.procs"), std::process::id().to_string())
}

/// A file of a cgroup that could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {text:?} to {}", .path.display())]
pub(super) struct WriteError {
    path: PathBuf,
    text: String,
    #[source]
    source: io::Error,
}

/// A cpuset takes no process before it has cpus and memory nodes, which cgroup v1 leaves empty.
fn create_with_cpus(mount: &Path, path: &str) -> io::Result<()> {
    let mut dir = mount.to_owned();
    for part in path.split('/').filter(|part| !part.is_empty()) {
        let parent = dir.clone();
        dir.push(part);
        fs::create_dir_all(&dir)?;
        for file in ["cpuset.cpus", "cpuset.mems"] {
            if fs::read_to_string(dir.join(file))?.trim().is_empty() {
                fs::write(dir.join(file), fs::read_to_string(parent.join(file))?)?;
            }
        }
    }
    Ok(())
}

/// Every cgroup on the way passes on all controllers that it has.
fn create_with_controllers(mount: &Path, path: &str) -> io::Result<()> {
    let mut dir = mount.to_owned();
    for part in path.split('/').filter(|part| !part.is_empty()) {
        for controller in fs::read_to_string(dir.join("cgroup.controllers"))?.split_whitespace() {
            // One that cannot be passed on (a real-time cpu, say) is missed when it is written.
            let _ = fs::write(dir.join("cgroup.subtree_control"), format!("+{controller}"));
        }
        dir.push(part);
        fs::create_dir_all(&dir)?;
    }
    Ok(())
}

fn collect_pids(dir: &Path, pids: &mut Vec<i32>) {
    let text = fs::read_to_string(dir.join("cgroup.procs")).unwrap_or_default();
    pids.extend(text.lines().filter_map(|line| line.parse::<i32>().ok()));
    for child in children(dir) {
        collect_pids(&child, pids);
    }
}

fn remove_tree(dir: &Path) -> io::Result<()> {
    for child in children(dir) {
        remove_tree(&child)?;
    }
    match fs::remove_dir(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn children(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str = "\
31 23 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw
32 31 0:27 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
33 31 0:28 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
34 31 0:29 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,xattr,name=systemd
35 31 0:30 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
36 31 0:28 / /mnt/long/path/memory rw,relatime - cgroup cgroup rw,memory
";

    #[test]
    fn hybrid_machines_count_as_v1_and_the_shortest_mount_wins() {
        let mounts = parse_mounts(HYBRID);
        let found: Vec<(&str, &str)> = mounts
            .iter()
            .map(|(name, path)| (name.as_str(), path.to_str().unwrap()))
            .collect();
        assert_eq!(
            found,
            [
                ("cpu", "/sys/fs/cgroup/cpu,cpuacct"),
                ("cpuacct", "/sys/fs/cgroup/cpu,cpuacct"),
                ("memory", "/sys/fs/cgroup/memory"),
                ("systemd", "/sys/fs/cgroup/systemd"),
            ]
        );
    }

    #[test]
    fn a_file_is_looked_for_in_the_tree_of_its_controller() {
        let v1 = Cgroup {
            path: "/pods/a".to_owned(),
            mounts: parse_mounts(HYBRID),
        };
        let file = |cgroup: &Cgroup, name| cgroup.file(name).map(|p| p.display().to_string());
        let shares = file(&v1, "cpu.shares");
        assert_eq!(
            shares.as_deref(),
            Some("/sys/fs/cgroup/cpu,cpuacct/pods/a/cpu.shares")
        );
        assert_eq!(file(&v1, "hugetlb.2MB.limit_in_bytes"), None);
        assert_eq!(v1.dirs().len(), 3);
        let unified = "35 31 0:30 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw\n";
        let v2 = Cgroup {
            path: "/pods/a".to_owned(),
            mounts: parse_mounts(unified),
        };
        let max = file(&v2, "memory.max");
        assert_eq!(max.as_deref(), Some("/sys/fs/cgroup/pods/a/memory.max"));
    }
}
