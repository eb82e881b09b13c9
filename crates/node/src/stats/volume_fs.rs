//! File systems of volumes, which may not answer.
//!
//! A network file system whose server is gone, or a FUSE whose process hangs, keeps any caller
//! waiting, perhaps forever, and other measurements must not wait with it. So each is read by a
//! thread of its own, which is waited for only briefly. One that does not answer is not read again
//! before it does, and only so many threads wait at a time; the last stats are used meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, channel};
use std::thread;
use std::time::Duration;

use plimsoll_core::object::timestamp::Timestamp;

use super::file_system::FileSystem;

/// How long the stats of a volume's file system are valid.
const PERIOD: Duration = Duration::from_secs(10);
/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_millis(250);
/// How many threads may wait for answers.
const MOST_WAITING: usize = 16;
/// A thread that asks needs little.
const STACK: usize = 64 << 10;

type Answer = Option<FileSystem>;

/// What is known of the file systems of volumes, by path.
#[derive(Debug)]
pub(super) struct VolumeFileSystems {
    known: BTreeMap<PathBuf, (Timestamp, FileSystem)>,
    /// Questions that were not answered in time.
    waiting: BTreeMap<PathBuf, Receiver<Answer>>,
    ask: fn(&Path) -> io::Result<FileSystem>,
}

impl Default for VolumeFileSystems {
    fn default() -> VolumeFileSystems {
        VolumeFileSystems {
            known: BTreeMap::new(),
            waiting: BTreeMap::new(),
            ask: FileSystem::read,
        }
    }
}

impl VolumeFileSystems {
    /// Forgets all others. A thread that waits for one of them ends when it is answered.
    pub(super) fn retain(&mut self, paths: &BTreeSet<&PathBuf>) {
        self.known.retain(|path, _| paths.contains(path));
    }

    pub(super) fn get(&self, path: &Path) -> Option<(Timestamp, FileSystem)> {
        self.known.get(path).copied()
    }

    /// Updates the stats of a path, if its file system answers.
    pub(super) fn sample(&mut self, path: &Path, now: Timestamp) {
        let known = self.known.get(path);
        if known.is_some_and(|(time, _)| now.saturating_since(*time) < PERIOD) {
            return;
        }
        let answer = match self.waiting.remove(path) {
            Some(waiting) => match waiting.try_recv() {
                Ok(answer) => answer,
                Err(TryRecvError::Disconnected) => None,
                Err(TryRecvError::Empty) => {
                    self.waiting.insert(path.to_owned(), waiting);
                    return;
                }
            },
            None => self.begin(path),
        };
        if let Some(fs) = answer {
            self.known.insert(path.to_owned(), (now, fs));
        }
    }

    fn begin(&mut self, path: &Path) -> Answer {
        if self.waiting.len() >= MOST_WAITING {
            return None;
        }
        let (sender, receiver) = channel();
        let (asked, ask) = (path.to_owned(), self.ask);
        let thread = thread::Builder::new()
            .name("volume-fs".to_owned())
            .stack_size(STACK);
        let started = thread.spawn(move || {
            // Without a receiver the volume is gone.
            let _ = sender.send(ask(&asked).ok());
        });
        started.ok()?;
        match receiver.recv_timeout(PATIENCE) {
            Ok(answer) => answer,
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => {
                tracing::warn!(path = %path.display(), "volume file system not responding");
                self.waiting.insert(path.to_owned(), receiver);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File};
    use std::os::fd::AsRawFd;
    use std::sync::Mutex;
    use std::time::Instant;

    use plimsoll_testkit::mount::unmount_below;

    /// Held by a test as long as paths that begin with `hangs` do not answer.
    static HANGING: Mutex<()> = Mutex::new(());

    fn ask(path: &Path) -> io::Result<FileSystem> {
        if path.starts_with("hangs") {
            drop(HANGING.lock());
        }
        Ok(FileSystem::default())
    }

    fn asking() -> VolumeFileSystems {
        VolumeFileSystems {
            ask,
            ..VolumeFileSystems::default()
        }
    }

    #[test]
    fn hanging_file_system_blocks_no_other_and_is_queried_once() {
        let mut volumes = asking();
        let at = Timestamp::from_secs;
        let hanging = HANGING.lock().unwrap();
        let begun = Instant::now();
        for second in 0..100 {
            volumes.sample(Path::new("hangs/a"), at(second * 10));
            volumes.sample(Path::new("answers"), at(second * 10));
        }
        assert!(
            begun.elapsed() < Duration::from_secs(10),
            "{:?}",
            begun.elapsed()
        );
        assert_eq!(volumes.get(Path::new("hangs/a")), None);
        assert_eq!(volumes.get(Path::new("answers")).unwrap().0, at(990));
        assert_eq!(volumes.waiting.len(), 1);
        // Many of them take a bounded number of threads.
        for index in 0..40 {
            volumes.sample(&Path::new("hangs").join(index.to_string()), at(0));
        }
        assert_eq!(volumes.waiting.len(), MOST_WAITING);
        volumes.retain(&BTreeSet::new());
        assert_eq!(volumes.get(Path::new("answers")), None);
        drop(hanging);
        let deadline = Instant::now() + Duration::from_secs(10);
        while volumes.get(Path::new("hangs/a")).is_none() {
            assert!(Instant::now() < deadline);
            volumes.sample(Path::new("hangs/a"), at(2000));
            thread::yield_now();
        }
    }

    #[test]
    #[ignore = "tier: root"]
    fn fuse_with_a_hanging_process_blocks_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("fuse");
        fs::create_dir(&at).unwrap();
        let device = File::options().read(true).write(true).open("/dev/fuse");
        let device = device.unwrap();
        let data = format!(
            "fd={},rootmode=40000,user_id=0,group_id=0",
            device.as_raw_fd()
        );
        let data = std::ffi::CString::new(data).unwrap();
        let flags = rustix::mount::MountFlags::empty();
        rustix::mount::mount("hangs", &at, "fuse", flags, &*data).unwrap();
        // No process answers its requests. The directory around it is still measured.
        let mut volumes = VolumeFileSystems::default();
        let begun = Instant::now();
        for second in 0..20 {
            volumes.sample(&at, Timestamp::from_secs(second * 10));
            volumes.sample(folder.path(), Timestamp::from_secs(second * 10));
        }
        let measured = super::super::disk::walked_tree(folder.path());
        assert!(
            begun.elapsed() < Duration::from_secs(5),
            "{:?}",
            begun.elapsed()
        );
        assert_eq!(measured, 1, "a mount is not part of the tree");
        assert_eq!(volumes.get(&at), None);
        assert!(volumes.get(folder.path()).is_some());
        assert_eq!(volumes.waiting.len(), 1);
        drop(device);
        unmount_below(folder.path());
    }
}
