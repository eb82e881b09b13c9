//! Owners, permissions, times and extended attributes of unpacked files.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, OFlags, ResolveFlags, Stat, Timespec, Timestamps, Uid,
    XattrFlags,
};
use rustix::io::Errno;

use super::super::tarball::Attributes;
use super::super::tree;
use super::place::Place;

/// How overlayfs knows a directory that hides those below it; the second name is the one that
/// users without privileges may set.
pub const OPAQUE: [&str; 2] = ["trusted.overlay.opaque", "user.overlay.opaque"];

/// More than any file system keeps in one attribute or in the list of their names.
const LARGEST_XATTR: usize = 64 << 10;

/// Whether files may be given away, which only root can do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Owners {
    is_root: bool,
}

impl Owners {
    pub(super) fn for_this_process() -> Owners {
        Owners {
            is_root: rustix::process::geteuid().is_root(),
        }
    }

    pub(super) fn apply_to_file(self, file: &File, to: &Attributes) -> io::Result<()> {
        // In this order: a new owner clears set-id bits and capabilities, and all of it would
        // change the time.
        self.give(file.as_fd(), to)?;
        rustix::fs::fchmod(file, Mode::from(to.mode))?;
        self.set_xattrs(file.as_fd(), to)?;
        Ok(rustix::fs::futimens(file, &times(to))?)
    }

    pub(super) fn apply_to_directory(self, directory: &OwnedFd, to: &Attributes) -> io::Result<()> {
        self.give(directory.as_fd(), to)?;
        self.set_xattrs(directory.as_fd(), to)?;
        rustix::fs::fchmod(directory, Mode::from(to.mode))?;
        Ok(rustix::fs::futimens(directory, &times(to))?)
    }

    /// For what cannot be opened: links and pipes.
    pub(super) fn apply_to_name(self, place: &Place<'_>, to: &Attributes) -> io::Result<()> {
        let own_name = AtFlags::SYMLINK_NOFOLLOW;
        if self.is_root {
            let (uid, gid) = owner(to)?;
            rustix::fs::chownat(&place.parent, place.name, Some(uid), Some(gid), own_name)?;
        }
        Ok(rustix::fs::utimensat(
            &place.parent,
            place.name,
            &times(to),
            own_name,
        )?)
    }

    fn give(self, file: BorrowedFd<'_>, to: &Attributes) -> io::Result<()> {
        if self.is_root {
            let (uid, gid) = owner(to)?;
            rustix::fs::fchown(file, Some(uid), Some(gid))?;
        }
        Ok(())
    }

