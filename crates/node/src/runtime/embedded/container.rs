//! The verbs of containers.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use prost::Message;
use rustix::process::Signal;
use tokio::sync::watch;

use super::cgroup::devices;
use super::files::{self, Durability};
use super::images::ImageConfig;
use super::job::{Job, MonitorJob};
use super::layout::ContainerDir;
use super::process_id::ProcessId;
use super::record::{ContainerRecord, StartedRecord, now_nanos};
use super::spec::{self, Accounts, ImageVolume};
use super::table::{Container, Phase, Sandbox, lock};
use super::{Embedded, blocking, new_id, report, resources, rootfs, sandbox, signal};
use crate::runtime::Error;
use crate::runtime::wire::{
    ContainerConfig, LinuxContainerResources, NamespaceMode, PodSandboxConfig,
};

/// How long a container that was killed may take to be gone.
const KILL: Duration = Duration::from_secs(30);

impl Embedded {
    pub(super) async fn make_container(
        &self,
        sandbox: &Arc<Sandbox>,
        config: &ContainerConfig,
        sandbox_config: &PodSandboxConfig,
    ) -> Result<String, Error> {
        check_ready(sandbox)?;
        let id = new_id()?;
        let name = report::container_name(config, &sandbox.config);
        self.inner.table.reserve("container", &name, &id)?;
        match self
            .try_make_container(&id, sandbox, config, sandbox_config)
            .await
        {
            Ok(()) => Ok(id),
            Err(error) => {
                let dir = self.inner.layout.container(&id);
                self.discard_container(&id, &dir, &volume_roots(&id, config))
                    .await;
                self.inner.table.release(&id);
                Err(error)
            }
        }
    }

    async fn try_make_container(
        &self,
        id: &str,
        sandbox: &Arc<Sandbox>,
        config: &ContainerConfig,
        sandbox_config: &PodSandboxConfig,
    ) -> Result<(), Error> {
        let spec = config.image.clone().unwrap_or_default();
        let image = self.inner.images.resolve(&spec).await?;
        let dir = self.inner.layout.container(id);
        // Noted first: a root without a container is removed when the runtime starts.
        let root = self.inner.images.prepare_root(&image.id, id).await?;
        let volumes = self.prepare_volumes(id, config).await?;
        let target = self.target_process(config)?;
        let runtime = self.clone();
        let (id, own_sandbox) = (id.to_owned(), Arc::clone(sandbox));
        let (config, sandbox_config) = (config.clone(), sandbox_config.clone());
        let container = blocking("make a container", move || {
            let parts = Parts {
                id: &id,
                dir: &dir,
                sandbox: &own_sandbox,
                config: &config,
                sandbox_config: &sandbox_config,
                image: &image,
                root: &root,
                volumes: &volumes,
                target,
            };
            let record = runtime.write_container(&parts)?;
            Ok(Container {
                id: parts.id.to_owned(),
                dir: dir.clone(),
                config: config.into(),
                record,
                phase: watch::Sender::new(Phase::Created),
                change: tokio::sync::Mutex::default(),
            })
        });
        let container = Arc::new(container.await?);
        // While the sandbox is stopped or removed, nothing may be added to it.
        let _change = sandbox.change.lock().await;
        check_ready(sandbox)?;
        self.inner.table.add_container(container);
        Ok(())
    }

    /// Lays out the roots of images that are mounted as volumes.
    async fn prepare_volumes(
        &self,
        id: &str,
        config: &ContainerConfig,
    ) -> Result<Vec<ImageVolume>, Error> {
        let mut volumes = Vec::new();
        let images = config.mounts.iter().filter_map(|mount| {
            let image = mount.image.as_ref()?;
            Some((image, Path::new(&mount.image_sub_path)))
        });
        for ((image, sub_path), root) in images.zip(volume_roots(id, config)) {
            let image = self.inner.images.resolve(image).await?;
            let path = self.inner.images.prepare_root(&image.id, &root).await?;
            let path = rootfs::inside(&path, sub_path).map_err(|error| {
                Error::failed(format!("find {} in the image", sub_path.display()), error)
            })?;
            volumes.push(ImageVolume { path });
        }
        Ok(volumes)
    }

