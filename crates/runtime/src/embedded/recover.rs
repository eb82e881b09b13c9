//! Recovery of sandboxes and containers after the agent was restarted or killed.
//!
//! The lock on the directory is held until every process that an earlier agent has started can be
//! found there, so that nothing appears while the directory is read, and nothing is started twice.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::files;
use super::layout::{ContainerDir, SandboxDir};
use super::process_id::ProcessId;
use super::record::{ContainerRecord, SandboxRecord, StartedRecord};
use super::table::{Container, Phase, Sandbox};
use super::{Embedded, blocking, container, report, sandbox};
use crate::Error;
use crate::wire::{ContainerConfig, PodSandboxConfig};

/// How long a container that is just being started may take.
const START: Duration = Duration::from_secs(60);

impl Embedded {
    /// Reads the directory, takes over what is whole and removes what is not.
    pub(super) async fn recover(&self) -> Result<(), Error> {
        for id in self.ids(&self.inner.layout.sandboxes()).await? {
            self.recover_sandbox(&id).await?;
        }
        let sandboxes = self.inner.table.sandboxes();
        let ids: Vec<String> = sandboxes.iter().map(|sandbox| sandbox.id.clone()).collect();
        self.inner.network.retain(&ids)?;
        for sandbox in &sandboxes {
            let record = sandbox.record();
            if !record.is_stopped {
                let (network, config) = (&self.inner.network, &sandbox.config);
                network.restore(&sandbox.id, config, &record.ips).await;
            }
        }
        for id in self.ids(&self.inner.layout.containers()).await? {
            self.recover_container(&id).await?;
        }
        let mut known: Vec<String> = Vec::new();
        for container in self.inner.table.containers() {
            known.extend(container.record.image_volumes.iter().cloned());
            known.push(container.id.clone());
        }
        for root in self.inner.images.list_roots().await? {
            if !known.contains(&root) {
                self.inner.images.remove_root(&root).await?;
            }
        }
        Ok(())
    }

    async fn ids(&self, dir: &Path) -> Result<Vec<String>, Error> {
        let dir = dir.to_owned();
        blocking("read the runtime's directory", move || {
            let read = || {
                let mut ids = Vec::new();
                for entry in fs::read_dir(&dir)? {
                    ids.extend(entry?.file_name().into_string().ok());
                }
                io::Result::Ok(ids)
            };
            read().map_err(|error| Error::failed(format!("read {}", dir.display()), error))
        })
        .await
    }

    async fn recover_sandbox(&self, id: &str) -> Result<(), Error> {
        let dir = self.inner.layout.sandbox(id);
        match read_sandbox(&dir) {
            Ok(Some((config, record))) => {
                let is_ready = !record.is_stopped && record.pause.is_alive();
                let name = report::sandbox_name(&config);
                self.take_name("sandbox", &name, id);
                let sandbox = Arc::new(Sandbox {
                    id: id.to_owned(),
                    dir,
                    config,
                    record: record.into(),
                    is_ready: watch::Sender::new(is_ready),
                    change: tokio::sync::Mutex::default(),
                });
                if is_ready {
                    self.watch_sandbox(&sandbox);
                }
                self.inner.table.add_sandbox(sandbox);
            }
            // The agent ended while it was made.
            Ok(None) => self.discard_sandbox(id, &dir).await,
            Err(error) => {
                tracing::warn!(sandbox = id, %error, "removing unreadable sandbox");
                self.discard_sandbox(id, &dir).await;
            }
        }
        Ok(())
    }

    async fn recover_container(&self, id: &str) -> Result<(), Error> {
        let dir = self.inner.layout.container(id);
        let (config, record) = match read_container(&dir) {
            Ok(Some(found)) => found,
            Ok(None) => {
                self.discard_container(id, &dir, &[]).await;
                return Ok(());
            }
            Err(error) => {
                tracing::warn!(container = id, %error, "removing unreadable container");
                self.discard_container(id, &dir, &[]).await;
                return Ok(());
            }
        };
        if let Ok(sandbox) = self.inner.table.sandbox(&record.sandbox) {
            let name = report::container_name(&config, &sandbox.config);
            self.take_name("container", &name, id);
        }
        let container = Arc::new(Container {
            id: id.to_owned(),
            dir,
            config: config.into(),
            record,
            phase: watch::Sender::new(Phase::Created),
            change: tokio::sync::Mutex::default(),
        });
        self.inner.table.add_container(Arc::clone(&container));
        let (runtime, own) = (self.clone(), Arc::clone(&container));
        let running = blocking("take over a container", move || {
            runtime
                .take_over(&own)
                .map_err(|error| Error::failed(format!("take over container {}", own.id), error))
        });
        if let Some(monitor) = running.await? {
            self.watch_container(&container, monitor);
        }
        Ok(())
    }

    /// Names were free when they were reserved; if two objects share one nevertheless, both stay.
    fn take_name(&self, what: &str, name: &str, id: &str) {
        if let Err(error) = self.inner.table.reserve(what, name, id) {
            tracing::warn!(id, %error, "duplicate name on recovery");
        }
    }

    /// Finds the state of a container; returns its monitor if it has one.
    fn take_over(&self, container: &Container) -> io::Result<Option<ProcessId>> {
        let Some(monitor) = files::read_json::<ProcessId>(&container.dir.monitor())? else {
            return Ok(None);
        };
        let deadline = Instant::now() + START;
        while monitor.is_alive() && Instant::now() < deadline {
            if container.dir.exit().exists() {
                break;
            }
            if let Some(started) = files::read_json::<StartedRecord>(&container.dir.started())? {
                container.phase.send_replace(Phase::Running(started));
                return Ok(Some(monitor));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        self.note_end(container)?;
        Ok(None)
    }
}

fn read_sandbox(dir: &SandboxDir) -> io::Result<Option<(PodSandboxConfig, SandboxRecord)>> {
    match files::read_json(&dir.record())? {
        Some(record) => Ok(Some((sandbox::read_config(dir)?, record))),
        None => Ok(None),
    }
}

fn read_container(dir: &ContainerDir) -> io::Result<Option<(ContainerConfig, ContainerRecord)>> {
    match files::read_json(&dir.record())? {
        Some(record) => Ok(Some((container::read_config(dir)?, record))),
        None => Ok(None),
    }
}
