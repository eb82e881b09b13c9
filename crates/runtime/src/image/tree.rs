//! Removes trees of untrusted files. They are measured by [`crate::walk`].
//!
//! A container may make a tree of any depth and width, and change it while it is walked. So no
//! symbolic link is followed, no mount is entered, no path is longer than one name, and only so
//! many directories are held open.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;
use rustix::path::Arg;

/// Directories above the current one that are held open; deeper ones are found again by `..`.
const HELD_OPEN: usize = 64;

/// Removes the file or directory at a path, with all below it. Succeeds if it does not exist.
pub fn remove(path: &Path) -> io::Result<()> {
    remove_at(CWD, path)
}

/// As [`remove`], of a name in a directory.
pub fn remove_at(directory: BorrowedFd<'_>, name: impl Arg + Copy) -> io::Result<()> {
    match rustix::fs::unlinkat(directory, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        // Linux returns EISDIR where POSIX has EPERM.
        Err(Errno::ISDIR | Errno::PERM) => {}
        Err(error) => return Err(error.into()),
    }
    clear(open_directory(directory, name)?)?;
    rustix::fs::unlinkat(directory, name, AtFlags::REMOVEDIR)?;
    Ok(())
}

/// Opens a directory by a name that is no link and no mount point.
pub fn open_directory(parent: BorrowedFd<'_>, name: impl Arg) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(parent, name, flags, Mode::empty())
}

fn gone_is_fine(result: rustix::io::Result<()>) -> io::Result<()> {
    match result {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn is_directory(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
}

/// A directory that was entered and not left yet.
struct Level {
    /// What its parent calls it.
    name: CString,
    device_and_inode: (u64, u64),
    /// Open, unless it lies too deep.
    held: Option<OwnedFd>,
    /// Directories in it that are still to be entered.
    ahead: Vec<CString>,
}

/// Removes all that is in a directory.
fn clear(top: OwnedFd) -> io::Result<()> {
    let mut current = top.try_clone()?;
    let mut levels = vec![enter(CString::default(), top, 0)?];
    while let Some(level) = levels.last_mut() {
        if let Some(name) = level.ahead.pop() {
            // Gone, replaced or a mount point: not part of this tree.
            let Ok(below) = open_below(current.as_fd(), &name) else {
                continue;
            };
            current = below.try_clone()?;
            let depth = levels.len();
            levels.push(enter(name, below, depth)?);
            continue;
        }
        let Some(level) = levels.pop() else { break };
        let Some(parent) = levels.last() else { break };
        match parent_of(&current, parent)? {
            Some(directory) => {
                current = directory;
                let name = level.name.as_c_str();
                gone_is_fine(rustix::fs::unlinkat(&current, name, AtFlags::REMOVEDIR))?;
            }
            // Moved elsewhere meanwhile: continue in the parent that is held open.
            None => {
                while levels.last().is_some_and(|level| level.held.is_none()) {
                    levels.pop();
                }
                if let Some(held) = levels.last().and_then(|level| level.held.as_ref()) {
                    current = held.try_clone()?;
                }
            }
        }
    }
    Ok(())
}

/// Removes what is in a directory and is none itself.
fn enter(name: CString, directory: OwnedFd, depth: usize) -> io::Result<Level> {
    let own = rustix::fs::fstat(&directory)?;
    let mut ahead = Vec::new();
    for entry in Dir::read_from(&directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        let Ok(stat) = rustix::fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) else {
            continue;
        };
        if is_directory(&stat) {
            ahead.push(name.to_owned());
        } else {
            gone_is_fine(rustix::fs::unlinkat(&directory, name, AtFlags::empty()))?;
        }
    }
    Ok(Level {
        name,
        device_and_inode: (own.st_dev, own.st_ino),
        held: (depth < HELD_OPEN).then_some(directory),
        ahead,
    })
}

fn open_below(parent: BorrowedFd<'_>, name: &CStr) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let stay = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    rustix::fs::openat2(parent, name, flags, Mode::empty(), stay)
}

fn parent_of(directory: &OwnedFd, expected: &Level) -> io::Result<Option<OwnedFd>> {
    if let Some(held) = &expected.held {
        return Ok(Some(held.try_clone()?));
    }
    let parent = open_directory(directory.as_fd(), c"..")?;
    let stat = rustix::fs::fstat(&parent)?;
    let is_expected = (stat.st_dev, stat.st_ino) == expected.device_and_inode;
    Ok(is_expected.then_some(parent))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn removal_does_not_follow_links() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir_all(path("kept/inner")).unwrap();
        fs::create_dir_all(path("gone/inner")).unwrap();
        symlink(path("kept"), path("gone/inner/link")).unwrap();
        symlink(path("kept"), path("link")).unwrap();
        remove(&path("gone")).unwrap();
        remove(&path("link")).unwrap();
        remove(&path("never was")).unwrap();
        let left = fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(left, 1);
        assert!(path("kept/inner").exists());
    }

    /// Deeper than the longest path and the usual number of open files.
    #[test]
    fn depth_has_no_limit() {
        let folder = tempfile::tempdir().unwrap();
        let deep = 3000;
        let mut current = open_directory(CWD, folder.path()).unwrap();
        for _ in 0..deep {
            rustix::fs::mkdirat(&current, "deeper", Mode::from(0o755)).unwrap();
            current = open_directory(current.as_fd(), "deeper").unwrap();
        }
        assert_eq!(
            crate::walk::measure(folder.path()).unwrap().inodes,
            deep + 1
        );
        remove(&folder.path().join("deeper")).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