    fn set_xattrs(self, file: BorrowedFd<'_>, to: &Attributes) -> io::Result<()> {
        for (name, value) in to.xattrs.iter().filter(|(name, _)| is_kept(name)) {
            match rustix::fs::fsetxattr(file, name.as_slice(), value, XattrFlags::empty()) {
                Ok(()) => {}
                // The file system has none of these; programs that need them will say so.
                Err(Errno::OPNOTSUPP) => {}
                Err(Errno::PERM) if !self.is_root => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// Attributes that programs in images rely on. Above all not those of overlayfs itself, by which
/// a layer could show files of elsewhere.
fn is_kept(name: &[u8]) -> bool {
    name == b"security.capability"
        || name.starts_with(b"user.") && !name.starts_with(b"user.overlay.")
}

fn owner(of: &Attributes) -> io::Result<(Uid, Gid)> {
    // The highest number means "leave it" to the kernel.
    let id = |id: u64| u32::try_from(id).ok().filter(|id| *id != u32::MAX);
    match (id(of.uid), id(of.gid)) {
        (Some(uid), Some(gid)) => Ok((Uid::from_raw(uid), Gid::from_raw(gid))),
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("owner {}:{} does not exist", of.uid, of.gid),
        )),
    }
}

fn times(of: &Attributes) -> Timestamps {
    let (seconds, nanos) = of.modified;
    let time = Timespec {
        tv_sec: seconds,
        tv_nsec: nanos.into(),
    };
    Timestamps {
        last_access: time,
        last_modification: time,
    }
}

/// Whether overlayfs treats this as a hidden file.
pub fn is_whiteout(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice && stat.st_rdev == 0
}

/// Lets a directory hide those below it.
pub(super) fn make_opaque(directory: BorrowedFd<'_>) -> io::Result<()> {
    let set = |name| rustix::fs::fsetxattr(directory, name, b"y", XattrFlags::empty());
    match set(OPAQUE[0]) {
        Err(Errno::PERM) => Ok(set(OPAQUE[1])?),
        other => Ok(other?),
    }
}

/// Whether a directory hides those below it.
pub fn is_opaque(directory: BorrowedFd<'_>) -> bool {
    let mut value = [0; 1];
    OPAQUE
        .iter()
        .any(|name| rustix::fs::fgetxattr(directory, *name, &mut value) == Ok(1) && value == *b"y")
}

/// How a directory looks that no entry of the tar describes: as in the layers below, or else as
/// directories usually do.
pub(super) fn of_directory(path: &Path, below: &[PathBuf]) -> Attributes {
    for layer in below {
        match look_up(layer, path) {
            Ok(Some(attributes)) => return attributes,
            // The layer hides it, or has a file there.
            Ok(None) => break,
            Err(_) => {}
        }
    }
    Attributes {
        mode: 0o755,
        ..Attributes::default()
    }
}

/// None if something other than a directory has that path.
fn look_up(layer: &Path, path: &Path) -> io::Result<Option<Attributes>> {
    let layer = tree::open_directory(CWD, layer)?;
    let stay = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let path = if path.as_os_str().is_empty() {
        Path::new(".")
    } else {
        path
    };
    match rustix::fs::openat2(&layer, path, flags, Mode::empty(), stay) {
        Ok(directory) => Ok(Some(read(directory.as_fd())?)),
        Err(Errno::NOTDIR | Errno::LOOP) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn read(file: BorrowedFd<'_>) -> io::Result<Attributes> {
    let stat = rustix::fs::fstat(file)?;
    Ok(Attributes {
        mode: stat.st_mode & 0o7777,
        uid: stat.st_uid.into(),
        gid: stat.st_gid.into(),
        modified: (
            stat.st_mtime,
            u32::try_from(stat.st_mtime_nsec).unwrap_or(0),
        ),
        xattrs: read_xattrs(file)?,
    })
}

fn read_xattrs(file: BorrowedFd<'_>) -> io::Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let mut names = Vec::with_capacity(LARGEST_XATTR);
    match rustix::fs::flistxattr(file, rustix::buffer::spare_capacity(&mut names)) {
        Err(Errno::OPNOTSUPP) => return Ok(Vec::new()),
        other => other?,
    };
    let mut found = Vec::new();
    for name in names.split(|byte| *byte == 0).filter(|name| is_kept(name)) {
        let mut value = Vec::with_capacity(LARGEST_XATTR);
        match rustix::fs::fgetxattr(file, name, rustix::buffer::spare_capacity(&mut value)) {
            Ok(_) => found.push((name.to_vec(), value)),
            Err(Errno::NODATA) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(found)
}

/// Makes one file or directory look like another, to users whose id 0 is `first_id` on the machine.
pub fn copy_attributes(from: BorrowedFd<'_>, to: BorrowedFd<'_>, first_id: u32) -> io::Result<()> {
    let mut attributes = read(from)?;
    if first_id != 0 {
        attributes.uid += u64::from(first_id);
        attributes.gid += u64::from(first_id);
        for (name, value) in &mut attributes.xattrs {
            if name == b"security.capability" {
                give_capability(value, first_id);
            }
        }
    }
    let owners = Owners::for_this_process();
    owners.give(to, &attributes)?;
    owners.set_xattrs(to, &attributes)?;
    rustix::fs::fchmod(to, Mode::from(attributes.mode))?;
    Ok(rustix::fs::futimens(to, &times(&attributes))?)
}

/// Makes a file's capabilities hold in the user namespace in which root has that id: revision 3 of
/// the kernel's `vfs_ns_cap_data` ends with it, revision 2 is without.
fn give_capability(value: &mut Vec<u8>, root: u32) {
    const REVISION: usize = 3;
    const WITHOUT_ROOT: usize = 20;
    if value.len() == WITHOUT_ROOT && value[REVISION] == 2 {
        value[REVISION] = 3;
        value.extend(root.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_capabilities_are_rewritten_for_another_root_id() {
        let mut value = vec![1, 0, 0, 2];
        value.resize(20, 7);
        give_capability(&mut value, 65_536);
        assert_eq!((value[3], value.len()), (3, 24));
        assert_eq!(value[20..], 65_536_u32.to_le_bytes());
        let before = value.clone();
        give_capability(&mut value, 131_072);
        assert_eq!(value, before);
    }

    #[test]
    fn impossible_owners_are_refused() {
        for id in [u64::from(u32::MAX), 1 << 40] {
            let attributes = Attributes {
                uid: id,
                ..Attributes::default()
            };
            let refused = owner(&attributes).unwrap_err().to_string();
            assert_eq!(refused, format!("owner {id}:0 does not exist"));
        }
    }
}
