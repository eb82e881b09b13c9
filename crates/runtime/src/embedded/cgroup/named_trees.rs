//! Starts processes in cgroups to which libcontainer does not move them.
//!
//! On cgroup v1, libcontainer moves a container's processes in the trees of the kernel's
//! controllers, but not in those that only have a name, as systemd's. A process that forks them
//! goes there itself for a while.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use plimsoll_core::cgroup::{CgroupName, Driver};

use super::Cgroup;

/// The v1 controllers that libcontainer handles.
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

/// This process is in a container's cgroup for a while.
#[derive(Debug)]
pub(in super::super) struct Visit {
    way_back: Vec<PathBuf>,
}

impl Cgroup {
    /// Moves this process here in the trees that libcontainer does not know.
    pub(in super::super) fn visit_named_trees(&self) -> io::Result<Visit> {
        let layout = self.all.layout();
        let mut way_back = Vec::new();
        for (tree, path) in named_trees(&fs::read_to_string("/proc/self/cgroup")?) {
            let home = CgroupName::parse(path, Driver::Cgroupfs).to_path(Driver::Cgroupfs);
            let directory = |path| layout.directory(tree, path);
            if let (Some(here), Some(home)) = (directory(&self.path), directory(&home)) {
                enter(&here)?;
                way_back.push(home);
            }
        }
        Ok(Visit { way_back })
    }
}

impl Visit {
    /// Goes back to where it was.
    pub(in super::super) fn leave(self) {
        for directory in self.way_back {
            let _ = enter(&directory);
        }
    }
}

fn enter(directory: &Path) -> io::Result<()> {
    let own = std::process::id().to_string();
    fs::write(directory.join("cgroup.procs"), own)
}

/// The trees that libcontainer does not know, and where a process is in them, by the text of its
/// `/proc/<pid>/cgroup`.
fn named_trees(text: &str) -> Vec<(&str, &str)> {
    let lines = text.lines().filter_map(|line| {
        let (_number, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let name = controllers.strip_prefix("name=").unwrap_or(controllers);
        let is_known = name.split(',').all(|one| LIBCONTAINER.contains(&one));
        (!name.is_empty() && !is_known).then_some((name, path))
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_trees_are_distinguished_from_controllers() {
        let v1 = "9:name=systemd:/agent\n8:pids:/\n3:cpu,cpuacct:/x\n2:misc:/m\n0::/\n";
        assert_eq!(named_trees(v1), [("systemd", "/agent"), ("misc", "/m")]);
        assert!(named_trees("0::/agent.service\n").is_empty());
    }
}
