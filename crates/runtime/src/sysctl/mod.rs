//! Kernel settings that the agent changes, and what they were before.
//!
//! They hold for the whole machine, and several agents may run on it. A ledger that all of them
//! share keeps the value of each setting before the first change, and the data directories of the
//! agents that rely on it. `plimsoll down --purge` takes a data directory out; with the last one the
//! values from before come back. Settings do not outlive a boot, and neither does the ledger.
//! [`tunables`] are those that a node with pods needs.

pub mod tunables;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::cgroup::write_existing;

/// Where all agents of the machine keep the ledger.
const DIRECTORY: &str = "run/plimsoll";
const LEDGER: &str = "sysctls.json";
const BOOT_ID: &str = "kernel/random/boot_id";

/// The settings of a machine, seen from one agent.
#[derive(Clone, Debug)]
pub struct Sysctls {
    proc_sys: PathBuf,
    directory: PathBuf,
    data_dir: PathBuf,
}

/// A setting and the value it gets back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Previous {
    /// The setting by its path below `/proc/sys`: `vm/overcommit_memory`.
    pub path: String,
    /// The value before the first change.
    pub value: String,
}

/// What the ledger says about the agents and what they changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Ledger {
    /// The boot in which the settings were changed.
    boot: String,
    /// The data directories of agents that rely on the settings.
    agents: BTreeSet<PathBuf>,
    /// By path below `/proc/sys`.
    changed: BTreeMap<String, Change>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Change {
    before: String,
    after: String,
}

impl Sysctls {
    /// The settings of the machine below the system root (`/` but in tests), for the agent that
    /// keeps its data in that directory.
    pub fn new(system_root: &Path, data_dir: &Path) -> Sysctls {
        Sysctls {
            proc_sys: system_root.join("proc/sys"),
            directory: system_root.join(DIRECTORY),
            data_dir: data_dir.to_owned(),
        }
    }

    /// Reads a setting, by its path below `/proc/sys`.
    pub fn get(&self, path: &str) -> io::Result<String> {
        Ok(fs::read_to_string(self.proc_sys.join(path))?
            .trim()
            .to_owned())
    }

    /// Sets a setting and notes its value before. Returns whether it had another value.
    pub fn set(&self, path: &str, value: &str) -> io::Result<bool> {
        let _lock = self.lock()?;
        let mut ledger = self.read()?;
        let before = self.get(path)?;
        ledger.agents.insert(self.data_dir.clone());
        if before != value {
            let change = ledger.changed.entry(path.to_owned()).or_insert(Change {
                before: before.clone(),
                after: String::new(),
            });
            value.clone_into(&mut change.after);
        }
        // Recorded before it is changed: a value that is not recorded could not be restored.
        self.write(&ledger)?;
        if before != value {
            write_existing(&self.proc_sys.join(path), value)?;
        }
        Ok(before != value)
    }

    /// The settings that [`Self::release`] would put back.
    pub fn releasable(&self) -> io::Result<Vec<Previous>> {
        let ledger = self.read()?;
        match self.is_last(&ledger) {
            true => Ok(self.revertible(&ledger)),
            false => Ok(Vec::new()),
        }
    }

    /// Whether the ledger names this agent.
    pub fn is_noted(&self) -> io::Result<bool> {
        Ok(self.read()?.agents.contains(&self.data_dir))
    }

    /// Takes this agent out of the ledger. If it was the last, settings that were not changed
    /// since get the values from before, and the ledger is removed.
    pub fn release(&self) -> io::Result<()> {
        if !self.is_noted()? {
            return Ok(());
        }
        let _lock = self.lock()?;
        let mut ledger = self.read()?;
        if !self.is_last(&ledger) {
            ledger.agents.remove(&self.data_dir);
            return self.write(&ledger);
        }
        for previous in self.revertible(&ledger) {
            write_existing(&self.proc_sys.join(previous.path), &previous.value)?;
        }
        remove_if_there(fs::remove_file(self.directory.join(LEDGER)))?;
        remove_if_there(fs::remove_dir(&self.directory))
    }

    /// An agent whose data directory was removed by hand relies on nothing any more.
    fn is_last(&self, ledger: &Ledger) -> bool {
        let mut others = ledger.agents.iter().filter(|dir| **dir != self.data_dir);
        ledger.agents.contains(&self.data_dir) && !others.any(|dir| dir.is_dir())
    }

    fn revertible(&self, ledger: &Ledger) -> Vec<Previous> {
        let ours = ledger.changed.iter().filter(|(path, change)| {
            let now = self.get(path);
            now.is_ok_and(|now| now == change.after && now != change.before)
        });
        let previous = ours.map(|(path, change)| Previous {
            path: path.clone(),
            value: change.before.clone(),
        });
        previous.collect()
    }

