//! Starts, updates, stops and removes containers.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::Signal;

use super::super::cgroup::devices;
use super::super::files;
use super::super::job::{Job, MonitorJob};
use super::super::process_id::ProcessId;
use super::super::record::StartedRecord;
use super::super::table::{Container, Phase, lock};
use super::super::{Embedded, blocking, resources, signal, spec};
use super::{check_ready, write_config};
use crate::Error;
use crate::wire::LinuxContainerResources;

/// How long a killed container may take to exit.
const KILL: Duration = Duration::from_secs(30);

/// How long its first process has to die of the signal alone.
const STUCK: Duration = Duration::from_millis(500);

impl Embedded {
    pub(in super::super) async fn run_container(
        &self,
        container: &Arc<Container>,
    ) -> Result<(), Error> {
        let _change = container.change.lock().await;
        let phase = container.phase();
        if phase != Phase::Created {
            return Err(Error::Invalid(format!(
                "container {:?} is in {} state",
                container.id,
                phase.cri_name()
            )));
        }
        let sandbox = self.inner.table.sandbox(&container.record.sandbox)?;
        check_ready(&sandbox)?;
        let (runtime, own) = (self.clone(), Arc::clone(container));
        let started = blocking("start a container", move || runtime.start_monitor(&own));
        let started = started.await;
        let (runtime, own) = (self.clone(), Arc::clone(container));
        match started {
            Ok((started, monitor)) => {
                container.phase.send_replace(Phase::Running(started));
                self.watch_container(container, monitor);
                Ok(())
            }
            Err(error) => {
                // The monitor has recorded why, unless it was not even started.
                let why = error.chain();
                let recorded = blocking("record container exit", move || {
                    runtime.note_start_failure(&own, &why).map_err(|error| {
                        Error::failed(format!("record exit of container {}", own.id), error)
                    })
                });
                recorded.await?;
                Err(error)
            }
        }
    }

    fn start_monitor(&self, container: &Container) -> Result<(StartedRecord, ProcessId), Error> {
        let failed = |doing: &str| {
            let doing = format!("{doing} of container {}", container.id);
            move |error: io::Error| Error::failed(doing, error)
        };
        let config = container.config();
        let linux = config.linux.clone().unwrap_or_default();
        let cgroup = self.inner.machine.cgroup(&container.record.cgroup);
        cgroup
            .create()
            .map_err(|error| Error::failed(format!("start container {}", container.id), error))?;
        let limits = linux.resources.unwrap_or_default();
        resources::apply(&self.inner.machine, &cgroup, &limits)
            .map_err(|error| Error::failed(format!("limit container {}", container.id), error))?;
        let security = linux.security_context.unwrap_or_default();
        if !security.privileged {
            let devices = spec::host_devices(&config.devices);
            let devices = devices.map_err(failed("look up the devices"))?;
            cgroup
                .allow_devices(&devices::rules(&devices))
                .map_err(failed("restrict the devices"))?;
        }
        let job = MonitorJob {
            id: container.id.clone(),
            dir: container.dir.path().to_owned(),
            cgroup: container.record.cgroup.clone(),
            log_path: container.record.log_path.clone(),
            terminal: config.tty,
            stdin: config.stdin,
            stdin_once: config.stdin_once,
            has_pid_namespace: container.record.has_pid_namespace,
            narrowed: spec::narrowed(&config),
            read_only: spec::read_only(&config),
        };
        self.inner
            .forker
            .start(&Job::Monitor(job))
            .map_err(|error| Error::failed(format!("start container {}", container.id), error))?;
        let read = || {
            let started = files::read_json(&container.dir.started())?;
            let monitor = files::read_json(&container.dir.monitor())?;
            io::Result::Ok(started.zip(monitor).ok_or(io::ErrorKind::NotFound)?)
        };
        read().map_err(failed("find the process"))
    }

