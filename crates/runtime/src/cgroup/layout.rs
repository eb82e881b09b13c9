//! The cgroup hierarchies of the kernel and their mount points.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_core::cgroup::{CgroupPath, Host, HugePageSize, Version};
use plimsoll_core::resources::Bytes;

use super::mounts::{CgroupMount, MountKind, parse_mountinfo};
use super::refusal::Refusal;

/// The cgroup file systems of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    version: Version,
    /// Where each controller is; one and the same place for all of cgroup v2.
    mounts: BTreeMap<String, PathBuf>,
    /// A tree of v2 without controllers beside those of v1. The agent makes no cgroups there, but
    /// runc does, with those above them.
    beside: Option<PathBuf>,
    huge_page_sizes: Vec<HugePageSize>,
}

/// Where systems mount their cgroups.
const MOUNT_POINT: &str = "sys/fs/cgroup";
/// Without these no pod can be limited; upstream starts without the others.
const NEEDED_V1: [&str; 4] = ["cpu", "cpuacct", "cpuset", "memory"];
const NEEDED_V2: [&str; 3] = ["cpu", "memory", "pids"];
/// The controllers a cgroup for pods must have, of those that the root has.
pub(super) const USED_V1: [&str; 7] = [
    "cpu", "cpuacct", "cpuset", "memory", "systemd", "pids", "hugetlb",
];
pub(super) const USED_V2: [&str; 5] = ["cpu", "cpuset", "memory", "hugetlb", "pids"];

impl Layout {
    /// Reads the layout from `/proc` and `/sys` below the mount root (`/` but in tests). A machine
    /// with both generations uses cgroup v1, as upstream's library does.
    pub fn detect(mount_root: &Path) -> Result<Layout, Refusal> {
        let path = mount_root.join("proc/self/mountinfo");
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(source) => return Err(Refusal::ReadMounts { path, source }),
        };
        let mounts = parse_mountinfo(&text).into_iter().map(|mount| CgroupMount {
            point: below(mount_root, &mount.point),
            ..mount
        });
        let layout = Layout {
            huge_page_sizes: read_huge_page_sizes(mount_root),
            ..Layout::of_mounts(mounts.collect(), &mount_root.join(MOUNT_POINT))?
        };
        layout.check_controllers()?;
        Ok(layout)
    }

    fn of_mounts(mounts: Vec<CgroupMount>, unified: &Path) -> Result<Layout, Refusal> {
        let is_unified = mounts
            .iter()
            .any(|mount| mount.kind == MountKind::V2 && mount.point == unified);
        let mut layout = Layout {
            version: if is_unified { Version::V2 } else { Version::V1 },
            mounts: BTreeMap::new(),
            beside: None,
            huge_page_sizes: Vec::new(),
        };
        if is_unified {
            let controllers = read_controllers(unified).unwrap_or_default();
            let mount = |controller| (controller, unified.to_owned());
            layout.mounts = controllers.into_iter().map(mount).collect();
            return Ok(layout);
        }
        for mount in mounts {
            let MountKind::V1(controllers) = mount.kind else {
                layout.beside.get_or_insert(mount.point);
                continue;
            };
            for controller in controllers {
                let point = layout
                    .mounts
                    .entry(controller)
                    .or_insert(mount.point.clone());
                // A tree may be mounted more than once, in part too; the shortest is the real one.
                if mount.point.as_os_str().len() < point.as_os_str().len() {
                    point.clone_from(&mount.point);
                }
            }
        }
        if layout.mounts.is_empty() {
            return Err(Refusal::NotMounted {
                point: unified.to_owned(),
            });
        }
        Ok(layout)
    }

    fn check_controllers(&self) -> Result<(), Refusal> {
        let needed: &[&str] = match self.version {
            Version::V1 => &NEEDED_V1,
            Version::V2 => &NEEDED_V2,
        };
        let missing: Vec<String> = needed
            .iter()
            .filter(|controller| !self.has(controller))
            .map(|controller| (*controller).to_owned())
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        Err(Refusal::MissingControllers { missing })
    }

    /// The generation of the interface.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Whether there is such a controller.
    pub fn has(&self, controller: &str) -> bool {
        self.mounts.contains_key(controller)
    }

    /// What decides how configs are written here.
    pub fn host(&self) -> Host {
        Host {
            version: self.version,
            huge_page_sizes: self.huge_page_sizes.clone(),
            has_hugetlb: self.has("hugetlb"),
        }
    }

    /// The directory of a cgroup in the tree of a controller.
    pub fn directory(&self, controller: &str, cgroup: &CgroupPath) -> Option<PathBuf> {
        let mount = self.mounts.get(controller)?;
        Some(below(mount, Path::new(cgroup.as_str())))
    }

    /// The directories of a cgroup, one per tree.
    pub fn directories(&self, cgroup: &CgroupPath) -> Vec<PathBuf> {
        self.mount_points()
            .into_iter()
            .map(|mount| below(mount, Path::new(cgroup.as_str())))
            .collect()
    }

    /// As [`Self::directories`], with that of the tree in which only runtimes make cgroups.
    pub(super) fn directories_to_remove(&self, cgroup: &CgroupPath) -> Vec<PathBuf> {
        let beside = self.beside.as_deref();
        let beside = beside.map(|mount| below(mount, Path::new(cgroup.as_str())));
        self.directories(cgroup).into_iter().chain(beside).collect()
    }

    /// Where trees are mounted, each once.
    pub(super) fn mount_points(&self) -> BTreeSet<&Path> {
        self.mounts.values().map(PathBuf::as_path).collect()
    }

    /// The directory of a cgroup in the tree that has the file: its name begins with the
    /// controller's.
    pub(super) fn directory_of_file(&self, file: &str, cgroup: &CgroupPath) -> Option<PathBuf> {
        let controller = file
            .split_once('.')
            .map_or(file, |(controller, _)| controller);
        self.directory(controller, cgroup)
    }
}

/// Whether systemd runs the machine below the mount root. Slices are then its own: those that are
/// made as directories, without its knowledge, it may take controllers from.
pub fn is_systemd_running(mount_root: &Path) -> bool {
    mount_root.join("run/systemd/system").is_dir()
}

/// The path inside another one, whether or not it begins with a slash.
pub(super) fn below(root: &Path, path: &Path) -> PathBuf {
    match path.strip_prefix("/") {
        Ok(relative) if relative.as_os_str().is_empty() => root.to_owned(),
        Ok(relative) => root.join(relative),
        Err(_) => root.join(path),
    }
}

/// The controllers that a cgroup of cgroup v2 has.
pub(super) fn read_controllers(directory: &Path) -> std::io::Result<BTreeSet<String>> {
    let text = fs::read_to_string(directory.join("cgroup.controllers"))?;
    Ok(text.split_whitespace().map(str::to_owned).collect())
}

/// From `/sys/kernel/mm/hugepages/hugepages-2048kB`; none where the kernel has no huge pages.
fn read_huge_page_sizes(mount_root: &Path) -> Vec<HugePageSize> {
    let directory = mount_root.join("sys/kernel/mm/hugepages");
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    let mut sizes: Vec<HugePageSize> = entries
        .filter_map(|entry| parse_huge_page_directory(entry.ok()?.file_name().to_str()?))
        .collect();
    sizes.sort();
    sizes
}

fn parse_huge_page_directory(name: &str) -> Option<HugePageSize> {
    let kibibytes: i64 = name
        .strip_prefix("hugepages-")?
        .strip_suffix("kB")?
        .parse()
        .ok()?;
    Some(HugePageSize(Bytes(kibibytes.checked_mul(1024)?)))
}