    /// The first process of the container whose processes this one is to share.
    fn target_process(&self, config: &ContainerConfig) -> Result<Option<i32>, Error> {
        let options = spec::security_context(config)
            .namespace_options
            .unwrap_or_default();
        if options.pid() != NamespaceMode::Target {
            return Ok(None);
        }
        let target = self.inner.table.container(&options.target_id)?;
        Ok(Some(target.running()?.process.pid))
    }

    /// Writes all that a container is made of.
    fn write_container(&self, parts: &Parts<'_>) -> Result<ContainerRecord, Error> {
        let failed = |doing: &str| {
            let doing = format!("{doing} of container {}", parts.id);
            move |error: io::Error| Error::failed(doing, error)
        };
        let security = spec::security_context(parts.config);
        let found = if security.privileged {
            spec::all_devices()
        } else {
            spec::host_devices(&parts.config.devices)
        };
        let devices = found.map_err(failed("look up the devices"))?;
        let sandbox_record = parts.sandbox.record();
        let parent = self.inner.parent_cgroup(&parts.sandbox_parent());
        let cgroup = self.inner.cgroup_path(&parent, parts.id).to_string();
        let made = spec::make(&spec::Input {
            config: parts.config,
            sandbox_config: parts.sandbox_config,
            image: parts.image,
            accounts: &Accounts::read(parts.root),
            rights: &self.inner.rights,
            rootfs: parts.root,
            sandbox: &parts.sandbox.dir,
            pause: sandbox_record.pause.pid,
            target: parts.target,
            cgroup_path: &cgroup,
            is_cgroup_v2: self.inner.trees.cgroup("/").is_v2(),
            node_name: &sandbox::node_name(),
            devices: &devices,
            image_volumes: parts.volumes,
        })
        .map_err(|error| Error::Invalid(error.to_string()))?;
        spec::check(&made.json).map_err(|error| Error::failed("make the specification", error))?;
        for path in &made.directories {
            rootfs::create_dir(parts.root, path).map_err(failed("make directories"))?;
        }
        for mount in parts
            .config
            .mounts
            .iter()
            .filter(|mount| mount.image.is_none())
        {
            let path = Path::new(&mount.host_path);
            if !path.exists() {
                fs::create_dir_all(path).map_err(failed("make the source of a mount"))?;
            }
        }
        let record = ContainerRecord {
            sandbox: parts.sandbox.id.clone(),
            created_at: now_nanos(),
            image_id: parts.image.id.clone(),
            image_ref: parts.image.reference.clone(),
            rootfs: parts.root.to_owned(),
            image_volumes: volume_roots(parts.id, parts.config),
            log_path: log_path(&parts.sandbox.config, parts.config),
            stop_signal: signal::number(&parts.image.stop_signal),
            cgroup,
            has_pid_namespace: made.has_pid_namespace,
        };
        let write = || {
            fs::create_dir_all(parts.dir.oci())?;
            files::write_json(&parts.dir.spec(), &made.json, Durability::Process)?;
            write_config(parts.dir, parts.config)?;
            files::write_json(&parts.dir.record(), &record, Durability::Process)
        };
        write().map_err(failed("write the files"))?;
        Ok(record)
    }

    pub(super) async fn run_container(&self, container: &Arc<Container>) -> Result<(), Error> {
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
                // The monitor has noted why, unless it was not even started.
                let why = error.chain();
                let noted = blocking("note the end of a container", move || {
                    runtime
                        .note_start_failure(&own, &why)
                        .map_err(|error| Error::failed(format!("note container {}", own.id), error))
                });
                noted.await?;
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
        let cgroup = self.inner.trees.cgroup(&container.record.cgroup);
        cgroup.create().map_err(failed("make the cgroup"))?;
        let limits = linux.resources.unwrap_or_default();
        resources::apply(&self.inner.trees, &cgroup, &limits)
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
            cgroup,
            log_path: container.record.log_path.clone(),
            terminal: config.tty,
            stdin: config.stdin,
            stdin_once: config.stdin_once,
            has_pid_namespace: container.record.has_pid_namespace,
            narrowed: spec::narrowed(&config),
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

    /// Ends a container: asks it to stop, and kills it when the time is up.
    pub(super) async fn end_container(
        &self,
        container: &Arc<Container>,
        grace: Duration,
    ) -> Result<(), Error> {
        // One that is just being started is waited for. The lock is not kept: whoever asks later
        // may give less time.
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
            let stop = Signal::from_named_raw(container.record.stop_signal);
            let stop = stop.unwrap_or(Signal::TERM);
            started.process.signal(stop).map_err(failed)?;
            if tokio::time::timeout(grace, container.wait_for_exit())
                .await
                .is_ok()
            {
                return Ok(());
            }
        }
        started.process.signal(Signal::KILL).map_err(failed)?;
        let gone = tokio::time::timeout(KILL, container.wait_for_exit()).await;
        gone.map_err(|_| Error::TimedOut {
            verb: "killing a container",
            after: KILL,
        })
    }

