//! One walk over a directory, in steps.

use std::collections::BTreeSet;
use std::ffi::CStr;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, open, openat, openat2,
    statat,
};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// What is on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Usage {
    /// Allocated, not written: holes are free and blocks are whole.
    pub bytes: u64,
    /// Files, directories and the like.
    pub inodes: u64,
}

/// What of a directory counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Scope {
    /// The directory itself and all below it.
    Tree,
    /// The files that are directly in it.
    Files,
}

/// Directories from the root on that are held open; deeper ones are found again by `..`.
const HELD_OPEN: usize = 16;
/// How deep a walk goes. What lies deeper is not counted.
const MOST_LEVELS: usize = 1 << 14;
/// How many files with several names are remembered: some 2 MiB of memory.
pub(super) const MOST_LINKED: usize = 1 << 16;
/// How often, and after what pause, something is looked at again for which the kernel had no memory:
/// a walk may be held to little, and what it has looked at is freed for it.
const TRIES: usize = 20;
const PAUSE: Duration = Duration::from_millis(5);

/// A walk that has not ended.
///
/// Other processes may change the files meanwhile, and may make a tree of any depth and width: no
/// symbolic link is followed, no mount is entered, no path is longer than one name, and the memory
/// and descriptors that a walk takes are bounded. Where a bound is hit the sum is too small, and
/// the walk reports it.
#[derive(Debug)]
pub(super) struct Scan {
    device: u64,
    scope: Scope,
    /// The directories that were entered and not left yet, the root first. The last is open.
    levels: Vec<Level>,
    /// Files that have more than one name, to count them once.
    linked: BTreeSet<u64>,
    /// How many of them may be remembered.
    pub(super) most_linked: usize,
    usage: Usage,
    /// Whether nothing was left out.
    pub(super) is_whole: bool,
    /// How many files were looked at.
    pub(super) entries: u64,
}

/// A directory that was entered.
#[derive(Debug)]
struct Level {
    inode: u64,
    /// Where in it the walk continues.
    offset: i64,
    open: Option<Box<Dir>>,
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
        let level = Level {
            inode: stat.st_ino,
            offset: 0,
            open: Some(Box::new(Dir::new(root)?)),
        };
        Ok(Start::Scan(Box::new(Scan {
            device: stat.st_dev,
            scope,
            levels: vec![level],
            linked: BTreeSet::new(),
            most_linked: MOST_LINKED,
            usage,
            is_whole: true,
            entries: 1,
        })))
    }

    /// Goes on for at most `budget` files, which is reduced by those that were looked at, and not
    /// beyond the deadline. Returns the sum at the end of the walk. What vanishes meanwhile is not
    /// counted.
    pub(super) fn advance(&mut self, budget: &mut u64, deadline: Instant) -> Option<Usage> {
        while *budget > 0 {
            let Some(level) = self.levels.last_mut() else {
                return Some(self.usage);
            };
            let entry = level.open.as_mut().and_then(|directory| directory.read());
            let entry = match entry {
                Some(Ok(entry)) => entry,
                ended => {
                    // One that was removed has no entries.
                    self.is_whole &= !matches!(ended, Some(Err(error)) if error != Errno::NOENT);
                    self.leave();
                    continue;
                }
            };
            level.offset = entry.offset();
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            *budget -= 1;
            self.entries += 1;
            if self.entries.is_multiple_of(256) && Instant::now() >= deadline {
                *budget = 0;
            }
            match entry.file_type() {
                FileType::Directory => self.enter(name),
                _ => self.look_at(name),
            }
        }
        None
    }

    fn current(&self) -> Option<BorrowedFd<'_>> {
        self.levels.last()?.open.as_ref()?.fd().ok()
    }

    /// Counts what is not a directory. A name that had no type is looked at to learn it.
    fn look_at(&mut self, name: &CStr) {
        let Some(directory) = self.current() else {
            return;
        };
        let looked = retried(|| statat(directory, name, AtFlags::SYMLINK_NOFOLLOW));
        let stat = match looked {
            Ok(stat) => stat,
            Err(error) => {
                self.is_whole &= is_gone(error);
                return;
            }
        };
        if stat.st_dev != self.device {
            return;
        }
        if is_directory(&stat) {
            return self.enter(name);
        }
        if stat.st_nlink <= 1 {
            return self.usage.add(Usage::of(&stat));
        }
        if self.linked.contains(&stat.st_ino) {
            return;
        }
        if self.linked.len() >= self.most_linked {
            self.is_whole = false;
            return;
        }
        self.linked.insert(stat.st_ino);
        self.usage.add(Usage::of(&stat));
    }

    /// Counts a directory and continues in it. It is opened before anything else is done with it, so that a
    /// mount in it, of a file system that does not answer perhaps, is not accessed at all.
    fn enter(&mut self, name: &CStr) {
        if self.scope == Scope::Files {
            return;
        }
        if self.levels.len() >= MOST_LEVELS {
            self.is_whole = false;
            return;
        }
        let Some(parent) = self.current() else { return };
        let opened = match retried(|| open_below(parent, name)) {
            Ok(opened) => opened,
            Err(error) => {
                // A mount is not part of the tree.
                self.is_whole &= is_gone(error) || error == Errno::XDEV;
                return;
            }
        };
        let Ok(stat) = fstat(&opened) else { return };
        if stat.st_dev != self.device {
            return;
        }
        let Ok(directory) = Dir::new(opened) else {
            return;
        };
        self.usage.add(Usage::of(&stat));
        let depth = self.levels.len();
        if let Some(parent) = self.levels.last_mut().filter(|_| depth > HELD_OPEN) {
            parent.open = None;
        }
        self.levels.push(Level {
            inode: stat.st_ino,
            offset: 0,
            open: Some(Box::new(directory)),
        });
    }

    /// Goes back to the directory above. If the way back is lost, because a directory was moved
    /// meanwhile, the walk continues in the deepest one that is held open.
    fn leave(&mut self) {
        let left = self.levels.pop();
        let Some(parent) = self.levels.last_mut() else {
            return;
        };
        if parent.open.is_some() {
            return;
        }
        let left = left.and_then(|left| left.open);
        parent.open = left.and_then(|left| parent_of(&left, self.device, parent));
        if parent.open.is_none() {
            self.is_whole = false;
            while self.levels.last().is_some_and(|level| level.open.is_none()) {
                self.levels.pop();
            }
        }
    }
}

