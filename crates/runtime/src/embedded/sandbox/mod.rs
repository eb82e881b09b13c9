//! CRI calls for sandboxes.

mod contents;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::Signal;
use tokio::sync::watch;

use super::files::{self, Durability};
use super::job::{Job, PauseJob};
use super::layout::SandboxDir;
use super::process_id::ProcessId;
use super::record::{SandboxRecord, now_nanos};
use super::spec::sandbox_options;
use super::table::{Sandbox, lock};
use super::users::{self, Users};
use super::{Embedded, blocking, new_id, report};
use crate::Error;
use crate::wire::{NamespaceMode, PodSandboxConfig};
use contents::{hostname, lay_out, unmount_shm};

pub(super) use contents::{node_name, read_config};

/// How long the process of a sandbox may take to die.
const KILL: Duration = Duration::from_secs(10);

impl Embedded {
    pub(super) async fn make_sandbox(&self, config: &PodSandboxConfig) -> Result<String, Error> {
        let id = new_id()?;
        let name = report::sandbox_name(config);
        self.inner.table.reserve("sandbox", &name, &id)?;
        let dir = self.inner.layout.sandbox(&id);
        match self.try_make_sandbox(&id, &dir, config).await {
            Ok(()) => Ok(id),
            Err(error) => {
                self.discard_sandbox(&id, &dir).await;
                self.inner.table.release(&id);
                Err(error)
            }
        }
    }

    async fn try_make_sandbox(
        &self,
        id: &str,
        dir: &SandboxDir,
        config: &PodSandboxConfig,
    ) -> Result<(), Error> {
        let cgroup = self.inner.machine.cgroup(&self.sandbox_cgroup(id, config));
        let job = pause_job(dir, config)?;
        let has_network = job.network;
        let (runtime, place) = (self.clone(), cgroup.clone());
        let (own_dir, own_config) = (dir.clone(), config.clone());
        let started = blocking("create sandbox", move || {
            // Recorded first, so that the rest can be found and removed whatever happens.
            let doing = || format!("create directory of sandbox {}", own_dir.path().display());
            lay_out(&own_dir, &own_config, &job).map_err(|error| Error::failed(doing(), error))?;
            let made = place.create();
            made.map_err(|error| Error::failed("create sandbox", error))?;
            runtime.start_pause(&own_dir, &job)
        });
        let pause = started.await?;
        let pid = pause.pid;
        let cgroup_path = cgroup.path.to_string();
        // The kernel takes its time to move a process; the network is set up meanwhile.
        let move_process = blocking("move the sandbox's process", move || {
            let entered = cgroup.enter(pid.unsigned_abs());
            entered.map_err(|error| Error::failed("create sandbox", error))
        });
        let set_up_network = async {
            if has_network {
                let netns = netns_of(pid);
                self.inner.network.attach(id, &netns, config).await
            } else {
                Ok(Vec::new())
            }
        };
        let ((), ips) = tokio::try_join!(move_process, set_up_network)?;
        let record = SandboxRecord {
            created_at: now_nanos(),
            pause,
            cgroup: cgroup_path,
            ips,
            is_stopped: false,
        };
        files::write_json(&dir.record(), &record, Durability::Process)
            .map_err(|error| Error::failed(format!("write record of sandbox {id}"), error))?;
        let sandbox = Arc::new(Sandbox {
            id: id.to_owned(),
            dir: dir.clone(),
            config: config.clone(),
            record: record.into(),
            is_ready: watch::Sender::new(true),
            change: tokio::sync::Mutex::default(),
        });
        self.watch_sandbox(&sandbox);
        self.inner.table.add_sandbox(sandbox);
        Ok(())
    }

    /// The cgroup of a sandbox's own process.
    fn sandbox_cgroup(&self, id: &str, config: &PodSandboxConfig) -> String {
        let linux = config.linux.as_ref();
        let parent = linux.map_or("", |linux| &linux.cgroup_parent);
        let parent = self.inner.parent_cgroup(parent);
        self.inner.cgroup_path(&parent, id).to_string()
    }

