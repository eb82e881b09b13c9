//! Where an entry goes: paths resolved inside a directory, never outside of it.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

use super::super::tree;
use super::attributes;

/// A directory that is the root of all paths in a tar.
#[derive(Debug)]
pub(super) struct Root {
    top: OwnedFd,
    /// The directory opened last: entries of one directory mostly follow each other.
    last: Option<(PathBuf, OwnedFd)>,
}

/// An open directory and a name in it.
#[derive(Debug)]
pub(super) struct Place<'n> {
    pub(super) parent: OwnedFd,
    pub(super) name: &'n [u8],
}

impl Place<'_> {
    /// Makes something under this name, removing what has it already.
    pub(super) fn replacing<T>(
        &self,
        make: impl Fn(BorrowedFd<'_>, &[u8]) -> rustix::io::Result<T>,
    ) -> io::Result<T> {
        let parent = self.parent.as_fd();
        match make(parent, self.name) {
            Err(Errno::EXIST) => {
                tree::remove_at(parent, self.name)?;
                Ok(make(parent, self.name)?)
            }
            other => Ok(other?),
        }
    }
}

impl Root {
    pub(super) fn at(path: &Path) -> io::Result<Root> {
        let top = tree::open_directory(rustix::fs::CWD, path)?;
        Ok(Root { top, last: None })
    }

    /// Lets the next path be resolved again.
    pub(super) fn forget(&mut self) {
        self.last = None;
    }

    /// Opens a directory, links on the way resolved inside the root.
    pub(super) fn open(&self, path: &Path) -> rustix::io::Result<OwnedFd> {
        self.open_with(path, ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS)
    }

    /// Opens a directory only if no link is on the way.
    pub(super) fn open_exactly(&self, path: &Path) -> rustix::io::Result<OwnedFd> {
        self.open_with(path, ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS)
    }

    fn open_with(&self, path: &Path, resolve: ResolveFlags) -> rustix::io::Result<OwnedFd> {
        let path = if path.as_os_str().is_empty() {
            Path::new(".")
        } else {
            path
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::openat2(&self.top, path, flags, Mode::empty(), resolve)
    }

    /// Opens a directory, creating those that are missing; reports each path it created.
    pub(super) fn open_or_make(
        &mut self,
        path: &Path,
        mut made: impl FnMut(&Path),
    ) -> io::Result<OwnedFd> {
        if let Some((last, directory)) = &self.last
            && last == path
        {
            return directory.try_clone();
        }
        let mut directory = self.open(path);
        if matches!(directory, Err(Errno::NOENT | Errno::NOTDIR)) {
            let ancestors: Vec<&Path> = path.ancestors().collect();
            for ancestor in ancestors.into_iter().rev() {
                if self.make_missing(ancestor)? {
                    made(ancestor);
                }
            }
            directory = self.open(path);
        }
        let directory = directory?;
        self.last = Some((path.to_owned(), directory.try_clone()?));
        Ok(directory)
    }

    /// Whether there was none. A whiteout makes room for a directory that hides as it did.
    fn make_missing(&self, path: &Path) -> io::Result<bool> {
        let Some((parent, name)) = split(path) else {
            return Ok(false);
        };
        let parent = self.open(parent)?;
        let made = rustix::fs::mkdirat(&parent, name, Mode::RWXU);
        if made != Err(Errno::EXIST) {
            return Ok(made.map(|()| true)?);
        }
        let existing = rustix::fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
        if !attributes::is_whiteout(&existing) {
            return Ok(false);
        }
        rustix::fs::unlinkat(&parent, name, AtFlags::empty())?;
        rustix::fs::mkdirat(&parent, name, Mode::RWXU)?;
        attributes::make_opaque(tree::open_directory(parent.as_fd(), name)?.as_fd())?;
        Ok(true)
    }
}

/// A path of a tar without what means nothing in it: leading slashes, `.` and `..` that stay
/// inside. None if it leads out.
pub(super) fn normalise(path: &[u8]) -> Option<PathBuf> {
    let mut normal = PathBuf::new();
    for part in path.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => {
                if !normal.pop() {
                    return None;
                }
            }
            _ if part.contains(&0) => return None,
            _ => normal.push(OsStr::from_bytes(part)),
        }
    }
    Some(normal)
}

/// The directory and the name in it; none for the root itself.
pub(super) fn split(path: &Path) -> Option<(&Path, &[u8])> {
    Some((path.parent()?, path.file_name()?.as_bytes()))
}

pub(super) fn is_directory(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_inside() {
        for (path, expected) in [
            ("etc/passwd", Some("etc/passwd")),
            ("/etc//passwd/", Some("etc/passwd")),
            ("./a/./b", Some("a/b")),
            ("a/../b", Some("b")),
            ("./", Some("")),
            ("..", None),
            ("../a", None),
            ("a/../../b", None),
            ("/../a", None),
            ("a\0b", None),
        ] {
            let normal = normalise(path.as_bytes());
            assert_eq!(normal.as_deref(), expected.map(Path::new), "{path:?}");
        }
    }
}