fn open_below(parent: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
    match openat2(parent, name, DIRECTORY, Mode::empty(), INSIDE) {
        // Kernels before 5.6 and sandboxes that do not know the call.
        Err(Errno::NOSYS | Errno::PERM) => openat(parent, name, DIRECTORY, Mode::empty()),
        opened => opened,
    }
}

/// Gone, or replaced by something else.
fn is_gone(error: Errno) -> bool {
    matches!(error, Errno::NOENT | Errno::NOTDIR | Errno::LOOP)
}

fn retried<T>(mut look: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    for _ in 0..TRIES {
        match look() {
            Err(Errno::NOMEM) => std::thread::sleep(PAUSE),
            looked => return looked,
        }
    }
    look()
}

/// The directory above, where its walk was left.
fn parent_of(left: &Dir, device: u64, expected: &Level) -> Option<Box<Dir>> {
    let parent = openat(left.fd().ok()?, c"..", DIRECTORY, Mode::empty()).ok()?;
    let stat = fstat(&parent).ok()?;
    if (stat.st_dev, stat.st_ino) != (device, expected.inode) {
        return None;
    }
    let mut parent = Dir::new(parent).ok()?;
    parent.seek(expected.offset).ok()?;
    Some(Box::new(parent))
}

fn is_directory(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
}

impl Scan {
    /// How many files with several names it remembers.
    pub(super) fn linked(&self) -> usize {
        self.linked.len()
    }
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
    pub fn least(self, other: Usage) -> Usage {
        Usage {
            bytes: self.bytes.min(other.bytes),
            inodes: self.inodes.min(other.inodes),
        }
    }

    /// The greater of both, of either kind.
    pub fn most(self, other: Usage) -> Usage {
        Usage {
            bytes: self.bytes.max(other.bytes),
            inodes: self.inodes.max(other.inodes),
        }
    }

    /// Both together.
    pub fn plus(self, other: Usage) -> Usage {
        Usage {
            bytes: self.bytes.saturating_add(other.bytes),
            inodes: self.inodes.saturating_add(other.inodes),
        }
    }

    /// What is left without the other.
    pub fn minus(self, other: Usage) -> Usage {
        Usage {
            bytes: self.bytes.saturating_sub(other.bytes),
            inodes: self.inodes.saturating_sub(other.inodes),
        }
    }