    /// Stops a container: sends its stop signal, and kills it after the grace period.
    pub(in super::super) async fn end_container(
        &self,
        container: &Arc<Container>,
        grace: Duration,
    ) -> Result<(), Error> {
        // Waits for a start in progress. The lock is not kept: a later call may give a shorter
        // grace period.
        drop(container.change.lock().await);
        self.end_started(container, grace).await
    }

    async fn end_started(&self, container: &Container, grace: Duration) -> Result<(), Error> {
        let Phase::Running(started) = container.phase() else {
            return Ok(());
        };
        let failed = |error: io::Error| {
            Error::failed(
                format!("send a signal to container {}", container.id),
                error,
            )
        };
        if !grace.is_zero() {
            let stop = signal::from_number(container.record.stop_signal);
            started.process.signal(stop).map_err(failed)?;
            if tokio::time::timeout(grace, container.wait_for_exit())
                .await
                .is_ok()
            {
                return Ok(());
            }
        }
        started.process.signal(Signal::KILL).map_err(failed)?;
        let gone = tokio::time::timeout(KILL, self.until_killed(container)).await;
        gone.map_err(|_| Error::TimedOut {
            verb: "killing a container",
            after: KILL,
        })
    }

    /// Waits until a container with a killed first process is gone. On cgroup v1 a frozen process
    /// does not die: what is frozen in the container's cgroup or below is killed and thawed.
    async fn until_killed(&self, container: &Container) {
        while tokio::time::timeout(STUCK, container.wait_for_exit())
            .await
            .is_err()
        {
            let cgroup = self.inner.machine.cgroup(&container.record.cgroup);
            let killed = blocking("kill a container", move || {
                let doing = || format!("kill cgroup {}", cgroup.path);
                cgroup.kill().map_err(|error| Error::failed(doing(), error))
            });
            if let Err(error) = killed.await {
                tracing::warn!(
                    container = container.id,
                    error = error.chain(),
                    "failed to kill remaining processes of container"
                );
            }
        }
    }

    pub(in super::super) async fn delete_container(
        &self,
        container: &Arc<Container>,
    ) -> Result<(), Error> {
        let _change = container.change.lock().await;
        self.end_started(container, Duration::ZERO).await?;
        self.inner.images.remove_root(&container.id).await?;
        for root in &container.record.image_volumes {
            self.inner.images.remove_root(root).await?;
        }
        let cgroup = self.inner.machine.cgroup(&container.record.cgroup);
        let dir = container.dir.path().to_owned();
        blocking("remove a container", move || {
            cgroup
                .remove(KILL)
                .map_err(|error| Error::failed(format!("remove cgroup {}", cgroup.path), error))?;
            files::remove_dir(&dir)
                .map_err(|error| Error::failed(format!("remove {}", dir.display()), error))
        })
        .await?;
        self.inner.table.remove(&container.id);
        Ok(())
    }

    pub(in super::super) async fn change_limits(
        &self,
        container: &Arc<Container>,
        change: &LinuxContainerResources,
    ) -> Result<(), Error> {
        let _change = container.change.lock().await;
        let (runtime, own, change) = (self.clone(), Arc::clone(container), change.clone());
        blocking("change the limits of a container", move || {
            let is_over = matches!(own.phase(), Phase::Exited { .. });
            if is_over {
                own.running()?;
            }
            let mut config = own.config();
            let linux = config.linux.get_or_insert_default();
            let next = resources::updated(linux.resources.clone().unwrap_or_default(), &change);
            let doing = || format!("change the limits of container {}", own.id);
            if matches!(own.phase(), Phase::Running(_)) {
                let cgroup = runtime.inner.machine.cgroup(&own.record.cgroup);
                resources::apply(&runtime.inner.machine, &cgroup, &next)
                    .map_err(|error| Error::failed(doing(), error))?;
            }
            linux.resources = Some(next);
            write_config(&own.dir, &config).map_err(|error| Error::failed(doing(), error))?;
            *lock(&own.config) = config;
            Ok(())
        })
        .await
    }
}
