//! The cgroups of one node: a layout, a driver, and the cgroup below which all are.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use plimsoll_core::cgroup::{CgroupName, CgroupPath, Driver, Host, Version};

use super::layout::{Layout, USED_V1, USED_V2, read_controllers};
use super::refusal::Refusal;

/// The cgroups of one node.
///
/// Holds no state but where things are: what is true is in the kernel.
#[derive(Clone, Debug)]
pub struct Cgroups {
    pub(super) layout: Layout,
    pub(super) host: Host,
    pub(super) driver: Driver,
    root: CgroupName,
    pub(super) directories: DirectoryCalls,
}

/// How cgroup directories are made and removed; a plain folder that poses as a cgroup file system
/// does both otherwise.
#[derive(Clone, Copy, Debug)]
pub(super) struct DirectoryCalls {
    pub(super) make: fn(&Path) -> io::Result<()>,
    pub(super) remove: fn(&Path) -> io::Result<()>,
}

const KERNEL: DirectoryCalls = DirectoryCalls {
    make: make_directory,
    remove: remove_directory,
};

fn make_directory(path: &Path) -> io::Result<()> {
    fs::create_dir(path)
}

fn remove_directory(path: &Path) -> io::Result<()> {
    fs::remove_dir(path)
}

impl Cgroups {
    /// Finds the cgroups of the machine below `mount_root` (`/` but in tests) and checks that
    /// `cgroupRoot`, always written as a path, is there with all controllers that pods need.
    pub fn detect(
        mount_root: &Path,
        driver: Driver,
        cgroup_root: &str,
    ) -> Result<Cgroups, Refusal> {
        let layout = Layout::detect(mount_root)?;
        let cgroups = Cgroups {
            host: layout.host(),
            layout,
            driver,
            root: CgroupName::parse(cgroup_root, Driver::Cgroupfs),
            directories: KERNEL,
        };
        cgroups.validate(&cgroups.root)?;
        Ok(cgroups)
    }

    /// Where the trees are.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The generation of the interface.
    pub fn version(&self) -> Version {
        self.host.version
    }

    /// What decides how configs are written here.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The cgroup driver.
    pub fn driver(&self) -> Driver {
        self.driver
    }

    /// `cgroupRoot`.
    pub fn root(&self) -> &CgroupName {
        &self.root
    }

    /// The cgroup of all pods.
    pub fn kubepods(&self) -> CgroupName {
        CgroupName::kubepods(&self.root)
    }

    /// Where a cgroup is below the mount point.
    pub fn path(&self, name: &CgroupName) -> CgroupPath {
        name.to_path(self.driver)
    }

    /// The `cgroup_parent` passed to a runtime: a path for cgroupfs, the name of the slice for
    /// systemd.
    pub fn parent_for_runtime(&self, name: &CgroupName) -> String {
        let path = self.path(name);
        match self.driver {
            Driver::Cgroupfs => path.as_str().to_owned(),
            Driver::Systemd => {
                let last = path.as_str().rsplit('/').next();
                last.unwrap_or_default().to_owned()
            }
        }
    }

    /// Whether the cgroup is there with all controllers that pods need.
    pub fn exists(&self, name: &CgroupName) -> bool {
        self.validate(name).is_ok()
    }

    /// Returns an error if a part of a cgroup is missing.
    ///
    /// Matches v1.36 Validate in pkg/kubelet/cm/cgroup_v1_manager_linux.go and
    /// cgroup_v2_manager_linux.go.
    pub fn validate(&self, name: &CgroupName) -> Result<(), Refusal> {
        match self.version() {
            Version::V1 => self.validate_v1(name),
            Version::V2 => self.validate_v2(name),
        }
    }

    fn validate_v1(&self, name: &CgroupName) -> Result<(), Refusal> {
        let path = self.path(name);
        let mut missing: Vec<PathBuf> = USED_V1
            .iter()
            .filter_map(|controller| self.layout.directory(controller, &path))
            .filter(|directory| !directory.is_dir())
            .collect();
        missing.dedup();
        if missing.is_empty() {
            return Ok(());
        }
        Err(Refusal::MissingPaths {
            cgroup: name.clone(),
            missing,
        })
    }

    fn validate_v2(&self, name: &CgroupName) -> Result<(), Refusal> {
        let path = self.path(name);
        let directories = self.layout.directories(&path);
        let found = directories
            .first()
            .map(|directory| read_controllers(directory));
        let found = match found.transpose() {
            Ok(controllers) => controllers.unwrap_or_default(),
            Err(source) => {
                let cgroup = name.clone();
                return Err(Refusal::ReadControllers { cgroup, source });
            }
        };
        let mut missing: Vec<String> = USED_V2
            .iter()
            .filter(|controller| self.layout.has(controller) && !found.contains(**controller))
            .map(|controller| (*controller).to_owned())
            .collect();
        missing.sort();
        if missing.is_empty() {
            return Ok(());
        }
        Err(Refusal::NotDelegated {
            cgroup: name.clone(),
            missing,
        })
    }
}
