//! One walk over a directory, in steps.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, open, openat, openat2,
    statat,
};
use rustix::io::Errno;

/// What is on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Usage {
    /// Allocated, not written: holes are free and blocks are whole.
    pub(in super::super) bytes: u64,
    pub(in super::super) inodes: u64,
}

/// What of a directory counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Scope {
    /// The directory itself and all below it.
    Tree,
    /// The files that are directly in it.
    Files,
}

/// A walk that has not ended.
///
/// Whoever owns the files may change them meanwhile: no symbolic link is followed, nothing outside
/// of the directory is opened, and other file systems are left out.
#[derive(Debug)]
pub(super) struct Scan {
    root: OwnedFd,
    device: u64,
    scope: Scope,
    /// The directory that is being read, and where it is below the root.
    current: Option<(Dir, PathBuf)>,
    pending: Vec<PathBuf>,
    /// Files that have more than one name, to count them once.
    linked: BTreeSet<u64>,
    usage: Usage,
    /// How many files were looked at.
    pub(super) entries: u64,
}

const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
const INSIDE: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_XDEV);

/// The beginning of a walk.
#[derive(Debug)]
pub(super) enum Start {
    /// There is something to walk over.
    Scan(Box<Scan>),
    /// It was a file.
    Done(Usage),
}

impl Scan {
    pub(super) fn start(path: &Path, scope: Scope) -> io::Result<Start> {
        let root = match open(path, DIRECTORY, Mode::empty()) {
            Ok(root) => root,
            Err(Errno::NOTDIR) => {
                let stat = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW)?;
                return Ok(Start::Done(Usage::of(&stat)));
            }
            Err(errno) => return Err(errno.into()),
        };
        let stat = fstat(&root)?;
        let usage = match scope {
            Scope::Tree => Usage::of(&stat),
            Scope::Files => Usage::default(),
        };
        Ok(Start::Scan(Box::new(Scan {
            root,
            device: stat.st_dev,
            scope,
            current: None,
            pending: vec![PathBuf::from(".")],
            linked: BTreeSet::new(),
            usage,
            entries: 1,
        })))
    }

    /// Goes on for at most `budget` files, which is reduced by those that were looked at. Returns
    /// the sum at the end of the walk. What vanishes meanwhile is not counted.
    pub(super) fn advance(&mut self, budget: &mut u64) -> Option<Usage> {
        while *budget > 0 {
            let Some((directory, path)) = &mut self.current else {
                let path = self.pending.pop();
                let Some(path) = path else {
                    return Some(self.usage);
                };
                *budget -= 1;
                self.current = self.open(&path).map(|directory| (directory, path));
                continue;
            };
            let entry = match directory.read() {
                Some(Ok(entry)) => entry,
                Some(Err(_)) | None => {
                    self.current = None;
                    continue;
                }
            };
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            *budget -= 1;
            self.entries += 1;
            let stat = directory
                .fd()
                .and_then(|fd| statat(fd, name, AtFlags::SYMLINK_NOFOLLOW));
            let child = match &stat {
                Ok(stat) if is_directory(stat) && stat.st_dev == self.device => {
                    Some(path.join(path_of(name)))
                }
                _ => None,
            };
            if let Ok(stat) = stat {
                self.count(&stat, child);
            }
        }
        None
    }

    fn open(&self, path: &Path) -> Option<Dir> {
        let opened = match openat2(&self.root, path, DIRECTORY, Mode::empty(), INSIDE) {
            // Kernels before 5.6 and sandboxes that do not know the call.
            Err(Errno::NOSYS | Errno::PERM) => openat(&self.root, path, DIRECTORY, Mode::empty()),
            opened => opened,
        };
        Dir::new(opened.ok()?).ok()
    }

    fn count(&mut self, stat: &Stat, child: Option<PathBuf>) {
        if stat.st_dev != self.device {
            return;
        }
        let is_directory = is_directory(stat);
        if is_directory && self.scope == Scope::Files {
            return;
        }
        if !is_directory && stat.st_nlink > 1 && !self.linked.insert(stat.st_ino) {
            return;
        }
        self.usage.add(Usage::of(stat));
        self.pending.extend(child);
    }
}

fn is_directory(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
}

fn path_of(name: &std::ffi::CStr) -> &Path {
    use std::os::unix::ffi::OsStrExt;
    Path::new(std::ffi::OsStr::from_bytes(name.to_bytes()))
}

impl Usage {
    fn of(stat: &Stat) -> Usage {
        let blocks = u64::try_from(stat.st_blocks).unwrap_or(0);
        Usage {
            bytes: blocks.saturating_mul(512),
            inodes: 1,
        }
    }

    /// The lesser of both, of either kind.
    pub(super) fn least(self, other: Usage) -> Usage {
        Usage {
            bytes: self.bytes.min(other.bytes),
            inodes: self.inodes.min(other.inodes),
        }
    }

    /// The greater of both, of either kind.
    pub(super) fn most(self, other: Usage) -> Usage {
        Usage {
            bytes: self.bytes.max(other.bytes),
            inodes: self.inodes.max(other.inodes),
        }
    }

    fn add(&mut self, other: Usage) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.inodes = self.inodes.saturating_add(other.inodes);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::fs;

    pub(in super::super) fn walked(path: &Path, scope: Scope, step: u64) -> (Usage, u64) {
        let mut scan = match Scan::start(path, scope).unwrap() {
            Start::Done(usage) => return (usage, 1),
            Start::Scan(scan) => scan,
        };
        let mut steps = 0;
        loop {
            steps += 1;
            let mut budget = step;
            if let Some(usage) = scan.advance(&mut budget) {
                return (usage, steps);
            }
        }
    }

    fn bytes(path: &Path) -> u64 {
        use std::os::unix::fs::MetadataExt;
        fs::symlink_metadata(path).unwrap().blocks() * 512
    }

    #[test]
    fn a_tree_is_the_sum_of_its_inodes_however_small_the_steps() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(root.join("one"), vec![1; 10_000]).unwrap();
        fs::write(root.join("a/two"), vec![1; 5_000]).unwrap();
        fs::hard_link(root.join("one"), root.join("a/b/again")).unwrap();
        std::os::unix::fs::symlink("/", root.join("a/b/out")).unwrap();
        let paths = ["", "a", "a/b", "one", "a/two", "a/b/out"];
        let want = Usage {
            bytes: paths.iter().map(|path| bytes(&root.join(path))).sum(),
            inodes: 6,
        };
        for step in [1, 2, 1000] {
            let (usage, steps) = walked(root, Scope::Tree, step);
            assert_eq!(usage, want, "steps of {step}");
            assert_eq!(steps == 1, step == 1000);
        }
    }

    #[test]
    fn log_directories_count_files_only() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("sub")).unwrap();
        fs::write(dir.path().join("sub/0.log"), vec![1; 9_000]).unwrap();
        fs::write(dir.path().join("0.log"), vec![1; 9_000]).unwrap();
        let (usage, _) = walked(dir.path(), Scope::Files, 1000);
        assert_eq!(usage.inodes, 1);
        assert_eq!(usage.bytes, bytes(&dir.path().join("0.log")));
    }

    #[test]
    fn a_file_is_measured_at_once_and_nothing_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("etc-hosts");
        fs::write(&file, "127.0.0.1 localhost\n").unwrap();
        assert_eq!(walked(&file, Scope::Tree, 1).0.inodes, 1);
        assert!(Scan::start(&dir.path().join("none"), Scope::Tree).is_err());
    }
}