    fn add(&mut self, other: Usage) {
        *self = self.plus(other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::PathBuf;
    use std::time::Duration;

    fn deadline() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    fn walked(path: &Path, scope: Scope, step: u64) -> (Usage, u64) {
        let mut scan = match Scan::start(path, scope).unwrap() {
            Start::Done(usage) => return (usage, 1),
            Start::Scan(scan) => scan,
        };
        let mut steps = 0;
        loop {
            steps += 1;
            let mut budget = step;
            if let Some(usage) = scan.advance(&mut budget, deadline()) {
                return (usage, steps);
            }
        }
    }

    fn bytes(path: &Path) -> u64 {
        use std::os::unix::fs::MetadataExt;
        fs::symlink_metadata(path).unwrap().blocks() * 512
    }

    #[test]
    fn tree_is_the_sum_of_its_inodes_for_any_step_size() {
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

    /// Directories inside of each other, deeper than a path can name, with a file in the last.
    fn dig(root: &Path, depth: usize) {
        let mut current = open(root, DIRECTORY, Mode::empty()).unwrap();
        for _ in 0..depth {
            rustix::fs::mkdirat(&current, "directory", Mode::RWXU).unwrap();
            current = openat(&current, "directory", DIRECTORY, Mode::empty()).unwrap();
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC;
        let file = openat(&current, "file", flags, Mode::RUSR).unwrap();
        rustix::io::write(&file, &[1; 100_000]).unwrap();
    }

    fn open_files() -> usize {
        fs::read_dir("/proc/thread-self/fd").unwrap().count()
    }

    #[test]
    fn deep_trees_are_counted_to_their_end_with_few_descriptors() {
        let dir = tempfile::tempdir().unwrap();
        dig(dir.path(), 2000);
        // Wide at each level on the way as well.
        let mut path: PathBuf = dir.path().into();
        for _ in 0..100 {
            path = path.join("directory");
            fs::write(path.join("x"), "").unwrap();
            fs::create_dir(path.join("y")).unwrap();
        }
        let want = 1 + 2000 + 1 + 200;
        for step in [7, 100_000] {
            let (usage, _) = walked(dir.path(), Scope::Tree, step);
            assert_eq!(usage.inodes, want, "steps of {step}");
            assert!(usage.bytes >= 100_000);
        }
        let Start::Scan(mut scan) = Scan::start(dir.path(), Scope::Tree).unwrap() else {
            panic!("it is a directory");
        };
        let before = open_files();
        let mut budget = 1500;
        assert_eq!(scan.advance(&mut budget, deadline()), None);
        let held = scan.levels.iter().filter(|level| level.open.is_some());
        assert!(held.count() <= HELD_OPEN + 1);
        assert!(open_files() <= before + HELD_OPEN + 2);
        assert!(scan.is_whole);
        drop(scan);
        crate::image::tree::remove(dir.path()).unwrap();
    }

    #[test]
    fn the_memory_of_a_walk_does_not_grow_with_the_width_of_the_tree() {
        let dir = tempfile::tempdir().unwrap();
        for index in 0..3000 {
            fs::create_dir(dir.path().join(index.to_string())).unwrap();
        }
        let Start::Scan(mut scan) = Scan::start(dir.path(), Scope::Tree).unwrap() else {
            panic!("it is a directory");
        };
        let mut most = 0;
        let usage = loop {
            let mut budget = 1;
            let usage = scan.advance(&mut budget, deadline());
            most = most.max(scan.levels.capacity());
            if let Some(usage) = usage {
                break usage;
            }
        };
        assert_eq!(usage.inodes, 3001);
        assert!(most <= 8, "{most} levels");
    }

    #[test]
    fn moved_directory_does_not_lead_out_of_the_tree() {
        let dir = tempfile::tempdir().unwrap();
        let (inside, outside) = (dir.path().join("in"), dir.path().join("out"));
        fs::create_dir(&inside).unwrap();
        fs::create_dir(&outside).unwrap();
        for index in 0..50 {
            fs::write(outside.join(index.to_string()), "").unwrap();
        }
        dig(&inside, 40);
        let Start::Scan(mut scan) = Scan::start(&inside, Scope::Tree).unwrap() else {
            panic!("it is a directory");
        };
        let mut budget = 35;
        assert_eq!(scan.advance(&mut budget, deadline()), None);
        let deep: PathBuf = (0..30).fold(inside.clone(), |path, _| path.join("directory"));
        fs::rename(&deep, outside.join("moved")).unwrap();
        let mut budget = 1000;
        let usage = scan.advance(&mut budget, deadline()).unwrap();
        assert!(!scan.is_whole);
        assert!(usage.inodes <= 42, "{usage:?}");
    }

    #[test]
    fn a_step_ends_at_its_deadline() {
        let dir = tempfile::tempdir().unwrap();
        for index in 0..600 {
            fs::write(dir.path().join(index.to_string()), "").unwrap();
        }
        let Start::Scan(mut scan) = Scan::start(dir.path(), Scope::Tree).unwrap() else {
            panic!("it is a directory");
        };
        let mut budget = 10_000;
        assert_eq!(scan.advance(&mut budget, Instant::now()), None);
        assert!(scan.entries <= 256, "{}", scan.entries);
    }
}
