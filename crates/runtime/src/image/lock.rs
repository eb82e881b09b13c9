//! Locks between processes: the agent and the command line may use a store at once.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::file::{Doing, Error};

/// A locked file. The kernel gives the lock back when the process ends, however it ends.
#[derive(Debug)]
pub struct Lock {
    _file: OwnedFd,
}

impl Lock {
    /// Waits for the lock, making the file if need be.
    pub fn acquire(path: &Path) -> Result<Lock, Error> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC;
        let file = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR).doing("open", path)?;
        rustix::fs::flock(&file, FlockOperation::LockExclusive).doing("lock", path)?;
        Ok(Lock { _file: file })
    }

    /// Whether the lock of a file is held at this moment.
    pub fn is_held(path: &Path) -> bool {
        let file = rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty());
        file.is_ok_and(|file| {
            let try_once = FlockOperation::NonBlockingLockExclusive;
            rustix::fs::flock(&file, try_once) == Err(Errno::WOULDBLOCK)
        })
    }
}
