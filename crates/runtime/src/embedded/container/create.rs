//! Creates containers.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::watch;

use super::super::files::{self, Durability};
use super::super::images::{ImageConfig, RootOwner};
use super::super::layout::ContainerDir;
use super::super::record::{ContainerRecord, now_nanos};
use super::super::spec::{self, Accounts, ImageVolume};
use super::super::table::{Container, Phase, Sandbox};
use super::super::users::Users;
use super::super::{Embedded, blocking, new_id, report, rootfs, sandbox, signal};
use super::{check_ready, write_config};
use crate::Error;
use crate::wire::{ContainerConfig, NamespaceMode, PodSandboxConfig};

impl Embedded {
    pub(in super::super) async fn make_container(
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
        // Recorded first: a root without a container is removed when the runtime starts.
        let owner = root_owner(sandbox)?;
        let root = self
            .inner
            .images
            .prepare_root(&image.id, id, owner.as_ref());
        let root = root.await?;
        let volumes = self.prepare_volumes(id, config, owner.as_ref()).await?;
        let target = self.target_process(config)?;
        let runtime = self.clone();
        let (id, own_sandbox) = (id.to_owned(), Arc::clone(sandbox));
        let (config, sandbox_config) = (config.clone(), sandbox_config.clone());
        let container = blocking("create container", move || {
            let parts = Parts {
                id: &id,
                dir: &dir,
                sandbox: &own_sandbox,
                config: &config,
                sandbox_config: &sandbox_config,
                image: &image,
                root: &root,
                volumes: &volumes,
                owner: owner.as_ref(),
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
        owner: Option<&RootOwner>,
    ) -> Result<Vec<ImageVolume>, Error> {
        let mut volumes = Vec::new();
        let images = config.mounts.iter().filter_map(|mount| {
            let image = mount.image.as_ref()?;
            Some((image, Path::new(&mount.image_sub_path)))
        });
        for ((image, sub_path), root) in images.zip(volume_roots(id, config)) {
            let image = self.inner.images.resolve(image).await?;
            let path = self.inner.images.prepare_root(&image.id, &root, owner);
            let path = path.await?;
            let path = rootfs::inside(&path, sub_path).map_err(|error| {
                Error::failed(format!("find {} in the image", sub_path.display()), error)
            })?;
            volumes.push(ImageVolume { path });
        }
        Ok(volumes)
    }

    /// The first process of the container with which this one shares its PID namespace.
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
        if let Some(device) = parts.config.cdi_devices.first() {
            let problem = format!("CDI device {:?}: this runtime has no CDI", device.name);
            return Err(Error::Invalid(problem));
        }
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
            is_cgroup_v2: self.inner.machine.is_v2(),
            node_name: &sandbox::node_name(),
            devices: &devices,
            image_volumes: parts.volumes,
        })
        .map_err(|error| Error::Invalid(error.to_string()))?;
        spec::check(&made.json)
            .map_err(|error| Error::failed("create the OCI specification", error))?;
        let owner = parts.owner.map(|owner| owner.first);
        for path in &made.directories {
            rootfs::create_dir(parts.root, path, owner).map_err(failed("create directories"))?;
        }
        for mount in parts
            .config
            .mounts
            .iter()
            .filter(|mount| mount.image.is_none())
        {
            let path = Path::new(&mount.host_path);
            if !path.exists() {
                fs::create_dir_all(path).map_err(failed("create the source of a mount"))?;
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
            if let Some(confinement) = &made.confinement {
                let path = parts.dir.confinement();
                files::write_json(&path, confinement, Durability::Process)?;
            }
            if let Some(stage) = &made.stage {
                files::write_json(&parts.dir.stage(), stage, Durability::Process)?;
            }
            write_config(parts.dir, parts.config)?;
            files::write_json(&parts.dir.record(), &record, Durability::Process)
        };
        write().map_err(failed("write the files"))?;
        Ok(record)
    }

    /// Removes all traces of a container that never became one.
    pub(in super::super) async fn discard_container(
        &self,
        id: &str,
        dir: &ContainerDir,
        volumes: &[String],
    ) {
        for root in std::iter::once(id).chain(volumes.iter().map(String::as_str)) {
            if let Err(error) = self.inner.images.remove_root(root).await {
                tracing::warn!(
                    container = id,
                    error = error.chain(),
                    "failed to remove root file system"
                );
            }
        }
        if let Err(error) = files::remove_dir(dir.path()) {
            tracing::warn!(container = id, %error, "failed to remove container directory");
        }
    }
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
    owner: Option<&'a RootOwner>,
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

/// The owner of the root file systems of a sandbox's containers, if it has users of its own.
fn root_owner(sandbox: &Sandbox) -> Result<Option<RootOwner>, Error> {
    let options = spec::sandbox_options(&sandbox.config);
    let users = Users::of(&options).map_err(|error| Error::Invalid(error.to_string()))?;
    let Some(users) = users else {
        return Ok(None);
    };
    let path = format!("/proc/{}/ns/user", sandbox.record().pause.pid);
    let opened = File::open(path);
    let opened = opened.map_err(|error| Error::failed("find the sandbox's users", error))?;
    Ok(Some(RootOwner {
        first: users.first,
        user_namespace: Arc::new(opened.into()),
    }))
}

/// The names of roots for images that a container mounts.
fn volume_roots(id: &str, config: &ContainerConfig) -> Vec<String> {
    let images = config.mounts.iter().filter(|mount| mount.image.is_some());
    images
        .enumerate()
        .map(|(number, _)| format!("{id}-volume-{number}"))
        .collect()
}

/// The path of a container's log; none if its sandbox has no log directory.
fn log_path(sandbox: &PodSandboxConfig, config: &ContainerConfig) -> Option<PathBuf> {
    let has_both = !sandbox.log_directory.is_empty() && !config.log_path.is_empty();
    has_both.then(|| Path::new(&sandbox.log_directory).join(&config.log_path))
}
