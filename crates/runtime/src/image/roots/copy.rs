//! Copies of layers, where overlayfs cannot be mounted.

use std::collections::BTreeMap;
use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, Timespec, Timestamps};
use rustix::io::Errno;

use super::super::tree::{open_directory, remove_at};
use super::super::unpack::{copy_attributes, is_opaque, is_whiteout};

/// Deeper trees are refused; each level holds two directories open.
const DEEPEST: usize = 256;

/// Copies layers, uppermost first, over each other into an empty directory. The copies belong to other
/// users: id 0 becomes `first_id`, and so on.
pub(super) fn copy_layers(layers: &[PathBuf], into: &Path, first_id: u32) -> io::Result<()> {
    let into = open_directory(CWD, into)?;
    for layer in layers.iter().rev() {
        let mut copy = Copy {
            top: &into,
            links: BTreeMap::new(),
            first_id,
        };
        let from = open_directory(CWD, layer.as_path())?;
        copy.directory(&from, &into, Path::new(""), 0)?;
    }
    Ok(())
}

/// One layer being copied.
struct Copy<'a> {
    top: &'a OwnedFd,
    /// Copies of files with several names, by their inodes: where to link to. A layer has each
    /// path once, so nothing on these paths changes while the layer is copied.
    links: BTreeMap<u64, PathBuf>,
    first_id: u32,
}

impl Copy<'_> {
    fn directory(
        &mut self,
        from: &OwnedFd,
        to: &OwnedFd,
        path: &Path,
        depth: usize,
    ) -> io::Result<()> {
        if depth > DEEPEST {
            return Err(Errno::NAMETOOLONG.into());
        }
        for entry in Dir::read_from(from)? {
            let entry = entry?;
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            let path = path.join(OsStr::from_bytes(name.to_bytes()));
            let stat = rustix::fs::statat(from, name, AtFlags::SYMLINK_NOFOLLOW)?;
            if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
                let source = open_directory(from.as_fd(), name)?;
                let copied = directory_at(&source, to, name)?;
                self.directory(&source, &copied, &path, depth + 1)?;
            } else {
                remove_at(to.as_fd(), name)?;
                if !is_whiteout(&stat) {
                    self.other(from.as_fd(), to, &path, name, &stat)?;
                }
            }
        }
        copy_attributes(from.as_fd(), to.as_fd(), self.first_id)
    }

    fn other(
        &mut self,
        from: BorrowedFd<'_>,
        to: &OwnedFd,
        path: &Path,
        name: &CStr,
        stat: &Stat,
    ) -> io::Result<()> {
        if let Some(earlier) = self.links.get(&stat.st_ino) {
            let flags = AtFlags::empty();
            return Ok(rustix::fs::linkat(self.top, earlier, to, name, flags)?);
        }
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => copy_file(from, to, name, self.first_id)?,
            FileType::Symlink => {
                let target = rustix::fs::readlinkat(from, name, Vec::new())?;
                rustix::fs::symlinkat(target, to, name)?;
                copy_owner_and_time(to, name, stat, self.first_id)?;
            }
            FileType::Fifo => {
                let mode = Mode::from(stat.st_mode & 0o777);
                rustix::fs::mkfifoat(to, name, mode)?;
                rustix::fs::chmodat(to, name, mode, AtFlags::empty())?;
                copy_owner_and_time(to, name, stat, self.first_id)?;
            }
            _ => return Ok(()),
        }
        if stat.st_nlink > 1 {
            self.links.insert(stat.st_ino, path.to_owned());
        }
        Ok(())
    }
}

/// The directory to copy into: the one that layers below made, unless this one hides it.
fn directory_at(source: &OwnedFd, to: &OwnedFd, name: &CStr) -> io::Result<OwnedFd> {
    let existing = rustix::fs::statat(to, name, AtFlags::SYMLINK_NOFOLLOW);
    let is_directory =
        existing.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory);
    if !is_directory || is_opaque(source.as_fd()) {
        remove_at(to.as_fd(), name)?;
        rustix::fs::mkdirat(to, name, Mode::RWXU)?;
    }
    Ok(open_directory(to.as_fd(), name)?)
}

fn copy_file(from: BorrowedFd<'_>, to: &OwnedFd, name: &CStr, first_id: u32) -> io::Result<()> {
    let read = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let source = rustix::fs::openat(from, name, read, Mode::empty())?;
    let write = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let copied = rustix::fs::openat(to, name, write, Mode::RUSR | Mode::WUSR)?;
    let (mut source, mut copied) = (File::from(source), File::from(copied));
    // Shares blocks where the file system can.
    if rustix::fs::ioctl_ficlone(&copied, &source).is_err() {
        io::copy(&mut source, &mut copied)?;
    }
    copy_attributes(source.as_fd(), copied.as_fd(), first_id)
}

fn copy_owner_and_time(to: &OwnedFd, name: &CStr, stat: &Stat, first_id: u32) -> io::Result<()> {
    let own_name = AtFlags::SYMLINK_NOFOLLOW;
    if rustix::process::geteuid().is_root() {
        let uid = rustix::fs::Uid::from_raw(stat.st_uid.saturating_add(first_id));
        let gid = rustix::fs::Gid::from_raw(stat.st_gid.saturating_add(first_id));
        rustix::fs::chownat(to, name, Some(uid), Some(gid), own_name)?;
    }
    let time = Timespec {
        tv_sec: stat.st_mtime,
        tv_nsec: stat.st_mtime_nsec.try_into().unwrap_or(0),
    };
    let times = Timestamps {
        last_access: time,
        last_modification: time,
    };
    Ok(rustix::fs::utimensat(to, name, &times, own_name)?)
}