    pub(super) async fn delete_container(&self, container: &Arc<Container>) -> Result<(), Error> {
        let _change = container.change.lock().await;
        self.end_started(container, Duration::ZERO).await?;
        self.inner.images.remove_root(&container.id).await?;
        for root in &container.record.image_volumes {
            self.inner.images.remove_root(root).await?;
        }
        let cgroup = self.inner.trees.cgroup(&container.record.cgroup);
        let dir = container.dir.path().to_owned();
        blocking("remove a container", move || {
            cgroup
                .remove()
                .map_err(|error| Error::failed(format!("remove cgroup {}", cgroup.path), error))?;
            files::remove_dir(&dir)
                .map_err(|error| Error::failed(format!("remove {}", dir.display()), error))
        })
        .await?;
        self.inner.table.remove(&container.id);
        Ok(())
    }

    /// Removes all traces of a container that never became one.
    pub(super) async fn discard_container(&self, id: &str, dir: &ContainerDir, volumes: &[String]) {
        for root in std::iter::once(id).chain(volumes.iter().map(String::as_str)) {
            if let Err(error) = self.inner.images.remove_root(root).await {
                tracing::warn!(
                    container = id,
                    error = error.chain(),
                    "cannot remove a root"
                );
            }
        }
        if let Err(error) = files::remove_dir(dir.path()) {
            tracing::warn!(container = id, %error, "cannot remove the directory");
        }
    }

    pub(super) async fn change_limits(
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
                let cgroup = runtime.inner.trees.cgroup(&own.record.cgroup);
                resources::apply(&runtime.inner.trees, &cgroup, &next)
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

fn check_ready(sandbox: &Sandbox) -> Result<(), Error> {
    if *sandbox.is_ready.borrow() {
        return Ok(());
    }
    Err(Error::Invalid(format!(
        "sandbox {:?} is not ready",
        sandbox.id
    )))
}

/// What a container is made of.
struct Parts<'a> {
    id: &'a str,
    dir: &'a ContainerDir,
    sandbox: &'a Sandbox,
    config: &'a ContainerConfig,
    sandbox_config: &'a PodSandboxConfig,
    image: &'a ImageConfig,
    root: &'a Path,
    volumes: &'a [ImageVolume],
    target: Option<i32>,
}

impl Parts<'_> {
    fn sandbox_parent(&self) -> String {
        let linux = self.sandbox.config.linux.as_ref();
        linux
            .map(|linux| linux.cgroup_parent.clone())
            .unwrap_or_default()
    }
}

/// The names of roots for images that a container mounts.
fn volume_roots(id: &str, config: &ContainerConfig) -> Vec<String> {
    let images = config.mounts.iter().filter(|mount| mount.image.is_some());
    images
        .enumerate()
        .map(|(number, _)| format!("{id}-volume-{number}"))
        .collect()
}

/// Where a container's log goes; nowhere if its sandbox has no directory for logs.
fn log_path(sandbox: &PodSandboxConfig, config: &ContainerConfig) -> Option<PathBuf> {
    let has_both = !sandbox.log_directory.is_empty() && !config.log_path.is_empty();
    has_both.then(|| Path::new(&sandbox.log_directory).join(&config.log_path))
}

fn write_config(dir: &ContainerDir, config: &ContainerConfig) -> io::Result<()> {
    files::write(&dir.config(), &config.encode_to_vec(), Durability::Process)
}

/// The configuration of a container, as it was made.
pub(super) fn read_config(dir: &ContainerDir) -> io::Result<ContainerConfig> {
    let content = files::read(&dir.config())?.ok_or(io::ErrorKind::NotFound)?;
    ContainerConfig::decode(content.as_slice()).map_err(io::Error::other)
}
