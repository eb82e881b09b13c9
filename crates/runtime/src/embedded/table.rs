//! What the runtime has: sandboxes and containers, in memory as they are on disk.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::disk_records::{ContainerRecord, ExitRecord, SandboxRecord, StartedRecord};
use super::layout::{ContainerDir, SandboxDir};
use crate::Error;
use crate::wire::{ContainerConfig, PodSandboxConfig};

/// A sandbox.
#[derive(Debug)]
pub(super) struct Sandbox {
    pub(super) id: String,
    pub(super) dir: SandboxDir,
    pub(super) config: PodSandboxConfig,
    pub(super) record: Mutex<SandboxRecord>,
    /// Whether its process runs.
    pub(super) is_ready: watch::Sender<bool>,
    /// Held while it is stopped or removed.
    pub(super) change: tokio::sync::Mutex<()>,
}

/// A container.
#[derive(Debug)]
pub(super) struct Container {
    pub(super) id: String,
    pub(super) dir: ContainerDir,
    /// As created, with limits as they were changed since.
    pub(super) config: Mutex<ContainerConfig>,
    pub(super) record: ContainerRecord,
    pub(super) phase: watch::Sender<Phase>,
    /// Held while it is started or removed.
    pub(super) change: tokio::sync::Mutex<()>,
}

/// Where a container is in its life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Created,
    Running(StartedRecord),
    Exited {
        /// Zero if it never ran.
        started_at: i64,
        exit: ExitRecord,
    },
}

impl Sandbox {
    pub(super) fn record(&self) -> SandboxRecord {
        lock(&self.record).clone()
    }
}

impl Container {
    pub(super) fn config(&self) -> ContainerConfig {
        lock(&self.config).clone()
    }

    pub(super) fn phase(&self) -> Phase {
        self.phase.borrow().clone()
    }

    /// Its first process, if it runs.
    pub(super) fn running(&self) -> Result<StartedRecord, Error> {
        match self.phase() {
            Phase::Running(started) => Ok(started),
            other => Err(Error::Invalid(format!(
                "container {:?} is in {} state",
                self.id,
                other.cri_name()
            ))),
        }
    }

    /// Waits until it has ended.
    pub(super) async fn wait_for_exit(&self) {
        let mut phase = self.phase.subscribe();
        let is_over = |phase: &Phase| matches!(phase, Phase::Exited { .. });
        // The sender is part of this container, so that it cannot be gone.
        let _ = phase.wait_for(is_over).await;
    }
}

impl Phase {
    pub(super) fn cri_name(&self) -> &'static str {
        match self {
            Phase::Created => "CONTAINER_CREATED",
            Phase::Running(_) => "CONTAINER_RUNNING",
            Phase::Exited { .. } => "CONTAINER_EXITED",
        }
    }
}

/// All sandboxes and containers by id, and which names are taken.
#[derive(Debug, Default)]
pub(super) struct Table {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    sandboxes: BTreeMap<String, Arc<Sandbox>>,
    containers: BTreeMap<String, Arc<Container>>,
    /// From the name that may be given only once to the id that has it.
    names: BTreeMap<String, String>,
}

impl Table {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        lock(&self.inner)
    }

    /// Takes a name, so that nothing is made twice.
    pub(super) fn reserve(&self, what: &str, name: &str, id: &str) -> Result<(), Error> {
        let mut inner = self.inner();
        match inner.names.get(name) {
            Some(holder) if holder != id => Err(Error::Invalid(format!(
                "failed to reserve {what} name {name:?}: name {name:?} is reserved for {holder:?}"
            ))),
            _ => {
                inner.names.insert(name.to_owned(), id.to_owned());
                Ok(())
            }
        }
    }

    /// Gives names back.
    pub(super) fn release(&self, id: &str) {
        self.inner().names.retain(|_, holder| holder != id);
    }

    pub(super) fn add_sandbox(&self, sandbox: Arc<Sandbox>) {
        self.inner().sandboxes.insert(sandbox.id.clone(), sandbox);
    }

    pub(super) fn add_container(&self, container: Arc<Container>) {
        self.inner()
            .containers
            .insert(container.id.clone(), container);
    }

    pub(super) fn remove(&self, id: &str) {
        let mut inner = self.inner();
        inner.sandboxes.remove(id);
        inner.containers.remove(id);
        inner.names.retain(|_, holder| holder != id);
    }

    pub(super) fn sandboxes(&self) -> Vec<Arc<Sandbox>> {
        self.inner().sandboxes.values().cloned().collect()
    }

    pub(super) fn containers(&self) -> Vec<Arc<Container>> {
        self.inner().containers.values().cloned().collect()
    }

    pub(super) fn containers_of(&self, sandbox: &str) -> Vec<Arc<Container>> {
        let inner = self.inner();
        let containers = inner.containers.values();
        let own = containers.filter(|container| container.record.sandbox == sandbox);
        own.cloned().collect()
    }

    /// A sandbox by its id, or by the beginning of it if only one begins so.
    pub(super) fn sandbox(&self, id: &str) -> Result<Arc<Sandbox>, Error> {
        find(&self.inner().sandboxes, id, "sandbox")
    }

    /// A container by its id, or by the beginning of it if only one begins so.
    pub(super) fn container(&self, id: &str) -> Result<Arc<Container>, Error> {
        find(&self.inner().containers, id, "container")
    }
}

fn find<T>(all: &BTreeMap<String, Arc<T>>, id: &str, what: &'static str) -> Result<Arc<T>, Error> {
    let mut matching = all
        .range(id.to_owned()..)
        .take_while(|(other, _)| !id.is_empty() && other.starts_with(id));
    match (matching.next(), matching.next()) {
        (Some((_, found)), None) => Ok(Arc::clone(found)),
        (Some((exact, found)), Some(_)) if exact == id => Ok(Arc::clone(found)),
        _ => Err(Error::NotFound {
            what,
            id: id.to_owned(),
        }),
    }
}

/// Ignores poisoning: only whole values are put in, so a panic leaves nothing half done.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_prefixes_are_accepted_while_unambiguous() {
        let all: BTreeMap<String, Arc<u8>> = [("aa1", 1), ("aa2", 2), ("b", 3), ("b4", 4)]
            .map(|(id, value)| (id.to_owned(), Arc::new(value)))
            .into();
        for (id, want) in [
            ("aa1", Some(1)),
            ("aa", None),
            ("b", Some(3)),
            ("b4", Some(4)),
            ("", None),
            ("c", None),
        ] {
            assert_eq!(
                find(&all, id, "thing").ok().map(|found| *found),
                want,
                "{id}"
            );
        }
    }

    #[test]
    fn name_is_reserved_once_until_it_is_released() {
        let table = Table::default();
        table.reserve("container", "web_0", "a").unwrap();
        table.reserve("container", "web_0", "a").unwrap();
        let refused = table.reserve("container", "web_0", "b").unwrap_err();
        assert_eq!(
            refused.to_string(),
            "failed to reserve container name \"web_0\": name \"web_0\" is reserved for \"a\""
        );
        table.release("a");
        table.reserve("container", "web_0", "b").unwrap();
    }
}
