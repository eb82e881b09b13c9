//! Parts of volumes, without leaving the volume.
//!
//! A container may have written to the volume, links to other places of the node among it. So a
//! path is resolved once, must then be inside the volume, is opened again without following any
//! link, and what was opened is mounted beside the volume for the runtime to take: no process can put
//! anything else in its place. Matches v1.36 pkg/volume/util/subpath.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Component, Path, PathBuf};

use plimsoll_runtime::mount_table::MountTable;
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fchmod, fstat, mkdirat, openat2};

use crate::volumes::mount_point;

/// A part of a volume that a container mounts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubPath {
    /// Where the volume is.
    pub volume_path: PathBuf,
    /// What is wanted of it, without `..` and not from the root.
    pub path: String,
    /// Where it is mounted for the runtime:
    /// `pods/<uid>/volume-subpaths/<volume>/<container>/<index of the mount>`.
    pub target: PathBuf,
}

/// The largest file of variables that is read.
const LARGEST_FILE: u64 = 1 << 20;

impl SubPath {
    /// Makes the directory if nothing is there, with the mode of the volume itself, because the
    /// runtime would make it with one that the container cannot use.
    pub fn make(&self) -> io::Result<()> {
        if self.volume_path.join(&self.path).try_exists()? {
            return Ok(());
        }
        let base = fs::canonicalize(&self.volume_path)?;
        let mode = Mode::from_raw_mode(fstat(&open_base(&base)?)?.st_mode) & all_modes();
        let mut existing = base.clone();
        let mut missing = Vec::new();
        for part in parts(&self.path) {
            let next = existing.join(part);
            if missing.is_empty() && next.try_exists()? {
                existing = fs::canonicalize(next)?;
            } else {
                missing.push(part);
            }
        }
        let mut parent = open_inside(&base, &existing)?;
        for part in missing {
            mkdirat(&parent, part, mode)?;
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
            parent = openat2(&parent, part, flags, Mode::empty(), resolve)?;
            // The mode above was cut by the umask.
            fchmod(&parent, mode)?;
        }
        Ok(())
    }

    /// Mounts it at the target, unless it is there already; returns the target.
    pub fn bind(&self) -> io::Result<PathBuf> {
        let fd = open_in_volume(&self.volume_path, &self.path)?;
        let wanted = fstat(&fd)?;
        if MountTable::read()?.at(&self.target).is_some() {
            let mounted = rustix::fs::lstat(&self.target)?;
            if (mounted.st_dev, mounted.st_ino) == (wanted.st_dev, wanted.st_ino) {
                return Ok(self.target.clone());
            }
            mount_point::unmount(&self.target)?;
        }
        if let Some(parent) = self.target.parent() {
            mount_point::make_dirs(parent, 0o750)?;
        }
        let made = if FileType::from_raw_mode(wanted.st_mode) == FileType::Directory {
            fs::create_dir(&self.target)
        } else {
            // A file can be the mount point of anything that is no directory.
            File::create_new(&self.target).map(drop)
        };
        match made {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let source = format!("/proc/self/fd/{}", fd.as_raw_fd());
        mount_point::bind(Path::new(&source), &self.target)?;
        Ok(self.target.clone())
    }
}

/// Reads a text file of a volume.
pub fn read_in_volume(volume: &Path, path: &str) -> io::Result<String> {
    let relative = Path::new(path);
    let is_plain = relative
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    if !is_plain {
        return Err(io::Error::new(
            ErrorKind::InvalidInput,
            "path leaves the volume",
        ));
    }
    let base = open_base(&fs::canonicalize(volume)?)?;
    // Links count from the root of the volume, as they do for the container that wrote them.
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(openat2(&base, relative, flags, Mode::empty(), resolve)?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "not a file"));
    }
    let mut text = String::new();
    file.take(LARGEST_FILE).read_to_string(&mut text)?;
    Ok(text)
}

/// Opens the target of a path in the volume, which must be in the volume too.
fn open_in_volume(volume: &Path, path: &str) -> io::Result<OwnedFd> {
    let base = fs::canonicalize(volume)?;
    let real = fs::canonicalize(volume.join(path))?;
    open_inside(&base, &real)
}

/// Opens a path without links that must be in the base.
fn open_inside(base: &Path, real: &Path) -> io::Result<OwnedFd> {
    let relative = real.strip_prefix(base).map_err(|_| {
        let text = format!("{} is not within {}", real.display(), base.display());
        io::Error::new(ErrorKind::PermissionDenied, text)
    })?;
    let relative = match relative.as_os_str().is_empty() {
        true => Path::new("."),
        false => relative,
    };
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat2(
        open_base(base)?,
        relative,
        flags,
        Mode::empty(),
        resolve,
    )?)
}

