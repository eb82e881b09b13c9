//! The data directory: where everything is kept, and that one process at a time uses it.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use plimsoll_client::holder;

use crate::failure::Advise;

/// How long to wait for a process that may be about to end.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long to wait where the process that took the lock is gone: a child that it was just starting
/// when it was killed has the lock until it runs its own program, which takes time on a busy machine.
const PATIENCE_WITH_CHILDREN: Duration = Duration::from_secs(10);

/// How often the lock is tried meanwhile.
const PERIOD: Duration = Duration::from_millis(20);

/// The parts of a data directory. Server and node may be two processes with one directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Server,
    Node,
}

impl Part {
    fn file(self) -> &'static str {
        match self {
            Part::Server => "server.lock",
            Part::Node => "node.lock",
        }
    }
}

/// Keeps others out as long as it lives. The kernel lets go of it with the process, however that
/// ends; the file stays, and means nothing by itself.
#[derive(Debug)]
pub(crate) struct Lock(#[expect(dead_code, reason = "open, it holds the lock")] File);

/// The directory in full, made if it is not there. Printed paths have to be right from any working
/// directory.
pub(crate) fn make(directory: &Path) -> Result<PathBuf> {
    let directory = std::path::absolute(directory)
        .with_context(|| format!("no data directory {}", directory.display()))?;
    std::fs::create_dir_all(&directory)
        .with_context(|| format!("cannot make the data directory {}", directory.display()))
        .hint("make it writable, run this as root, or name another directory with --data-dir")?;
    Ok(directory)
}

/// Takes a part of the directory for this process alone.
pub(crate) fn lock(directory: &Path, part: Part) -> Result<Lock> {
    let path = directory.join(part.file());
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(&path)
        .with_context(|| format!("cannot open {}", path.display()))
        .hint("make it writable, run this as root, or name another directory with --data-dir")?;
    let start = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Lock(file)),
            Err(TryLockError::WouldBlock) => {
                let patience = match holder::of_lock(&path) {
                    Some(_) => PATIENCE,
                    None => PATIENCE_WITH_CHILDREN,
                };
                if start.elapsed() > patience {
                    return Err(in_use(directory, &path));
                }
                sleep(PERIOD);
            }
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("cannot lock {}", path.display()));
            }
        }
    }
}

/// Fails if another process has that part, without taking it or making anything.
pub(crate) fn refuse_used(directory: &Path, part: Part) -> Result<()> {
    let path = directory.join(part.file());
    match holder::of_lock(&path) {
        Some(_) => Err(in_use(directory, &path)),
        None => Ok(()),
    }
}

/// The error that names the process which uses the directory.
pub(crate) fn in_use(directory: &Path, locked: &Path) -> anyhow::Error {
    let directory = directory.display();
    match holder::of_lock(locked) {
        Some(holder) => {
            anyhow!("the data directory {directory} is in use by {holder}").hint(format!(
                "stop it with: kill {}; or name another directory with --data-dir",
                holder.pid
            ))
        }
        // A process of another PID namespace, such as a container, is not shown.
        None => anyhow!("the data directory {directory} is in use by another process")
            .hint(format!("see which one: lsof {}", locked.display())),
    }
}
