//! The cgroups of sandboxes and containers.
//!
//! Making, killing and removing them is [`crate::cgroup`]'s, what is written into them core's
//! ([`plimsoll_core::cgroup::Host::render`]). Here is what only a runtime does with one: counting
//! its oom kills, restricting its devices ([`devices`]), and having processes born in it.

pub(super) mod devices;
mod devices_v2;
mod named_trees;
mod usage;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use plimsoll_core::cgroup::{CgroupName, CgroupPath, Driver, Host, Version};

use crate::cgroup::{Cgroups, Error, Refusal};

/// How often to check whether killed processes are gone.
const KILL_POLL_INTERVAL: Duration = Duration::from_millis(2);

/// The cgroups of this machine.
#[derive(Clone, Debug)]
pub(super) struct Machine(Arc<Cgroups>);

/// One of them, which need not be there.
#[derive(Clone, Debug)]
pub(super) struct Cgroup {
    all: Arc<Cgroups>,
    pub(super) path: CgroupPath,
}

impl Machine {
    pub(super) fn detect(driver: Driver) -> Result<Machine, Refusal> {
        let all = Cgroups::detect(Path::new("/"), driver, "/")?;
        Ok(Machine(Arc::new(all)))
    }

    pub(super) fn host(&self) -> &Host {
        self.0.host()
    }

    pub(super) fn is_v2(&self) -> bool {
        self.0.version() == Version::V2
    }

    /// The cgroup at a path below the mount points.
    pub(super) fn cgroup(&self, path: &str) -> Cgroup {
        Cgroup {
            all: Arc::clone(&self.0),
            // Already a path, whichever driver created it.
            path: CgroupName::parse(path, Driver::Cgroupfs).to_path(Driver::Cgroupfs),
        }
    }
}

impl Cgroup {
    pub(super) fn is_v2(&self) -> bool {
        self.all.version() == Version::V2
    }

    pub(super) fn create(&self) -> Result<(), Error> {
        self.all.create(&self.path)
    }

    /// Moves a process here.
    pub(super) fn enter(&self, pid: u32) -> Result<(), Error> {
        self.all.enter(&self.path, pid)
    }

    /// Writes files, each into the tree of its controller.
    pub(super) fn write(&self, files: &BTreeMap<String, String>) -> Result<(), Error> {
        for (file, value) in files {
            self.write_file(file, value)?;
        }
        Ok(())
    }

    /// Writes one file if the kernel has it.
    pub(super) fn write_if_present(&self, file: &str, value: &str) -> Result<(), Error> {
        match self.read(file) {
            Some(_) => self.write_file(file, value),
            None => Ok(()),
        }
    }

    fn write_file(&self, file: &str, value: &str) -> Result<(), Error> {
        let controller = file.split('.').next().unwrap_or(file);
        let (cgroup, file, value) = (self.path.clone(), file.to_owned(), value.to_owned());
        let Some(directory) = self.all.layout().directory(controller, &self.path) else {
            let controller = controller.to_owned();
            return Err(Error::NoController {
                cgroup,
                file,
                value,
                controller,
            });
        };
        fs::write(directory.join(&file), &value).map_err(|source| Error::Write {
            cgroup,
            file,
            value,
            source,
        })
    }

    /// What a file holds; `None` if there is none.
    pub(super) fn read(&self, file: &str) -> Option<String> {
        self.all.read(&self.path, file).ok()
    }

    /// How often the kernel has killed a process here for want of memory.
    pub(super) fn oom_kills(&self) -> u64 {
        let file = if self.is_v2() {
            "memory.events"
        } else {
            "memory.oom_control"
        };
        let text = self.read(file).unwrap_or_default();
        usage::field(&text, "oom_kill").unwrap_or(0)
    }

    /// Kills all that run in it, frozen or not, and does not wait.
    pub(super) fn kill(&self) -> Result<(), Error> {
        self.all.kill(&self.path)
    }

    /// Kills all that run in it and waits until they are gone; false if time is up before.
    pub(super) fn kill_all(&self, timeout: Duration) -> Result<bool, Error> {
        let deadline = Instant::now() + timeout;
        while !self.all.pids(&self.path)?.is_empty() {
            self.kill()?;
            if Instant::now() >= deadline {
                return Ok(false);
            }
            thread::sleep(KILL_POLL_INTERVAL);
        }
        Ok(true)
    }

    /// Kills what is left in it and removes it with the cgroups below it. One that is gone is no
    /// error.
    pub(super) fn remove(&self, timeout: Duration) -> Result<(), Error> {
        self.kill_all(timeout)?;
        self.all.remove(&self.path)
    }
}
