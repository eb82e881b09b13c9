//! Killing everything in a cgroup at once.
//!
//! Signalling one process after the other races with those that fork. cgroup v2 kills a subtree in
//! one write; with cgroup v1 it is frozen first, so that nothing in it can fork, exit or give its
//! pid to another before it is signalled.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use plimsoll_core::cgroup::{CgroupPath, Version};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::{Errno, read, write};
use rustix::process::{Pid, Signal, kill_process};

use super::error::Error;
use super::tree::Cgroups;
use super::walk::{each_cgroup, each_pid};

/// The file that kills.
const KILL: &str = "cgroup.kill";

/// How often the state of the freezer is looked at, one millisecond apart. A process in the middle
/// of a system call that cannot be interrupted is signalled nevertheless.
const FREEZE_POLLS: u32 = 100;

impl Cgroups {
    /// Sends SIGKILL to every process in the cgroup and below. Nothing happens where there is no
    /// such cgroup. Does not wait for the processes to be gone.
    pub fn kill(&self, cgroup: &CgroupPath) -> Result<(), Error> {
        self.kill_handle(cgroup).kill()
    }

    /// Thaws everything in the cgroup and below that is frozen there. What is frozen because of a
    /// cgroup above stays so.
    pub fn thaw(&self, cgroup: &CgroupPath) {
        self.kill_handle(cgroup).thaw_all();
    }

    /// All that it takes to kill everything in the cgroup, for later.
    pub fn kill_handle(&self, cgroup: &CgroupPath) -> KillHandle {
        let directories = self.layout.directories(cgroup);
        let (kill, freezer) = match self.version() {
            Version::V1 => {
                let directory = self.layout.directory("freezer", cgroup);
                (None, directory.map(|directory| Freezer::v1(&directory)))
            }
            Version::V2 => {
                let directory = directories.first().cloned().unwrap_or_default();
                let kill = KillFile {
                    path: c_path(&directory.join(KILL)),
                    file: None,
                };
                (Some(kill), Some(Freezer::v2(&directory)))
            }
        };
        KillHandle {
            cgroup: cgroup.clone(),
            directories: directories.iter().map(|path| c_path(path)).collect(),
            kill,
            freezer,
        }
    }

    /// The processes in the cgroup and below, in any tree: one may have been moved in some only.
    pub fn pids(&self, cgroup: &CgroupPath) -> Result<BTreeSet<i32>, Error> {
        let mut pids = BTreeSet::new();
        self.kill_handle(cgroup).each_pid(&mut |pid| {
            pids.insert(pid.as_raw_nonzero().get());
        })?;
        Ok(pids)
    }
}

/// Everything needed to kill all processes of a cgroup. Prepared in advance: a kill allocates
/// no memory and waits for no lock.
#[derive(Debug)]
pub struct KillHandle {
    cgroup: CgroupPath,
    /// Those of the cgroup, one per tree.
    directories: Vec<CString>,
    /// What kills with one write; cgroup v2 only, and not before kernel 5.14.
    kill: Option<KillFile>,
    freezer: Option<Freezer>,
}

impl KillHandle {
    /// Opens what can be opened beforehand.
    pub fn open(&mut self) {
        if let Some(kill) = &mut self.kill
            && kill.file.is_none()
        {
            kill.file = open_to_write(&kill.path).ok();
        }
    }

    /// Sends SIGKILL to every process in the cgroup and below. Nothing happens where there is no
    /// such cgroup. Does not wait for the processes to be gone.
    pub fn kill(&mut self) -> Result<(), Error> {
        match self.kill.as_mut().map(KillFile::write) {
            Some(Ok(())) => Ok(()),
            // A kernel that does not know the file, or no such cgroup.
            None | Some(Err(Errno::NOENT)) => self.kill_frozen(),
            Some(Err(errno)) => Err(Error::Write {
                cgroup: self.cgroup.clone(),
                file: KILL.to_owned(),
                value: "1".to_owned(),
                source: errno.into(),
            }),
        }
    }

    /// Visits every process in the cgroup and below, in any tree, perhaps more than once.
    pub fn each_pid(&self, visit: &mut dyn FnMut(Pid)) -> Result<(), Error> {
        for directory in &self.directories {
            each_pid(directory, visit).map_err(|source| Error::Read {
                cgroup: self.cgroup.clone(),
                file: "cgroup.procs".to_owned(),
                source,
            })?;
        }
        Ok(())
    }

    /// Whether its cgroup was frozen to be killed by such a handle, and is still: the
    /// kernel that kills with one write needs nothing frozen.
    pub(super) fn is_left_frozen(&self) -> bool {
        let freezes = self.kill.as_ref().is_none_or(|kill| !kill.is_known());
        freezes
            && self
                .freezer
                .as_ref()
                .is_some_and(Freezer::is_freeze_requested)
    }

    /// Thaws its cgroup, but for what is frozen below it.
    pub(super) fn thaw(&self) {
        if let Some(freezer) = &self.freezer {
            freezer.thaw();
        }
    }

