//! Names of block devices.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::{major, minor};

/// Numbers of devices to their names, looked up once each.
#[derive(Debug)]
pub(super) struct Devices {
    mount_root: PathBuf,
    names: BTreeMap<(u32, u32), String>,
    mountinfo: String,
}

impl Devices {
    pub(super) fn new(mount_root: &Path) -> Devices {
        let mountinfo = fs::read_to_string(mount_root.join("proc/self/mountinfo"));
        Devices {
            mount_root: mount_root.to_owned(),
            names: BTreeMap::new(),
            mountinfo: mountinfo.unwrap_or_default(),
        }
    }

    /// The name of a block device: `/dev/sda`. Empty where the kernel does not know it.
    pub(super) fn block(&mut self, major: u32, minor: u32) -> &str {
        let root = &self.mount_root;
        self.names.entry((major, minor)).or_insert_with(|| {
            let path = root.join(format!("sys/dev/block/{major}:{minor}/uevent"));
            let text = fs::read_to_string(path).unwrap_or_default();
            let name = text.lines().find_map(|line| line.strip_prefix("DEVNAME="));
            name.map(|name| format!("/dev/{name}")).unwrap_or_default()
        })
    }

    /// What the file system with that device number was mounted from.
    pub(super) fn file_system<'a>(&'a self, device: u64) -> &'a str {
        let number = format!("{}:{}", major(device), minor(device));
        let source = |line: &'a str| {
            let (mount, file_system) = line.split_once(" - ")?;
            let is_it = mount.split(' ').nth(2)? == number;
            file_system.split(' ').nth(1).filter(|_| is_it)
        };
        self.mountinfo.lines().find_map(source).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_named_as_the_kernel_does() {
        let dir = tempfile::tempdir().unwrap();
        let sys = dir.path().join("sys/dev/block/8:1");
        fs::create_dir_all(&sys).unwrap();
        fs::write(sys.join("uevent"), "MAJOR=8\nDEVNAME=sda1\n").unwrap();
        let proc = dir.path().join("proc/self");
        fs::create_dir_all(&proc).unwrap();
        let mounts = "22 27 0:21 / /proc rw - proc proc rw\n27 1 8:1 / / rw - ext4 /dev/root rw\n";
        fs::write(proc.join("mountinfo"), mounts).unwrap();
        let mut devices = Devices::new(dir.path());
        assert_eq!(devices.block(8, 1), "/dev/sda1");
        assert_eq!(devices.block(8, 2), "");
        assert_eq!(devices.file_system(rustix::fs::makedev(8, 1)), "/dev/root");
        assert_eq!(devices.file_system(rustix::fs::makedev(9, 1)), "");
    }
}