    fn read(&self) -> io::Result<Ledger> {
        let boot = self.get(BOOT_ID).unwrap_or_default();
        let fresh = Ledger {
            boot: boot.clone(),
            ..Ledger::default()
        };
        match fs::read(self.directory.join(LEDGER)) {
            Ok(bytes) => {
                let ledger: Ledger = serde_json::from_slice(&bytes)?;
                Ok(if ledger.boot == boot { ledger } else { fresh })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(fresh),
            Err(error) => Err(error),
        }
    }

    /// Locks the directory of the ledger, which the last agent may remove meanwhile.
    fn lock(&self) -> io::Result<File> {
        loop {
            let made = DirBuilder::new()
                .recursive(true)
                .mode(0o755)
                .create(&self.directory);
            made?;
            let directory = match File::open(&self.directory) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                directory => directory?,
            };
            flock(&directory, FlockOperation::LockExclusive)?;
            let locked = directory.metadata()?.ino();
            if fs::metadata(&self.directory).is_ok_and(|now| now.ino() == locked) {
                return Ok(directory);
            }
        }
    }

    fn write(&self, ledger: &Ledger) -> io::Result<()> {
        let next = self.directory.join("sysctls.json.next");
        fs::write(&next, serde_json::to_vec(ledger)?)?;
        fs::rename(next, self.directory.join(LEDGER))
    }
}

fn remove_if_there(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PANIC: &str = "kernel/panic";
    const FORWARD: &str = "net/ipv4/ip_forward";

    struct Machine(tempfile::TempDir);

    impl Machine {
        fn new() -> Machine {
            let machine = Machine(tempfile::tempdir().unwrap());
            for (path, value) in [(PANIC, "0\n"), (FORWARD, "0\n"), (BOOT_ID, "first\n")] {
                machine.write(path, value);
            }
            machine
        }

        fn write(&self, path: &str, value: &str) {
            let path = self.0.path().join("proc/sys").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, value).unwrap();
        }

        fn agent(&self, name: &str) -> Sysctls {
            let data_dir = self.0.path().join(name);
            fs::create_dir_all(&data_dir).unwrap();
            Sysctls::new(self.0.path(), &data_dir)
        }

        fn has_ledger(&self) -> bool {
            self.0.path().join(DIRECTORY).exists()
        }
    }

    #[test]
    fn puts_values_back_and_removes_ledger() {
        let machine = Machine::new();
        let agent = machine.agent("a");
        assert!(agent.set(PANIC, "10").unwrap());
        assert!(!agent.set(PANIC, "10").unwrap());
        assert_eq!(agent.get(PANIC).unwrap(), "10");
        let previous = Previous {
            path: PANIC.to_owned(),
            value: "0".to_owned(),
        };
        assert_eq!(agent.releasable().unwrap(), [previous]);
        agent.release().unwrap();
        assert_eq!(agent.get(PANIC).unwrap(), "0");
        assert!(!machine.has_ledger());
        agent.release().unwrap();
        assert!(!machine.has_ledger());
    }

    #[test]
    fn keeps_first_value_over_restarts_of_agent() {
        let machine = Machine::new();
        let agent = machine.agent("a");
        agent.set(PANIC, "10").unwrap();
        machine.write(PANIC, "30\n");
        agent.set(PANIC, "10").unwrap();
        agent.release().unwrap();
        assert_eq!(agent.get(PANIC).unwrap(), "0");
    }

    #[test]
    fn leaves_settings_to_other_agents_and_last_one_puts_them_back() {
        let machine = Machine::new();
        let (first, second) = (machine.agent("a"), machine.agent("b"));
        first.set(PANIC, "10").unwrap();
        second.set(PANIC, "10").unwrap();
        assert!(first.releasable().unwrap().is_empty());
        first.release().unwrap();
        assert_eq!(first.get(PANIC).unwrap(), "10");
        second.release().unwrap();
        assert_eq!(second.get(PANIC).unwrap(), "0");
    }

    #[test]
    fn does_not_wait_for_agent_without_a_data_directory() {
        let machine = Machine::new();
        let (first, second) = (machine.agent("a"), machine.agent("b"));
        first.set(PANIC, "10").unwrap();
        second.set(PANIC, "10").unwrap();
        fs::remove_dir(machine.0.path().join("b")).unwrap();
        first.release().unwrap();
        assert_eq!(first.get(PANIC).unwrap(), "0");
    }

    #[test]
    fn leaves_value_that_another_process_has_set() {
        let machine = Machine::new();
        let agent = machine.agent("a");
        agent.set(PANIC, "10").unwrap();
        agent.set(FORWARD, "1").unwrap();
        machine.write(PANIC, "60\n");
        agent.release().unwrap();
        assert_eq!(agent.get(PANIC).unwrap(), "60");
        assert_eq!(agent.get(FORWARD).unwrap(), "0");
    }

    #[test]
    fn forgets_changes_from_before_a_reboot() {
        let machine = Machine::new();
        let agent = machine.agent("a");
        agent.set(PANIC, "10").unwrap();
        machine.write(BOOT_ID, "second\n");
        assert!(!agent.is_noted().unwrap());
        agent.release().unwrap();
        assert_eq!(agent.get(PANIC).unwrap(), "10");
    }
}
