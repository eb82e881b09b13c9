//! Which process uses a data directory.
//!
//! Those that hold a lock in it do, by what the kernel says of their open files. A process that has
//! the name of an agent, or the number that one had, does not count as it.

use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_runtime::embedded;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// Locked by an agent as long as it runs.
const LOCK: &str = "agent.lock";
/// Locked by an API server as long as it runs.
const STORE: &str = "store.redb";
/// How long a process that was just killed may take to release its lock.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A process that uses a data directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its process id.
    pub pid: i32,
    /// What it was started as, without its arguments: `plimsoll up`.
    pub command: String,
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} (pid {})", self.command, self.pid)
    }
}

/// Why a data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// Another process uses it.
    #[error("the data directory {} is in use by {holder}", data_dir.display())]
    InUse {
        /// The directory.
        data_dir: PathBuf,
        /// The process.
        holder: String,
    },
    /// Its lock cannot be taken.
    #[error("cannot lock {}", path.display())]
    Lock {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// A data directory that no other agent can use. Given back when dropped, or by the kernel.
#[derive(Debug)]
pub struct Claim {
    _lock: File,
}

impl Claim {
    /// Claims an existing data directory for this process.
    pub fn take(data_dir: &Path) -> Result<Claim, ClaimError> {
        let path = data_dir.join(LOCK);
        let failed = |source: io::Error| ClaimError::Lock {
            path: path.clone(),
            source,
        };
        let deadline = std::time::Instant::now() + PATIENCE;
        loop {
            let mut options = File::options();
            let lock = options.create(true).truncate(false).write(true).open(&path);
            let lock = lock.map_err(failed)?;
            match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {
                    let locked = lock.metadata().map_err(failed)?.ino();
                    // One that was removed meanwhile is no lock.
                    if fs::metadata(&path).is_ok_and(|now| now.ino() == locked) {
                        return Ok(Claim { _lock: lock });
                    }
                }
                Err(rustix::io::Errno::WOULDBLOCK) => {
                    if std::time::Instant::now() >= deadline {
                        return Err(in_use(data_dir));
                    }
                    std::thread::sleep(LOOK_EVERY);
                }
                Err(error) => return Err(failed(error.into())),
            }
        }
    }
}

fn in_use(data_dir: &Path) -> ClaimError {
    let holders = lock_holders(&[data_dir.join(LOCK)]).unwrap_or_default();
    ClaimError::InUse {
        data_dir: data_dir.to_owned(),
        holder: holders
            .first()
            .map_or_else(|| "another process".to_owned(), Holder::to_string),
    }
}

/// The file that an agent of a data directory has locked.
pub(super) fn lock_file(data_dir: &Path) -> PathBuf {
    data_dir.join(LOCK)
}

/// The processes that use a data directory: agents and API servers; where there are none, those
/// that an agent has left behind.
pub fn holders(data_dir: &Path) -> io::Result<Vec<Holder>> {
    let agents = lock_holders(&[data_dir.join(LOCK), data_dir.join(STORE)])?;
    match agents.is_empty() {
        true => lock_holders(&[runtime_lock(data_dir)]),
        false => Ok(agents),
    }
}

/// As [`holders`], with those that an agent has started for itself.
pub(super) fn all_holders(data_dir: &Path) -> io::Result<Vec<Holder>> {
    lock_holders(&[
        data_dir.join(LOCK),
        data_dir.join(STORE),
        runtime_lock(data_dir),
    ])
}

fn runtime_lock(data_dir: &Path) -> PathBuf {
    embedded::lock_file(&data_dir.join("runtime"))
}

/// The processes, other than this one, that have one of these files locked.
fn lock_holders(files: &[PathBuf]) -> io::Result<Vec<Holder>> {
    let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    let files: Vec<_> = files
        .iter()
        .filter_map(|file| fs::metadata(file).ok().map(identity))
        .collect();
    let mut found = Vec::new();
    if files.is_empty() {
        return Ok(found);
    }
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let pid = name.to_str().and_then(|name| name.parse::<i32>().ok());
        let Some(pid) = pid.filter(|pid| u32::try_from(*pid) != Ok(std::process::id())) else {
            continue;
        };
        let is_one = |metadata| files.contains(&identity(metadata));
        if holds_lock(Path::new("/proc").join(&name).as_path(), is_one) {
            found.push(Holder {
                pid,
                command: command(pid),
            });
        }
    }
    Ok(found)
}

/// A process that ends meanwhile holds nothing.
fn holds_lock(process: &Path, is_one: impl Fn(fs::Metadata) -> bool) -> bool {
    let descriptors = fs::read_dir(process.join("fd"));
    let mut descriptors = descriptors.into_iter().flatten().flatten();
    descriptors.any(|descriptor| {
        let is_file = fs::metadata(descriptor.path()).is_ok_and(&is_one);
        let info = process.join("fdinfo").join(descriptor.file_name());
        // Reading a file, as a backup does, is not using the directory.
        is_file && fs::read_to_string(info).is_ok_and(|info| has_lock(&info))
    })
}

