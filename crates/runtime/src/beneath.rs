//! Files below a directory, opened without following a link out of it.
//!
//! Directories with logs may be writable for pods. The agent reads and writes as root: a link that a
//! pod has put there must not have it read or write any other file.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2};

/// Something below the directory, with its length if it is a file.
#[derive(Debug)]
pub enum Opened {
    /// A regular file.
    File(File, u64),
    /// A directory.
    Directory(OwnedFd),
}

/// Opens a file or directory below `root` for reading. Links inside are followed; one that leads out,
/// even if it is made meanwhile, is as if nothing were there, and so is anything that is neither.
pub fn open(root: &Path, below: &Path) -> io::Result<Opened> {
    let root = root.canonicalize()?;
    let inside = resolve(&root, below)?;
    open_as(&root, &inside, OFlags::RDONLY, Mode::empty())
}

/// Opens or makes a regular file below `root` without following any link.
pub fn open_file(root: &Path, below: &Path, flags: OFlags, mode: Mode) -> io::Result<File> {
    match open_as(&root.canonicalize()?, below, flags, mode)? {
        Opened::File(file, _) => Ok(file),
        Opened::Directory(_) => Err(ErrorKind::IsADirectory.into()),
    }
}

/// Where a log of a container (`POD/CONTAINER/0.log`) is below the directory of its pod.
pub fn in_pod(log: &Path) -> io::Result<(&Path, &Path)> {
    let pod = log.parent().and_then(Path::parent);
    let pod = pod.ok_or(ErrorKind::NotFound)?;
    let below = log.strip_prefix(pod).map_err(io::Error::other)?;
    Ok((pod, below))
}

fn open_as(root: &Path, below: &Path, flags: OFlags, mode: Mode) -> io::Result<Opened> {
    let directory = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::DIRECTORY;
    let directory = openat(CWD, root, directory, Mode::empty())?;
    // A pipe must not hold the agent up.
    let flags = flags | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let rules = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    let opened = openat2(&directory, below, flags, mode, rules)?;
    let stat = fstat(&opened)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {
            let length = u64::try_from(stat.st_size).unwrap_or(0);
            Ok(Opened::File(File::from(opened), length))
        }
        FileType::Directory => Ok(Opened::Directory(opened)),
        _ => Err(not_found("it is neither a file nor a directory")),
    }
}

/// The path below `root` without links.
fn resolve(root: &Path, below: &Path) -> io::Result<PathBuf> {
    let target = root.join(below).canonicalize()?;
    let inside = target
        .strip_prefix(root)
        .map_err(|_| not_found("a link leads out of its directory"))?;
    match inside.as_os_str().is_empty() {
        true => Ok(PathBuf::from(".")),
        false => Ok(inside.to_owned()),
    }
}

fn not_found(why: &str) -> io::Error {
    io::Error::new(ErrorKind::NotFound, why)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_followed_inside_and_not_out() {
        let folder = tempfile::tempdir().unwrap();
        let secret = folder.path().join("secret");
        std::fs::write(&secret, "secret").unwrap();
        let root = folder.path().join("root");
        std::fs::create_dir_all(root.join("below")).unwrap();
        std::fs::write(root.join("below/file"), "text").unwrap();
        symlink("below/file", root.join("near")).unwrap();
        symlink("below", root.join("directory")).unwrap();
        for (name, target) in [
            ("absolute", secret.as_path()),
            ("relative", Path::new("../secret")),
            ("above", Path::new("..")),
        ] {
            symlink(target, root.join(name)).unwrap();
        }
        let is_file = |below: &str| {
            let opened = open(&root, Path::new(below));
            opened.map(|opened| matches!(opened, Opened::File(_, 4)))
        };
        for below in ["below/file", "near", "directory/file"] {
            assert!(is_file(below).unwrap(), "{below}");
        }
        assert!(!is_file("directory").unwrap());
        for below in ["absolute", "relative", "above/secret", "../secret", "none"] {
            let error = is_file(below).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotFound, "{below}");
        }
    }

    #[test]
    fn a_file_is_made_only_where_no_link_is() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("pod");
        std::fs::create_dir_all(root.join("app")).unwrap();
        std::fs::create_dir(folder.path().join("elsewhere")).unwrap();
        std::fs::write(folder.path().join("elsewhere/0.log"), "mine").unwrap();
        symlink("../../elsewhere/0.log", root.join("app/1.log")).unwrap();
        symlink("0.log", root.join("app/2.log")).unwrap();
        symlink("../elsewhere", root.join("linked")).unwrap();
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE;
        let made = |log: &str| {
            let log = root.join(log);
            let (pod, below) = in_pod(&log).unwrap();
            open_file(pod, below, flags, Mode::RUSR).map(drop)
        };
        made("app/0.log").unwrap();
        for log in ["app/1.log", "app/2.log", "linked/0.log"] {
            assert!(made(log).is_err(), "{log}");
        }
    }
}
