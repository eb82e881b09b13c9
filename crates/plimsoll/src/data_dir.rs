//! The data directory: creation, permissions, and locks for one process at a time.

use std::fs::{DirBuilder, File, Metadata, OpenOptions, Permissions, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use plimsoll_client::holder;

use crate::failure::Advise;

/// The default data directory.
pub(crate) const DEFAULT_DATA_DIR: &str = "/var/lib/plimsoll";

/// The file of the embedded store in a data directory.
pub(crate) const STORE_FILE: &str = "store.redb";

/// Only the owner enters the directory: it holds keys, and Secrets in the clear.
const PRIVATE: u32 = 0o700;

/// Any of these files marks a data directory of Plimsoll.
const OWN_FILES: [&str; 6] = [
    "agent.json",
    "agent.lock",
    "node.kubeconfig",
    "node.lock",
    "server.lock",
    STORE_FILE,
];

/// How long to wait for a process that may be about to exit.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);

/// How long to wait if the process that took the lock has exited: a child that it was forking when it
/// was killed holds the lock until its exec, which takes time on a busy machine.
const ORPHANED_LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// How often the lock is tried.
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

/// Excludes other processes until it is dropped. The kernel releases the lock when the process exits,
/// however it exits; the file stays and means nothing by itself.
#[derive(Debug)]
pub(crate) struct Lock(#[expect(dead_code, reason = "open, it holds the lock")] File);

/// The absolute path of the directory, which is created if missing and closed to other users. Printed
/// paths must be valid in any working directory.
pub(crate) fn make(directory: &Path) -> Result<PathBuf> {
    let directory = std::path::absolute(directory)
        .with_context(|| format!("invalid data directory {}", directory.display()))?;
    create(&directory)
        .with_context(|| format!("cannot create data directory {}", directory.display()))
        .hint("make it writable, run this as root, or name another directory with --data-dir")?;
    close(&directory)
        .with_context(|| format!("cannot close {} to other users", directory.display()))
        .hint("run this as the owner of the directory, or as root")?;
    Ok(directory)
}

/// Creates the directory for its owner only, and its parents with default permissions.
fn create(directory: &Path) -> std::io::Result<()> {
    if let Some(parent) = directory.parent() {
        std::fs::create_dir_all(parent)?;
    }
    match DirBuilder::new().mode(PRIVATE).create(directory) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && directory.is_dir() => Ok(()),
        made => made,
    }
}

/// Removes permissions of other users, which earlier versions or a copy may have set. A directory
/// that is not Plimsoll's, such as /tmp, is left unchanged.
fn close(directory: &Path) -> std::io::Result<()> {
    let is_open = |metadata: &Metadata| metadata.permissions().mode() & 0o077 != 0;
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        entries.push(entry?);
    }
    let is_ours = entries.is_empty()
        || entries.iter().any(|entry| {
            let name = entry.file_name();
            OWN_FILES.iter().any(|own| name == *own)
        });
    if !is_ours {
        if is_open(&std::fs::metadata(directory)?) {
            tracing::warn!(
                directory = %directory.display(),
                "data directory has files of other programs; not changing its permissions"
            );
        }
        return Ok(());
    }
    if is_open(&std::fs::metadata(directory)?) {
        std::fs::set_permissions(directory, Permissions::from_mode(PRIVATE))?;
    }
    for entry in entries {
        let metadata = entry.metadata()?;
        if metadata.is_file() && is_open(&metadata) {
            std::fs::set_permissions(entry.path(), Permissions::from_mode(0o600))?;
        }
    }
    Ok(())
}

/// Locks a part of the directory for this process.
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
                let timeout = match holder::of_lock(&path) {
                    Some(_) => LOCK_TIMEOUT,
                    None => ORPHANED_LOCK_TIMEOUT,
                };
                if start.elapsed() > timeout {
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

/// Fails if another process has locked that part; changes nothing.
pub(crate) fn refuse_used(directory: &Path, part: Part) -> Result<()> {
    let path = directory.join(part.file());
    match holder::of_lock(&path) {
        Some(_) => Err(in_use(directory, &path)),
        None => Ok(()),
    }
}

/// An error that names the process that uses the directory.
pub(crate) fn in_use(directory: &Path, locked: &Path) -> anyhow::Error {
    let directory = directory.display();
    match holder::of_lock(locked) {
        Some(holder) => {
            anyhow!("the data directory {directory} is in use by {holder}").hint(format!(
                "stop it with: kill {}; or name another directory with --data-dir",
                holder.pid
            ))
        }
        // /proc does not show processes of other PID namespaces, such as containers.
        None => anyhow!("the data directory {directory} is in use by another process")
            .hint(format!("find it with: lsof {}", locked.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    fn open(path: &Path, mode: u32) {
        std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn permissions_are_private_when_created_and_when_found_open() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("above/data");
        assert_eq!(make(&directory).unwrap(), directory);
        assert_eq!(mode(&directory), 0o700);
        assert_ne!(mode(&folder.path().join("above")), 0o700);

        // Permissions of an earlier version.
        drop(lock(&directory, Part::Server).unwrap());
        let files = ["store.redb", "admin.kubeconfig"].map(|name| directory.join(name));
        for file in &files {
            std::fs::write(file, "secret").unwrap();
            open(file, 0o644);
        }
        open(&directory, 0o755);
        make(&directory).unwrap();
        assert_eq!(mode(&directory), 0o700);
        for file in &files {
            assert_eq!(mode(file), 0o600, "{}", file.display());
        }
    }

    #[test]
    fn a_directory_of_other_programs_is_left_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("letter"), "").unwrap();
        open(folder.path(), 0o1777);
        make(folder.path()).unwrap();
        assert_eq!(mode(folder.path()), 0o1777);
    }
}
