//! What a container sees of volumes, and the files the agent gives it.
//!
//! [`plan`] decides, [`MountPlan::carry_out`] makes directories and files. Matches v1.36 makeMounts
//! in pkg/kubelet/kubelet_pods.go and pkg/kubelet/kuberuntime/kuberuntime_container.go.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::{Container, HostAlias, Pod, VolumeMount};
use plimsoll_runtime::wire::{Mount, MountPropagation};

use crate::volumes::MountedVolumes;

use super::env::{Environment, expand_sub_path};
use super::hostname::{self, PodName};
use super::sub_path::SubPath;
use super::{NodeFacts, SpecError, hosts_file, identity, labels, pod_log_directory};

/// All that mounts are made from.
#[derive(Clone, Copy, Debug)]
pub struct MountInput<'a> {
    /// The node.
    pub node: &'a NodeFacts,
    /// The pod.
    pub pod: &'a Pod,
    /// The container.
    pub container: &'a Container,
    /// Addresses of the pod.
    pub pod_ips: &'a [String],
    /// Volumes of the pod.
    pub volumes: &'a MountedVolumes,
    /// Variables of the container.
    pub environment: &'a Environment,
}

/// Mounts, and what has to be made for them.
#[derive(Clone, Debug, Default)]
pub struct MountPlan {
    container: String,
    volumes: Vec<PlannedMount>,
    hosts: Option<HostsFile>,
    termination_log: Option<TerminationLog>,
    log_directory: PathBuf,
}

#[derive(Clone, Debug)]
struct PlannedMount {
    volume: String,
    mount: Mount,
    sub_path: Option<SubPath>,
}

#[derive(Clone, Debug)]
struct HostsFile {
    path: PathBuf,
    content: HostsContent,
    selinux_relabel: bool,
}

#[derive(Clone, Debug)]
enum HostsContent {
    Own(String),
    OfNode(PathBuf, Vec<HostAlias>),
}

#[derive(Clone, Debug)]
struct TerminationLog {
    directory: PathBuf,
    container_path: String,
    selinux_relabel: bool,
}

/// What the container mounts.
pub fn plan(input: &MountInput<'_>) -> Result<MountPlan, SpecError> {
    let node = input.node;
    let (_, _, uid) = identity(input.pod);
    let pod_dir = node.pod_dir(uid);
    let container = input.container;
    let mounts = container.volume_mounts.as_deref().unwrap_or_default();
    let volumes: Result<_, SpecError> = mounts
        .iter()
        .enumerate()
        .map(|(i, mount)| plan_volume(input, &pod_dir, i, mount))
        .collect();
    let covers_hosts = mounts
        .iter()
        .any(|mount| mount.mount_path == hosts_file::CONTAINER_PATH);
    let message_path = labels::termination_message_path(container);
    Ok(MountPlan {
        container: container.name.clone(),
        volumes: volumes?,
        hosts: if covers_hosts {
            None
        } else {
            plan_hosts_file(input, &pod_dir)?
        },
        termination_log: (!message_path.is_empty()).then(|| TerminationLog {
            directory: pod_dir.join("containers").join(&container.name),
            container_path: absolute(message_path),
            selinux_relabel: node.has_selinux,
        }),
        log_directory: pod_log_directory(&node.pod_logs_dir, input.pod).join(&container.name),
    })
}

fn plan_volume(
    input: &MountInput<'_>,
    pod_dir: &Path,
    index: usize,
    mount: &VolumeMount,
) -> Result<PlannedMount, SpecError> {
    let container = &input.container.name;
    let Some(volume) = input.volumes.get(&mount.name) else {
        return Err(SpecError::NoVolume {
            volume: mount.name.clone(),
            container: container.clone(),
        });
    };
    let expression = mount.sub_path_expr.as_deref().unwrap_or_default();
    let path = match expression {
        "" => mount.sub_path.clone().unwrap_or_default(),
        expression => expand_sub_path(expression, input.environment)?,
    };
    if path.starts_with('/') {
        return Err(SpecError::AbsoluteSubPath(path));
    }
    if path.split('/').any(|part| part == "..") {
        return Err(SpecError::SubPathBacksteps(path));
    }
    let target = pod_dir
        .join("volume-subpaths")
        .join(&volume.inner_name)
        .join(container)
        .join(index.to_string());
    Ok(PlannedMount {
        volume: mount.name.clone(),
        mount: Mount {
            container_path: absolute(&mount.mount_path),
            host_path: volume.path.to_string_lossy().into_owned(),
            readonly: mount.read_only.unwrap_or_default() || volume.is_read_only,
            selinux_relabel: volume.is_managed && input.node.has_selinux,
            propagation: propagation(mount.mount_propagation.as_deref())?.into(),
            recursive_read_only: recursive_read_only(mount, input.node)?,
            ..Mount::default()
        },
        sub_path: (!path.is_empty()).then(|| SubPath {
            volume_path: volume.path.clone(),
            path,
            target,
        }),
    })
}

fn absolute(path: &str) -> String {
    match path.starts_with('/') {
        true => path.to_owned(),
        false => format!("/{path}"),
    }
}

fn propagation(mode: Option<&str>) -> Result<MountPropagation, SpecError> {
    match mode {
        None | Some("None") => Ok(MountPropagation::PropagationPrivate),
        Some("HostToContainer") => Ok(MountPropagation::PropagationHostToContainer),
        Some("Bidirectional") => Ok(MountPropagation::PropagationBidirectional),
        Some(other) => Err(SpecError::MountPropagation(other.to_owned())),
    }
}