    /// Thaws its cgroup with all below it.
    fn thaw_all(&self) {
        if let Some(freezer) = &self.freezer {
            freezer.thaw_all();
        }
    }

    fn kill_frozen(&self) -> Result<(), Error> {
        if let Some(freezer) = &self.freezer {
            freezer.freeze();
        }
        let killed = self.signal_all();
        // A frozen process of cgroup v1 dies only when it is thawed, and a container may have
        // frozen itself in a cgroup below. Nothing can freeze again: all die before they run.
        self.thaw_all();
        killed
    }

    fn signal_all(&self) -> Result<(), Error> {
        let mut failure = None;
        self.each_pid(&mut |pid| match kill_process(pid, Signal::KILL) {
            Ok(()) | Err(Errno::SRCH) => {}
            Err(errno) => {
                failure.get_or_insert((pid, errno));
            }
        })?;
        match failure {
            None => Ok(()),
            Some((pid, errno)) => Err(Error::Kill {
                cgroup: self.cgroup.clone(),
                pid: pid.as_raw_nonzero().get(),
                source: errno.into(),
            }),
        }
    }
}

/// `cgroup.kill`, open if it could be.
#[derive(Debug)]
struct KillFile {
    path: CString,
    file: Option<OwnedFd>,
}

impl KillFile {
    fn is_known(&self) -> bool {
        self.file.is_some() || open_to_write(&self.path).is_ok()
    }

    fn write(&mut self) -> rustix::io::Result<()> {
        if let Some(file) = &self.file {
            if write(file, b"1").is_ok() {
                return Ok(());
            }
            // That of a cgroup that is gone. Another may have been made in its place.
            self.file = None;
        }
        let file = open_to_write(&self.path)?;
        write(&file, b"1").map(drop)
    }
}

fn c_path(path: &Path) -> CString {
    // No cgroup has a name with a zero in it; where there is no name there is no cgroup.
    CString::new(path.as_os_str().as_bytes()).unwrap_or_default()
}

fn open_to_write(path: &CStr) -> rustix::io::Result<OwnedFd> {
    openat(CWD, path, TO_WRITE, Mode::empty())
}

const TO_WRITE: OFlags = OFlags::WRONLY.union(OFlags::CLOEXEC).union(OFlags::TRUNC);

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
#[derive(Debug)]
struct Freezer {
    directory: CString,
    file: CString,
    /// The name of that file in each directory.
    name: &'static CStr,
    frozen: &'static str,
    thawed: &'static str,
    /// Where the state is read, and the line that means frozen.
    state: (CString, &'static str),
    /// The file that says whether this cgroup itself, not one above it, was frozen, and the line
    /// that means yes.
    requested: (CString, &'static str),
}

impl Freezer {
    fn v1(directory: &Path) -> Freezer {
        let file = c_path(&directory.join("freezer.state"));
        Freezer {
            directory: c_path(directory),
            name: c"freezer.state",
            state: (file.clone(), "FROZEN"),
            requested: (c_path(&directory.join("freezer.self_freezing")), "1"),
            file,
            frozen: "FROZEN",
            thawed: "THAWED",
        }
    }

    fn v2(directory: &Path) -> Freezer {
        let file = c_path(&directory.join("cgroup.freeze"));
        Freezer {
            directory: c_path(directory),
            name: c"cgroup.freeze",
            requested: (file.clone(), "1"),
            file,
            frozen: "1",
            thawed: "0",
            state: (c_path(&directory.join("cgroup.events")), "frozen 1"),
        }
    }

    fn freeze(&self) {
        if self.write(self.frozen).is_err() {
            return;
        }
        for _ in 0..FREEZE_POLLS {
            if self.is_frozen() {
                return;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn thaw(&self) {
        let _ = self.write(self.thawed);
    }

    fn thaw_all(&self) {
        let _ = each_cgroup(&self.directory, &mut |cgroup| {
            let file = openat(cgroup, self.name, TO_WRITE, Mode::empty());
            let _ = file.and_then(|file| write(&file, self.thawed.as_bytes()));
            Ok(())
        });
    }

    fn write(&self, word: &str) -> rustix::io::Result<()> {
        let file = open_to_write(&self.file)?;
        write(&file, word.as_bytes()).map(drop)
    }

    fn is_frozen(&self) -> bool {
        says(&self.state)
    }

    fn is_freeze_requested(&self) -> bool {
        says(&self.requested)
    }
}

/// Whether a file has that line.
fn says((path, want): &(CString, &'static str)) -> bool {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let Ok(file) = openat(CWD, path, flags, Mode::empty()) else {
        return false;
    };
    // A word, or a few short lines.
    let mut text = [0; 256];
    let length = read(&file, &mut text).unwrap_or_default();
    let mut lines = text[..length].split(|byte| *byte == b'\n');
    lines.any(|line| line == want.as_bytes())
}
