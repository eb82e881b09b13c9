//! Removes directories without ever crossing a mount.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, openat, openat2, renameat, unlinkat,
};
use rustix::io::Errno;

/// Directories deeper than this are moved up before they are removed, because each level on the way
/// costs a descriptor and a container may nest as many as it likes.
const DEEPEST: usize = 64;

/// Removes a file, or a directory with all that is in it. Succeeds if it does not exist.
///
/// Links are removed, never followed. Something mounted at the path or below is left as it is, and
/// is an error: what is under a mount may be a disk that is not the pod's.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(Errno::INVAL.into());
    };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let parent = match openat(CWD, parent, flags, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(()),
        parent => parent?,
    };
    let name = name.as_encoded_bytes();
    match unlinkat(&parent, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        Err(Errno::ISDIR | Errno::PERM) => {}
        Err(error) => return Err(error.into()),
    }
    let top = open_dir(&parent, name)?;
    let mut removal = Removal {
        top: &top,
        moved: 0,
    };
    loop {
        let moved_before = removal.moved;
        removal.empty(&top, 0)?;
        if removal.moved == moved_before {
            break;
        }
    }
    Ok(unlinkat(&parent, name, AtFlags::REMOVEDIR)?)
}

struct Removal<'a> {
    top: &'a OwnedFd,
    moved: usize,
}

impl Removal<'_> {
    /// Removes all that is in the directory. What was too deep is in the top one afterwards.
    fn empty(&mut self, dir: &OwnedFd, depth: usize) -> Result<(), Errno> {
        for entry in Dir::read_from(dir)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            match unlinkat(dir, name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => continue,
                Err(Errno::ISDIR | Errno::PERM) => {}
                Err(error) => return Err(error),
            }
            if depth < DEEPEST {
                self.empty(&open_dir(dir, name)?, depth + 1)?;
                unlinkat(dir, name, AtFlags::REMOVEDIR)?;
            } else {
                self.moved += 1;
                let to = format!("..moved-{}-{}", std::process::id(), self.moved);
                renameat(dir, name, self.top, to.as_str())?;
            }
        }
        Ok(())
    }
}

/// Opens a directory that nothing is mounted on.
fn open_dir(parent: &OwnedFd, name: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_XDEV | ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
    openat2(parent, name, flags, Mode::empty(), resolve)
}

/// Whether the path is a directory, not following links.
pub fn is_directory(path: &Path) -> bool {
    let stat = rustix::fs::lstat(path);
    stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::volumes::mount_point;

    #[test]
    fn removal_deletes_the_tree_and_follows_no_links() {
        let dir = tempfile::tempdir().unwrap();
        let kept = dir.path().join("kept");
        fs::create_dir(&kept).unwrap();
        fs::write(kept.join("file"), "x").unwrap();
        let gone = dir.path().join("gone");
        fs::create_dir_all(gone.join("a/b")).unwrap();
        fs::write(gone.join("a/file"), "x").unwrap();
        symlink(&kept, gone.join("a/link")).unwrap();
        remove_tree(&gone).unwrap();
        assert!(!gone.exists());
        assert!(kept.join("file").exists());
        remove_tree(&gone).unwrap();
    }

    #[test]
    fn removal_reaches_any_nesting_depth() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().join("top");
        fs::create_dir(&top).unwrap();
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let mut within = openat(CWD, &top, flags, Mode::empty()).unwrap();
        for _ in 0..300 {
            rustix::fs::mkdirat(&within, "nested-directory", Mode::RWXU).unwrap();
            within = openat(&within, "nested-directory", flags, Mode::empty()).unwrap();
        }
        drop(within);
        remove_tree(&top).unwrap();
        assert!(!top.exists());
    }

    #[test]
    #[ignore = "tier: root"]
    fn a_mount_stops_the_removal() {
        let dir = tempfile::tempdir().unwrap();
        let precious = dir.path().join("precious");
        fs::create_dir(&precious).unwrap();
        fs::write(precious.join("file"), "x").unwrap();
        let tree = dir.path().join("tree");
        for kind in ["same file system", "another"] {
            let point = tree.join("a/point");
            fs::create_dir_all(&point).unwrap();
            match kind {
                "another" => mount_point::tmpfs(&point, None).unwrap(),
                _ => mount_point::bind(&precious, &point).unwrap(),
            }
            fs::write(point.join("inside"), "x").unwrap();
            let error = remove_tree(&tree).unwrap_err();
            assert_eq!(
                error.raw_os_error(),
                Some(Errno::XDEV.raw_os_error()),
                "{kind}"
            );
            assert!(point.join("inside").exists(), "{kind}");
            mount_point::unmount(&point).unwrap();
        }
        assert!(precious.join("file").exists());
        remove_tree(&tree).unwrap();
        assert!(!tree.exists());
    }

    #[test]
    #[ignore = "tier: root"]
    fn root_of_a_mount_is_not_emptied() {
        let dir = tempfile::tempdir().unwrap();
        let point = dir.path().join("point");
        fs::create_dir(&point).unwrap();
        mount_point::tmpfs(&point, None).unwrap();
        fs::write(point.join("file"), "x").unwrap();
        assert!(remove_tree(&point).is_err());
        assert!(point.join("file").exists());
        mount_point::unmount(&point).unwrap();
    }
}
