//! The contents of a runtime's directory, read without locking it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::files;
use super::layout::{ContainerDir, Layout};
use super::process_id::ProcessId;
use super::record::{ContainerRecord, StartedRecord};
use super::sandbox;

/// What there is of sandboxes and containers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remains {
    /// Sandboxes, whole or not.
    pub sandboxes: Vec<SandboxRemains>,
    /// The ids of containers, whole or not.
    pub containers: Vec<String>,
    /// The processes that hold sandboxes and watch over containers.
    pub processes: Vec<i32>,
}

/// What there is of a sandbox.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SandboxRemains {
    /// Its id.
    pub id: String,
    /// The namespace of its pod; empty if the sandbox was not finished, as what follows.
    pub namespace: String,
    /// The name of its pod.
    pub name: String,
    /// The uid of its pod.
    pub uid: String,
    /// Whether its process runs, or that of a container in it.
    pub is_running: bool,
}

/// The file that the runtime of a directory has locked while it runs.
pub fn lock_file(root: &Path) -> PathBuf {
    Layout::new(root).lock()
}

/// Reads the directory of a runtime, whether one runs on it or not.
pub fn remains(root: &Path) -> io::Result<Remains> {
    let layout = Layout::new(root);
    let containers = names(&layout.containers())?;
    let (mut running, mut processes) = (Vec::new(), Vec::new());
    for id in &containers {
        let dir = layout.container(id);
        processes.extend(alive(&dir.monitor()));
        if is_running(&dir) {
            running.extend(sandbox_of(&dir));
        }
    }
    let mut sandboxes = Vec::new();
    for id in names(&layout.sandboxes())? {
        let dir = layout.sandbox(&id);
        let pause = alive(&dir.pause());
        let is_running = pause.is_some() || running.contains(&id);
        processes.extend(pause);
        let config = sandbox::read_config(&dir).unwrap_or_default();
        let metadata = config.metadata.unwrap_or_default();
        sandboxes.push(SandboxRemains {
            id,
            namespace: metadata.namespace,
            name: metadata.name,
            uid: metadata.uid,
            is_running,
        });
    }
    Ok(Remains {
        sandboxes,
        containers,
        processes,
    })
}

fn names(dir: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut names = Vec::new();
    for entry in entries {
        names.extend(entry?.file_name().into_string());
    }
    names.sort();
    Ok(names)
}

/// The process of which there is a record, if it runs. A record that cannot be read is none: what it
/// was about is removed all the same.
fn alive(record: &Path) -> Option<i32> {
    let process = files::read_json::<ProcessId>(record).ok()??;
    process.is_alive().then_some(process.pid)
}

fn is_running(dir: &ContainerDir) -> bool {
    let started = files::read_json::<StartedRecord>(&dir.started());
    started.is_ok_and(|started| started.is_some_and(|started| started.process.is_alive()))
}

fn sandbox_of(dir: &ContainerDir) -> Option<String> {
    let record = files::read_json::<ContainerRecord>(&dir.record());
    record.ok().flatten().map(|record| record.sandbox)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embedded::files::Durability;

    #[test]
    fn unfinished_sandboxes_are_listed_and_missing_directory_is_empty() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(remains(root.path()).unwrap(), Remains::default());
        let layout = Layout::new(root.path());
        layout.create().unwrap();
        for id in ["alive", "unfinished"] {
            fs::create_dir(layout.sandbox(id).path()).unwrap();
        }
        let own = ProcessId::of(std::process::id().try_into().unwrap()).unwrap();
        let pause = layout.sandbox("alive").pause();
        files::write_json(&pause, &own, Durability::Process).unwrap();
        let found = remains(root.path()).unwrap().sandboxes;
        let found: Vec<(&str, bool)> = found
            .iter()
            .map(|sandbox| (sandbox.id.as_str(), sandbox.is_running))
            .collect();
        assert_eq!(found, [("alive", true), ("unfinished", false)]);
    }
}