    /// Starts the process of a sandbox.
    fn start_pause(&self, dir: &SandboxDir, job: &PauseJob) -> Result<ProcessId, Error> {
        self.inner
            .forker
            .start(&Job::Pause(job.clone()))
            .map_err(|error| Error::failed("start the sandbox's process", error))?;
        let pause = files::read_json(&dir.pause())
            .and_then(|pause| pause.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound)));
        pause.map_err(|error| Error::failed("find the sandbox's process", error))
    }

    pub(super) async fn stop_sandbox(&self, sandbox: &Arc<Sandbox>) -> Result<(), Error> {
        let _change = sandbox.change.lock().await;
        self.stop_sandbox_locked(sandbox).await
    }

    async fn stop_sandbox_locked(&self, sandbox: &Arc<Sandbox>) -> Result<(), Error> {
        // From here on nothing is started in it.
        sandbox.is_ready.send_replace(false);
        for container in self.inner.table.containers_of(&sandbox.id) {
            self.end_container(&container, Duration::ZERO).await?;
        }
        let mut record = sandbox.record();
        if record.is_stopped {
            return Ok(());
        }
        if !super::spec::is_host_network(&sandbox.config) {
            let is_there = record.pause.is_alive();
            let netns = is_there.then(|| netns_of(record.pause.pid));
            self.inner
                .network
                .detach(&sandbox.id, netns.as_deref(), &sandbox.config)
                .await?;
        }
        let (runtime, dir) = (self.clone(), sandbox.dir.clone());
        let (pause, cgroup) = (record.pause.clone(), record.cgroup.clone());
        blocking("stop a sandbox", move || {
            runtime.end_pause(&dir, Some(&pause), Some(&cgroup))
        })
        .await?;
        record.is_stopped = true;
        files::write_json(&sandbox.dir.record(), &record, Durability::Process).map_err(
            |error| Error::failed(format!("write record of sandbox {}", sandbox.id), error),
        )?;
        *lock(&sandbox.record) = record;
        Ok(())
    }

    /// Ends the process of a sandbox and takes down what it held.
    pub(super) fn end_pause(
        &self,
        dir: &SandboxDir,
        pause: Option<&ProcessId>,
        cgroup: Option<&str>,
    ) -> Result<(), Error> {
        let failed = |doing: &str| {
            let doing = format!("{doing} of sandbox {}", dir.path().display());
            move |error: io::Error| Error::failed(doing, error)
        };
        if let Some(pause) = pause {
            pause
                .signal(Signal::KILL)
                .map_err(failed("end the process"))?;
        }
        if let Some(cgroup) = cgroup {
            let cgroup = self.inner.machine.cgroup(cgroup);
            cgroup.remove(KILL).map_err(|error| {
                Error::failed(format!("tear down sandbox {}", dir.path().display()), error)
            })?;
        }
        unmount_shm(dir).map_err(failed("unmount /dev/shm"))
    }

    pub(super) async fn remove_sandbox(&self, sandbox: &Arc<Sandbox>) -> Result<(), Error> {
        let _change = sandbox.change.lock().await;
        self.stop_sandbox_locked(sandbox).await?;
        for container in self.inner.table.containers_of(&sandbox.id) {
            self.delete_container(&container).await?;
        }
        let dir = sandbox.dir.path().to_owned();
        let removed = blocking("remove a sandbox", move || {
            files::remove_dir(&dir)
                .map_err(|error| Error::failed(format!("remove {}", dir.display()), error))
        });
        removed.await?;
        self.inner.table.remove(&sandbox.id);
        Ok(())
    }

    /// Removes all traces of a sandbox that never became one.
    pub(super) async fn discard_sandbox(&self, id: &str, dir: &SandboxDir) {
        let config = read_config(dir).unwrap_or_default();
        if !super::spec::is_host_network(&config)
            && let Err(error) = self.inner.network.detach(id, None, &config).await
        {
            tracing::warn!(
                sandbox = id,
                error = error.chain(),
                "failed to release sandbox network"
            );
        }
        let cgroup = self.sandbox_cgroup(id, &config);
        let (runtime, dir) = (self.clone(), dir.clone());
        let done = blocking("discard a sandbox", move || {
            let pause = files::read_json(&dir.pause()).ok().flatten();
            runtime.end_pause(&dir, pause.as_ref(), Some(&cgroup))?;
            files::remove_dir(dir.path())
                .map_err(|error| Error::failed("remove sandbox directory", error))
        });
        if let Err(error) = done.await {
            tracing::warn!(
                sandbox = id,
                error = error.chain(),
                "failed to clean up sandbox"
            );
        }
    }
}

fn pause_job(dir: &SandboxDir, config: &PodSandboxConfig) -> Result<PauseJob, Error> {
    let options = sandbox_options(config);
    let users = Users::of(&options).map_err(|error| Error::Invalid(error.to_string()))?;
    if let (Some(_), Some(why)) = (users, users::lacking()) {
        return Err(Error::Invalid(why.to_owned()));
    }
    let is_own = |mode: NamespaceMode| mode != NamespaceMode::Node;
    Ok(PauseJob {
        dir: dir.path().to_owned(),
        network: is_own(options.network()),
        ipc: is_own(options.ipc()),
        // The machine's name goes with its network.
        uts: is_own(options.network()),
        pid: options.pid() == NamespaceMode::Pod,
        users,
        hostname: hostname(config),
        sysctls: config.linux.clone().unwrap_or_default().sysctls,
    })
}

/// The network of a process.
fn netns_of(pid: i32) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/ns/net"))
}
