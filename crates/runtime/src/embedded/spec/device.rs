//! Devices of a container.

use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::wire::Device;

/// A device of the machine, and where a container finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct HostDevice {
    pub(in super::super) host_path: PathBuf,
    pub(in super::super) container_path: PathBuf,
    pub(in super::super) is_block: bool,
    pub(in super::super) major: u32,
    pub(in super::super) minor: u32,
    mode: u32,
    uid: u32,
    gid: u32,
    /// Of `r`, `w` and `m`.
    pub(in super::super) permissions: String,
}

impl HostDevice {
    pub(super) fn json(&self) -> Value {
        json!({
            "path": self.container_path,
            "type": if self.is_block { "b" } else { "c" },
            "major": self.major,
            "minor": self.minor,
            "fileMode": self.mode,
            "uid": self.uid,
            "gid": self.gid,
        })
    }
}

/// Looks up devices that a container names; directories stand for all devices below them.
pub(in super::super) fn host_devices(wanted: &[Device]) -> io::Result<Vec<HostDevice>> {
    let mut found = Vec::new();
    for device in wanted {
        let permissions = match device.permissions.as_str() {
            "" => "rwm",
            permissions => permissions,
        };
        let (host, inside) = (
            Path::new(&device.host_path),
            Path::new(&device.container_path),
        );
        let describe = |error: io::Error| {
            io::Error::new(error.kind(), format!("device {}: {error}", host.display()))
        };
        collect(host, inside, permissions, &mut found).map_err(describe)?;
    }
    Ok(found)
}

/// All devices of the machine, for privileged containers.
pub(in super::super) fn all_devices() -> io::Result<Vec<HostDevice>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/dev")? {
        let path = entry?.path();
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        // A container has its own of these.
        let is_own = matches!(
            name,
            "pts" | "shm" | "fd" | "mqueue" | "console" | "ptmx" | ".lxc" | ".lxd-mounts" | ".udev"
        );
        // Links would lead to what is listed anyway.
        if !is_own && !path.is_symlink() {
            collect(&path, &path, "rwm", &mut found)?;
        }
    }
    Ok(found)
}

fn collect(
    host: &Path,
    inside: &Path,
    permissions: &str,
    found: &mut Vec<HostDevice>,
) -> io::Result<()> {
    let metadata = match host.metadata() {
        // A device may vanish while the directory is read.
        Err(error) if error.kind() == io::ErrorKind::NotFound && !found.is_empty() => return Ok(()),
        other => other?,
    };
    let kind = metadata.file_type();
    if kind.is_dir() {
        for entry in std::fs::read_dir(host)? {
            let entry = entry?;
            if !entry.file_type()?.is_symlink() {
                collect(
                    &entry.path(),
                    &inside.join(entry.file_name()),
                    permissions,
                    found,
                )?;
            }
        }
    } else if kind.is_block_device() || kind.is_char_device() {
        found.push(HostDevice {
            host_path: host.to_owned(),
            container_path: inside.to_owned(),
            is_block: kind.is_block_device(),
            major: rustix::fs::major(metadata.rdev()),
            minor: rustix::fs::minor(metadata.rdev()),
            mode: metadata.mode() & 0o7777,
            uid: metadata.uid(),
            gid: metadata.gid(),
            permissions: permissions.to_owned(),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_looked_up_by_its_path_on_the_machine() {
        let wanted = Device {
            container_path: "/dev/nothing".to_owned(),
            host_path: "/dev/null".to_owned(),
            permissions: "r".to_owned(),
        };
        let found = host_devices(&[wanted]).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].major, found[0].minor, found[0].is_block),
            (1, 3, false)
        );
        assert_eq!(found[0].json()["path"], "/dev/nothing");
        let missing = Device {
            host_path: "/dev/no-such-device".to_owned(),
            ..Device::default()
        };
        let error = host_devices(&[missing]).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("device /dev/no-such-device: ")
        );
    }
}
