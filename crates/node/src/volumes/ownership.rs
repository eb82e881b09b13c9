//! Sets the group of a volume to the pod's `fsGroup`.
//!
//! Matches v1.36 pkg/volume/volume_linux.go.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use k8s_openapi::api::core::v1::Pod;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Gid, Mode, OFlags, chmodat, chownat, fstat, openat};
use rustix::io::Errno;

const READ_WRITE: u32 = 0o660;
const READ_ONLY: u32 = 0o440;
const EXECUTE: u32 = 0o110;
const SETGID: u32 = 0o2000;

/// Files of all kinds as they are, links too.
const ANYTHING: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const LISTING: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);

/// The group of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ownership {
    /// `fsGroup`.
    pub group: u32,
    /// Whether the group may only read.
    pub is_read_only: bool,
}

impl Ownership {
    /// The ownership that the pod requests; `None` where it has no `fsGroup`.
    pub fn of(pod: &Pod, is_read_only: bool) -> Option<Ownership> {
        let context = pod.spec.as_ref()?.security_context.as_ref()?;
        let group = u32::try_from(context.fs_group?).ok()?;
        Some(Ownership {
            group,
            is_read_only,
        })
    }

    /// Gives everything in the directory to the group, the directory itself last, so that it is
    /// right only once all is. What cannot be changed is passed over, as upstream does.
    pub fn apply(self, dir: &Path) -> io::Result<()> {
        let opened = openat(CWD, dir, ANYTHING, Mode::empty())?;
        self.walk(&opened, dir)
    }

    /// Whether the directory itself is as [`Self::apply`] leaves it.
    pub fn is_applied(self, dir: &Path) -> bool {
        let Ok(metadata) = fs::metadata(dir) else {
            return false;
        };
        let wanted = self.mask(true);
        metadata.is_dir() && metadata.gid() == self.group && metadata.mode() & wanted == wanted
    }

    fn mask(self, is_dir: bool) -> u32 {
        let mask = match self.is_read_only {
            true => READ_ONLY,
            false => READ_WRITE,
        };
        match is_dir {
            true => mask | EXECUTE | SETGID,
            false => mask,
        }
    }

    /// Goes by descriptors: a container that writes to the volume meanwhile cannot lead it out.
    fn walk(self, opened: &OwnedFd, path: &Path) -> io::Result<()> {
        let stat = fstat(opened)?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        if kind == FileType::Directory {
            for entry in Dir::new(openat(opened, ".", LISTING, Mode::empty())?)? {
                let entry = entry?;
                let name = entry.file_name();
                if name == c"." || name == c".." {
                    continue;
                }
                match openat(opened, name, ANYTHING, Mode::empty()) {
                    Err(Errno::NOENT) => {}
                    inner => self.walk(&inner?, &path.join(OsStr::from_bytes(name.to_bytes())))?,
                }
            }
        }
        if let Err(error) = self.change(opened, kind, stat.st_mode) {
            tracing::warn!(path = %path.display(), group = self.group, %error,
                "failed to set fsGroup of volume file");
        }
        Ok(())
    }

    fn change(self, opened: &OwnedFd, kind: FileType, mode: u32) -> Result<(), Errno> {
        let group = Some(Gid::from_raw(self.group));
        let owned = chownat(opened, "", None, group, AtFlags::EMPTY_PATH);
        // The mode of a link is that of nothing.
        if kind == FileType::Symlink {
            return owned;
        }
        let mode = (mode & 0o7777) | self.mask(kind == FileType::Directory);
        let through = format!("/proc/self/fd/{}", opened.as_raw_fd());
        let changed = chmodat(CWD, through, Mode::from_raw_mode(mode), AtFlags::empty());
        owned.and(changed)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().mode() & 0o7777
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn tree() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let outside = dir.path().join("outside");
        fs::write(&outside, "").unwrap();
        set_mode(&outside, 0o600);
        let volume = dir.path().join("volume");
        fs::create_dir_all(volume.join("sub")).unwrap();
        fs::write(volume.join("sub/file"), "").unwrap();
        set_mode(&volume, 0o755);
        set_mode(&volume.join("sub"), 0o700);
        set_mode(&volume.join("sub/file"), 0o600);
        symlink(&outside, volume.join("link")).unwrap();
        dir
    }

    #[test]
    fn permissions_are_added_and_directories_pass_the_group_on() {
        for (is_read_only, dirs, files) in [(false, 0o2770, 0o660), (true, 0o2750, 0o640)] {
            let dir = tree();
            let volume = dir.path().join("volume");
            let group = fs::metadata(&volume).unwrap().gid();
            let wanted = Ownership {
                group,
                is_read_only,
            };
            assert!(!wanted.is_applied(&volume));
            wanted.apply(&volume).unwrap();
            assert!(wanted.is_applied(&volume));
            assert_eq!(mode(&volume.join("sub")), dirs);
            assert_eq!(mode(&volume.join("sub/file")), files);
            assert_eq!(mode(&dir.path().join("outside")), 0o600);
        }
    }

    #[test]
    #[ignore = "tier: root"]
    fn fs_group_owns_all_files_except_link_targets() {
        let dir = tree();
        let volume = dir.path().join("volume");
        let wanted = Ownership {
            group: 4242,
            is_read_only: false,
        };
        wanted.apply(&volume).unwrap();
        for path in ["", "sub", "sub/file", "link"] {
            let metadata = fs::symlink_metadata(volume.join(path)).unwrap();
            assert_eq!(metadata.gid(), 4242, "{path}");
        }
        assert_eq!(fs::metadata(dir.path().join("outside")).unwrap().gid(), 0);
    }
}
