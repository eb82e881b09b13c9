//! Removes cgroups, children first.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::thread;
use std::time::Duration;

use plimsoll_core::cgroup::CgroupPath;
use rustix::io::Errno;

use super::error::Error;
use super::kill::{is_gone, subdirectories};
use super::tree::Cgroups;

/// How often processes are killed before a cgroup is given up, as upstream.
const KILL_TRIES: u32 = 5;
/// The pauses between tries: 10, 20, 40, 80 and 160 ms, as upstream's cgroup library.
const FIRST_PAUSE: Duration = Duration::from_millis(10);

impl Cgroups {
    /// Kills what is left in a cgroup and removes it with all below it, from every tree. Nothing
    /// happens where there is no such cgroup. Takes up to a third of a second, or twice that where
    /// processes do not die.
    pub fn remove(&self, cgroup: &CgroupPath) -> Result<(), Error> {
        self.empty(cgroup)?;
        for directory in self.layout.directories_to_remove(cgroup) {
            self.remove_busy(cgroup, &directory)?;
        }
        Ok(())
    }

    /// Removes a cgroup and those below it if nothing runs in them; they are left alone if something
    /// does.
    pub fn remove_empty(&self, cgroup: &CgroupPath) -> Result<(), Error> {
        let pids = self.pids(cgroup)?;
        if !pids.is_empty() {
            return Err(Error::Populated {
                cgroup: cgroup.clone(),
                pids: pids.into_iter().collect(),
            });
        }
        for directory in self.layout.directories_to_remove(cgroup) {
            self.remove_busy(cgroup, &directory)?;
        }
        Ok(())
    }

    /// The paths of a cgroup and all below it, in any tree; none if it is not there.
    pub fn found_below(&self, cgroup: &CgroupPath) -> Result<BTreeSet<String>, Error> {
        let mut found = BTreeSet::new();
        for directory in self.layout.directories_to_remove(cgroup) {
            if directory.is_dir() {
                collect(&directory, cgroup.as_str(), &mut found)?;
            }
        }
        Ok(found)
    }

    fn empty(&self, cgroup: &CgroupPath) -> Result<(), Error> {
        let mut left = self.pids(cgroup)?;
        let mut pauses = Pauses(FIRST_PAUSE);
        for _ in 0..KILL_TRIES {
            if left.is_empty() {
                return Ok(());
            }
            self.kill(cgroup)?;
            pauses.wait();
            left = self.pids(cgroup)?;
            left.retain(|pid| is_alive(*pid));
        }
        if left.is_empty() {
            return Ok(());
        }
        Err(Error::Populated {
            cgroup: cgroup.clone(),
            pids: left.into_iter().collect(),
        })
    }

    /// The kernel keeps a cgroup busy for a moment after its last process has gone.
    fn remove_busy(&self, cgroup: &CgroupPath, directory: &Path) -> Result<(), Error> {
        let mut pauses = Pauses(FIRST_PAUSE);
        for _ in 1..KILL_TRIES {
            match self.remove_tree(cgroup, directory) {
                Err(Error::Remove { source, .. }) if is_busy(&source) => pauses.wait(),
                done => return done,
            }
        }
        self.remove_tree(cgroup, directory)
    }

    fn remove_tree(&self, cgroup: &CgroupPath, directory: &Path) -> Result<(), Error> {
        for child in subdirectories(directory)? {
            self.remove_tree(cgroup, &child)?;
        }
        match (self.directories.remove)(directory) {
            Err(error) if !is_gone(&error) => Err(Error::Remove {
                cgroup: cgroup.clone(),
                directory: directory.to_owned(),
                source: error,
            }),
            _ => Ok(()),
        }
    }
}

fn collect(directory: &Path, path: &str, found: &mut BTreeSet<String>) -> Result<(), Error> {
    found.insert(path.to_owned());
    for child in subdirectories(directory)? {
        let name = child.file_name().unwrap_or_default().to_string_lossy();
        collect(&child, &format!("{path}/{name}"), found)?;
    }
    Ok(())
}

fn is_busy(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::BUSY.raw_os_error())
}

/// Whether a signal would reach the process. A zombie is gone from its cgroup in the kernel.
fn is_alive(pid: i32) -> bool {
    use rustix::process::{Pid, test_kill_process};
    Pid::from_raw(pid).is_some_and(|pid| test_kill_process(pid) != Err(Errno::SRCH))
}

/// Pauses that double.
struct Pauses(Duration);

impl Pauses {
    fn wait(&mut self) {
        thread::sleep(self.0);
        self.0 *= 2;
    }
}