fn open_base(base: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(CWD, base, flags, Mode::empty())?)
}

fn parts(path: &str) -> impl Iterator<Item = &str> {
    path.split('/')
        .filter(|part| !part.is_empty() && *part != ".")
}

fn all_modes() -> Mode {
    Mode::RWXU | Mode::RWXG | Mode::RWXO | Mode::SUID | Mode::SGID | Mode::SVTX
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn volume() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let volume = dir.path().join("volume");
        fs::create_dir_all(volume.join("data/deep")).unwrap();
        fs::write(volume.join("data/file"), "text").unwrap();
        fs::create_dir(dir.path().join("secret")).unwrap();
        fs::write(dir.path().join("secret/file"), "secret").unwrap();
        (dir, volume)
    }

    fn part(volume: &Path, path: &str) -> SubPath {
        SubPath {
            volume_path: volume.to_owned(),
            path: path.to_owned(),
            target: volume.join("../target/0"),
        }
    }

    #[test]
    fn missing_directories_are_made_with_the_mode_of_the_volume() {
        let (_dir, volume) = volume();
        fs::set_permissions(&volume, fs::Permissions::from_mode(0o2777)).unwrap();
        part(&volume, "data/a//b/.").make().unwrap();
        for made in ["data/a", "data/a/b"] {
            let mode = fs::metadata(volume.join(made))
                .unwrap()
                .permissions()
                .mode();
            assert_eq!(mode & 0o7777, 0o2777, "{made}");
        }
        part(&volume, "data/file").make().unwrap();
        assert!(volume.join("data/file").is_file());
    }

    #[test]
    fn sub_path_links_are_followed_only_inside_the_volume() {
        let (dir, volume) = volume();
        symlink("data/deep", volume.join("inside")).unwrap();
        symlink(volume.join("data"), volume.join("absolute")).unwrap();
        symlink("../secret", volume.join("outside")).unwrap();
        symlink(dir.path().join("secret"), volume.join("data/away")).unwrap();
        for path in ["data", "inside", "absolute", "absolute/file", "."] {
            assert!(open_in_volume(&volume, path).is_ok(), "{path}");
        }
        for path in ["outside", "outside/file", "data/away", "data/away/file"] {
            let error = open_in_volume(&volume, path).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{path}");
        }
        let error = part(&volume, "outside/new").make().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
        assert!(!dir.path().join("secret/new").exists());
        part(&volume, "inside/new").make().unwrap();
        assert!(volume.join("data/deep/new").is_dir());
    }

    #[test]
    fn files_of_variables_are_read_inside_the_volume_only() {
        let (_dir, volume) = volume();
        symlink("/data/file", volume.join("as-in-container")).unwrap();
        symlink("../secret/file", volume.join("outside")).unwrap();
        assert_eq!(read_in_volume(&volume, "data/file").unwrap(), "text");
        assert_eq!(read_in_volume(&volume, "as-in-container").unwrap(), "text");
        assert!(read_in_volume(&volume, "outside").is_err());
        assert!(read_in_volume(&volume, "../secret/file").is_err());
        assert!(read_in_volume(&volume, "data").is_err());
    }

    #[test]
    #[ignore = "tier: root"]
    fn mounted_sub_path_is_the_checked_one() {
        let (dir, volume) = volume();
        symlink("data", volume.join("link")).unwrap();
        let wanted = SubPath {
            target: dir.path().join("subpaths/c/0"),
            ..part(&volume, "link")
        };
        let target = wanted.bind().unwrap();
        assert_eq!(fs::read_to_string(target.join("file")).unwrap(), "text");
        assert_eq!(
            wanted.bind().unwrap(),
            target,
            "binding again changes nothing"
        );
        assert_eq!(MountTable::read().unwrap().below(&target).len(), 1);

        fs::remove_file(volume.join("link")).unwrap();
        symlink("data/deep", volume.join("link")).unwrap();
        wanted.bind().unwrap();
        assert!(!target.join("file").exists(), "the mount follows the path");
        assert_eq!(MountTable::read().unwrap().below(&target).len(), 1);
        mount_point::unmount(&target).unwrap();

        let file = SubPath {
            target: dir.path().join("subpaths/c/1"),
            ..part(&volume, "data/file")
        };
        let target = file.bind().unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "text");
        mount_point::unmount(&target).unwrap();
    }
}
