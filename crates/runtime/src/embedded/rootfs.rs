//! Looking into root file systems without being led outside of them.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, Gid, Mode, OFlags, ResolveFlags, Uid, chownat, mkdirat, openat, openat2,
};

fn open_root(root: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(CWD, root, flags, Mode::empty())
}

fn open_inside(root: &OwnedFd, path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let path = if path.as_os_str().is_empty() {
        Path::new(".")
    } else {
        path
    };
    openat2(root, path, flags, Mode::empty(), ResolveFlags::IN_ROOT)
}

/// Makes a directory with all above it, as far as they are missing. They belong to root, or to
/// another owner on the machine.
pub(super) fn create_dir(root: &Path, path: &Path, owner: Option<u32>) -> io::Result<()> {
    let root = open_root(root)?;
    let mut above = PathBuf::new();
    for part in path.components() {
        let Component::Normal(name) = part else {
            // Above the root there is only the root.
            if part == Component::ParentDir {
                above.pop();
            }
            continue;
        };
        let next = above.join(name);
        match open_inside(&root, &next) {
            Ok(_) => {}
            Err(rustix::io::Errno::NOENT) => {
                let parent = open_inside(&root, &above)?;
                mkdirat(&parent, name, Mode::from_raw_mode(0o755))?;
                if let Some(id) = owner {
                    let (uid, gid) = (Uid::from_raw(id), Gid::from_raw(id));
                    let own_name = AtFlags::SYMLINK_NOFOLLOW;
                    chownat(parent, name, Some(uid), Some(gid), own_name)?;
                }
            }
            Err(error) => return Err(error.into()),
        }
        above = next;
    }
    Ok(())
}

/// Where a path inside a root leads to.
pub(super) fn inside(root: &Path, path: &Path) -> io::Result<PathBuf> {
    let found = open_inside(&open_root(root)?, path)?;
    std::fs::read_link(format!("/proc/self/fd/{}", found.as_raw_fd()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn directories_are_created_inside_the_root_despite_links() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        std::fs::create_dir_all(root.join("real")).unwrap();
        symlink("/real", root.join("link")).unwrap();
        symlink("../../..", root.join("up")).unwrap();
        create_dir(&root, Path::new("/link/a/b"), None).unwrap();
        create_dir(&root, Path::new("/up/c"), None).unwrap();
        create_dir(&root, Path::new("/../../d"), None).unwrap();
        create_dir(&root, Path::new("/"), None).unwrap();
        for made in ["real/a/b", "c", "d"] {
            assert!(root.join(made).is_dir(), "{made}");
        }
        assert!(!dir.path().join("c").exists());
        assert_eq!(
            inside(&root, Path::new("link/a")).unwrap(),
            root.canonicalize().unwrap().join("real/a")
        );
    }
}