fn recursive_read_only(mount: &VolumeMount, node: &NodeFacts) -> Result<bool, SpecError> {
    let mode = match mount.recursive_read_only.as_deref() {
        None | Some("Disabled") => return Ok(false),
        Some(mode) => mode,
    };
    let name = &mount.name;
    let wanted = format!("volume {name:?} requested recursive read-only mode");
    let refuse = |text: String| Err(SpecError::RecursiveReadOnly(text));
    if mount.read_only != Some(true) {
        return refuse(format!("{wanted}, but it is not read-only"));
    }
    if let Some(propagation) = &mount.mount_propagation
        && propagation != "None"
    {
        return refuse(format!(
            "{wanted}, but it is not compatible with propagation {propagation:?}"
        ));
    }
    match mode {
        "IfPossible" => Ok(node.supports_recursive_read_only),
        "Enabled" if node.supports_recursive_read_only => Ok(true),
        "Enabled" => refuse(format!("{wanted}, but it is not supported by the runtime")),
        mode => refuse(format!("unknown recursive read-only mode {mode:?}")),
    }
}

/// Pods have a hosts file once they have an address.
fn plan_hosts_file(input: &MountInput<'_>, pod_dir: &Path) -> Result<Option<HostsFile>, SpecError> {
    let spec = input.pod.spec.as_ref();
    let aliases = spec.and_then(|spec| spec.host_aliases.clone());
    let aliases = aliases.unwrap_or_default();
    let is_host_network = spec.and_then(|spec| spec.host_network) == Some(true);
    let content = if is_host_network {
        HostsContent::OfNode(input.node.hosts_file.clone(), aliases)
    } else if input.pod_ips.is_empty() {
        return Ok(None);
    } else {
        let name: PodName = hostname::pod_name(input.pod, &input.node.cluster_domain)?;
        HostsContent::Own(hosts_file::render(input.pod_ips, &name, &aliases))
    };
    Ok(Some(HostsFile {
        path: pod_dir.join("etc-hosts"),
        content,
        selinux_relabel: input.node.has_selinux,
    }))
}

impl MountPlan {
    /// Makes what the mounts need, the directory of the container's logs too. Blocks.
    pub fn carry_out(self) -> Result<Vec<Mount>, SpecError> {
        make_dir(&self.log_directory, 0o755)?;
        let mut mounts = Vec::with_capacity(self.volumes.len() + 2);
        for planned in self.volumes {
            mounts.push(planned.carry_out(&self.container)?);
        }
        if let Some(hosts) = self.hosts {
            mounts.push(hosts.write()?);
        }
        if let Some(log) = self.termination_log {
            mounts.push(log.make()?);
        }
        Ok(mounts)
    }
}

impl PlannedMount {
    fn carry_out(self, container: &str) -> Result<Mount, SpecError> {
        let Some(wanted) = self.sub_path else {
            return Ok(self.mount);
        };
        let (volume, container) = (self.volume, container.to_owned());
        let log = |error: &io::Error| {
            tracing::warn!(volume, container, %error, path = wanted.path, "failed to mount subPath");
        };
        if let Err(error) = wanted.make() {
            log(&error);
            return Err(SpecError::CreateSubPath { volume, container });
        }
        match wanted.bind() {
            Ok(target) => Ok(Mount {
                host_path: target.to_string_lossy().into_owned(),
                ..self.mount
            }),
            Err(error) => {
                log(&error);
                Err(SpecError::PrepareSubPath { volume, container })
            }
        }
    }
}

impl HostsFile {
    fn write(self) -> Result<Mount, SpecError> {
        let content = match self.content {
            HostsContent::Own(content) => content,
            HostsContent::OfNode(path, aliases) => {
                let of_node = fs::read_to_string(&path);
                let of_node = of_node.map_err(|source| SpecError::Read { path, source })?;
                hosts_file::render_host_network(&of_node, &aliases)
            }
        };
        write_file(&self.path, content.as_bytes(), 0o644)?;
        Ok(Mount {
            container_path: hosts_file::CONTAINER_PATH.to_owned(),
            host_path: self.path.to_string_lossy().into_owned(),
            selinux_relabel: self.selinux_relabel,
            ..Mount::default()
        })
    }
}

impl TerminationLog {
    /// Each run of a container has a file of its own, which any user may write.
    fn make(self) -> Result<Mount, SpecError> {
        make_dir(&self.directory, 0o750)?;
        let path = self.directory.join(format!("{:08x}", fastrand::u32(..)));
        write_file(&path, b"", 0o666)?;
        Ok(Mount {
            container_path: self.container_path,
            host_path: path.to_string_lossy().into_owned(),
            selinux_relabel: self.selinux_relabel,
            ..Mount::default()
        })
    }
}

fn make_dir(path: &Path, mode: u32) -> Result<(), SpecError> {
    let made = crate::volumes::mount_point::make_dirs(path, mode);
    made.map_err(|source| SpecError::Write {
        path: path.to_owned(),
        source,
    })
}

/// Writes in place: containers that run see the file through a mount of it.
fn write_file(path: &Path, content: &[u8], mode: u32) -> Result<(), SpecError> {
    let write = || {
        if let Some(parent) = path.parent() {
            crate::volumes::mount_point::make_dirs(parent, 0o750)?;
        }
        fs::write(path, content)?;
        fs::set_permissions(path, fs::Permissions::from_mode(mode))
    };
    write().map_err(|source| SpecError::Write {
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests;
