//! Locks between processes: the agent and the command line may use a store at once.

use std::fs::File;
use std::path::Path;

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::file::{Doing, Error};

/// A locked file. The kernel gives the lock back when the process ends, however it ends.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Waits for the lock.
    pub fn acquire(path: &Path) -> Result<Lock, Error> {
        let file = open(path)?;
        rustix::fs::flock(&file, FlockOperation::LockExclusive).doing("lock", path)?;
        Ok(Lock { _file: file })
    }

    /// None if another has it.
    pub fn try_acquire(path: &Path) -> Result<Option<Lock>, Error> {
        let file = open(path)?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Lock { _file: file })),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error).doing("lock", path),
        }
    }
}

fn open(path: &Path) -> Result<File, Error> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR).doing("open", path)?;
    Ok(file.into())
}