fn has_lock(info: &str) -> bool {
    info.lines().any(|line| line.starts_with("lock:"))
}

/// The program and its first word.
fn command(pid: i32) -> String {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let line = String::from_utf8_lossy(&line);
    let mut words = line.split('\0').filter(|word| !word.is_empty());
    let program = words.next().map_or("process", |path| {
        let name = Path::new(path).file_name().and_then(|name| name.to_str());
        name.unwrap_or(path)
    });
    match words.next().filter(|word| !word.starts_with('-')) {
        Some(word) => format!("{program} {word}"),
        None => program.to_owned(),
    }
}

/// How a process was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// By itself, after SIGTERM.
    Asked,
    /// By SIGKILL, since it was not gone in time.
    Killed,
}

/// Ends a process that uses a data directory: asks it to, and kills it when the time is up. `None` if
/// it does not use the directory any more.
pub(super) fn end(holder: &Holder, data_dir: &Path, within: Duration) -> io::Result<Option<Ended>> {
    let Some(pid) = Pid::from_raw(holder.pid) else {
        return Ok(None);
    };
    let process = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(process) => process,
        Err(rustix::io::Errno::SRCH) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    // Looked up again now that the number cannot pass to another process.
    if !holders(data_dir)?.iter().any(|now| now.pid == holder.pid) {
        return Ok(None);
    }
    signal(&process, Signal::TERM)?;
    if has_ended(&process, within)? {
        return Ok(Some(Ended::Asked));
    }
    signal(&process, Signal::KILL)?;
    match has_ended(&process, PATIENCE)? {
        true => Ok(Some(Ended::Killed)),
        false => Err(io::Error::from(io::ErrorKind::TimedOut)),
    }
}

fn signal(process: &OwnedFd, signal: Signal) -> io::Result<()> {
    match pidfd_send_signal(process, signal) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn has_ended(process: &OwnedFd, within: Duration) -> io::Result<bool> {
    let deadline = std::time::Instant::now() + within;
    loop {
        let left = deadline.saturating_duration_since(std::time::Instant::now());
        let left = Timespec::try_from(left).map_err(|_| io::ErrorKind::InvalidInput)?;
        let mut one = [PollFd::new(process, PollFlags::IN)];
        match poll(&mut one, Some(&left)) {
            Ok(count) => return Ok(count > 0),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// A process that holds a lock on the file, and perhaps does not end when asked to.
    fn locker(file: &Path, trap: &str) -> Child {
        let script = format!("trap '{trap}' TERM; echo; while :; do sleep 0.05; done");
        let mut child = Command::new("flock")
            .args(["--no-fork".as_ref(), file.as_os_str()])
            .args(["bash", "-c", &script])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut byte = [0];
        let output = child.stdout.as_mut().unwrap();
        io::Read::read_exact(output, &mut byte).unwrap();
        child
    }

    #[test]
    fn finds_and_ends_process_that_holds_lock_and_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let lock = dir.path().join(LOCK);
        fs::write(&lock, "").unwrap();
        let mut reader = Command::new("tail")
            .args(["-f".as_ref(), lock.as_os_str()])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        assert!(holders(dir.path()).unwrap().is_empty());
        for (trap, within, expected) in [
            ("exit", Duration::from_secs(30), Ended::Asked),
            (":", Duration::from_millis(200), Ended::Killed),
        ] {
            let mut child = locker(&lock, trap);
            let found = holders(dir.path()).unwrap();
            let pid = i32::try_from(child.id()).unwrap();
            assert!(found.iter().any(|holder| holder.pid == pid), "{found:?}");
            let holder = found.into_iter().find(|holder| holder.pid == pid).unwrap();
            assert_eq!(holder.command, "bash");
            assert_eq!(end(&holder, dir.path(), within).unwrap(), Some(expected));
            child.wait().unwrap();
            assert_eq!(end(&holder, dir.path(), within).unwrap(), None);
        }
        assert!(reader.try_wait().unwrap().is_none());
        reader.kill().unwrap();
        reader.wait().unwrap();
    }

    #[test]
    fn claims_directory_once() {
        let dir = tempfile::tempdir().unwrap();
        let claim = Claim::take(dir.path()).unwrap();
        drop(claim);
        let mut child = locker(&lock_file(dir.path()), "exit");
        let refused = Claim::take(dir.path()).unwrap_err().to_string();
        assert!(
            refused.contains(&format!("(pid {})", child.id())),
            "{refused}"
        );
        child.kill().unwrap();
        child.wait().unwrap();
        Claim::take(dir.path()).unwrap();
    }
}
