//! Killing everything in a cgroup at once.
//!
//! Signalling one process after the other races with those that fork. cgroup v2 kills a subtree in
//! one write; with cgroup v1 it is frozen first, so that nothing in it can fork, exit or give its
//! pid to another before it is signalled.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use plimsoll_core::cgroup::{CgroupPath, Version};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};

use super::create::write_existing;
use super::error::Error;
use super::tree::Cgroups;

/// How often the state of the freezer is looked at, one millisecond apart. A process in the middle
/// of a system call that cannot be interrupted is signalled all the same.
const FREEZE_POLLS: u32 = 100;

impl Cgroups {
    /// Sends SIGKILL to every process in the cgroup and below. Nothing happens where there is no
    /// such cgroup. Does not wait for the processes to be gone.
    pub fn kill(&self, cgroup: &CgroupPath) -> Result<(), Error> {
        match self.version() {
            Version::V1 => {
                let freezer = self.layout.directory("freezer", cgroup);
                let control = freezer.map(|directory| Freezer::v1(&directory));
                self.kill_frozen(cgroup, control.as_ref())
            }
            Version::V2 => {
                let directories = self.layout.directories(cgroup);
                let Some(directory) = directories.first() else {
                    return Ok(());
                };
                match write_existing(&directory.join("cgroup.kill"), "1") {
                    Ok(()) => Ok(()),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {
                        // Kernels before 5.14.
                        self.kill_frozen(cgroup, Some(&Freezer::v2(directory)))
                    }
                    Err(source) => Err(Error::Write {
                        cgroup: cgroup.clone(),
                        file: "cgroup.kill".to_owned(),
                        value: "1".to_owned(),
                        source,
                    }),
                }
            }
        }
    }

    fn kill_frozen(&self, cgroup: &CgroupPath, freezer: Option<&Freezer>) -> Result<(), Error> {
        if let Some(freezer) = freezer {
            freezer.freeze();
        }
        let killed = self.signal_all(cgroup);
        // A frozen process of cgroup v1 dies only when it goes on.
        if let Some(freezer) = freezer {
            freezer.thaw();
        }
        killed
    }

    fn signal_all(&self, cgroup: &CgroupPath) -> Result<(), Error> {
        let mut failure = None;
        for pid in self.pids(cgroup)? {
            match Pid::from_raw(pid).map(|pid| kill_process(pid, Signal::KILL)) {
                None | Some(Ok(()) | Err(Errno::SRCH)) => {}
                Some(Err(errno)) => {
                    failure = failure.or(Some(Error::Kill {
                        cgroup: cgroup.clone(),
                        pid,
                        source: errno.into(),
                    }));
                }
            }
        }
        failure.map_or(Ok(()), Err)
    }

    /// The processes in the cgroup and below, in any tree: one may have been moved in some only.
    pub fn pids(&self, cgroup: &CgroupPath) -> Result<BTreeSet<i32>, Error> {
        let mut pids = BTreeSet::new();
        let mut directories = self.layout.directories(cgroup);
        while let Some(directory) = directories.pop() {
            directories.extend(subdirectories(&directory)?);
            let file = "cgroup.procs";
            match fs::read_to_string(directory.join(file)) {
                // Zero stands for a process that this pid namespace does not know.
                Ok(text) => pids.extend(
                    text.lines()
                        .filter_map(|line| line.parse::<i32>().ok())
                        .filter(|pid| *pid > 0),
                ),
                // A cgroup that went meanwhile, or threads only.
                Err(error) if is_gone(&error) => {}
                Err(source) => {
                    return Err(Error::Read {
                        cgroup: cgroup.clone(),
                        file: file.to_owned(),
                        source,
                    });
                }
            }
        }
        Ok(pids)
    }
}

/// The directories in a directory; none if it is not there.
pub(super) fn subdirectories(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let failed = |source| Error::List {
        directory: directory.to_owned(),
        source,
    };
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if is_gone(&error) => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed)?;
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.push(entry.path());
        }
    }
    Ok(found)
}

/// Whether the cgroup is not there, or went while it was looked at.
pub(super) fn is_gone(error: &io::Error) -> bool {
    let errno = error.raw_os_error();
    error.kind() == io::ErrorKind::NotFound
        || errno == Some(Errno::NODEV.raw_os_error())
        || errno == Some(Errno::OPNOTSUPP.raw_os_error())
}

/// The file that stops a cgroup. Failures do not matter: without it processes are killed all the
/// same, only not at once.
struct Freezer {
    file: PathBuf,
    frozen: &'static str,
    thawed: &'static str,
    /// Where the state is read, and the line that means frozen.
    state: (PathBuf, &'static str),
}

impl Freezer {
    fn v1(directory: &Path) -> Freezer {
        let file = directory.join("freezer.state");
        Freezer {
            state: (file.clone(), "FROZEN"),
            file,
            frozen: "FROZEN",
            thawed: "THAWED",
        }
    }

    fn v2(directory: &Path) -> Freezer {
        Freezer {
            file: directory.join("cgroup.freeze"),
            frozen: "1",
            thawed: "0",
            state: (directory.join("cgroup.events"), "frozen 1"),
        }
    }

    fn freeze(&self) {
        if write_existing(&self.file, self.frozen).is_err() {
            return;
        }
        let (state, want) = &self.state;
        let is_frozen = || {
            let text = fs::read_to_string(state).unwrap_or_default();
            text.lines().any(|line| line == *want)
        };
        for _ in 0..FREEZE_POLLS {
            if is_frozen() {
                return;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn thaw(&self) {
        let _ = write_existing(&self.file, self.thawed);
    }
}
