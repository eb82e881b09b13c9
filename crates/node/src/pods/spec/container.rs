//! The config of a container.
//!
//! Matches v1.36 generateContainerConfig in pkg/kubelet/kuberuntime/kuberuntime_container.go.

use k8s_openapi::api::core::v1::{Container, Pod};
use plimsoll_core::devices::{ContainerSettings, DeviceMount, DeviceNode};
use plimsoll_core::object::pod::PodView;
use plimsoll_runtime::wire::{
    CdiDevice, ContainerConfig, ContainerMetadata, Device, ImageSpec, KeyValue,
    LinuxContainerConfig, Mount, NamespaceMode, UserNamespace,
};

use crate::volumes::{MountedVolumes, Sources};

use super::env::{self, EnvInput};
use super::mounts::{self, MountInput};
use super::security::{ImageUser, container_security};
use super::{NodeContext, SpecError, labels, resources};

/// A container to be made.
#[derive(Clone, Debug)]
pub struct ContainerInput<'a> {
    /// The pod, with the resources it was given.
    pub pod: &'a Pod,
    /// The container, an ephemeral one as [`as_container`](plimsoll_core::object::pod::as_container) has it.
    pub container: &'a Container,
    /// How often it was started before.
    pub attempt: u32,
    /// Addresses of the pod.
    pub pod_ips: &'a [String],
    /// The image as the runtime calls it.
    pub image_ref: &'a str,
    /// The user that the image runs as.
    pub image_user: ImageUser,
    /// Volumes of the pod.
    pub volumes: &'a MountedVolumes,
    /// The id of the container whose processes an ephemeral one sees.
    pub target_id: Option<&'a str>,
    /// The node's users, or the pod's own.
    pub user_namespace: &'a UserNamespace,
    /// What the container gets for its devices.
    pub devices: &'a ContainerSettings,
}

/// The config of a container. Directories and files that it needs are made.
pub async fn container_config(
    node: &NodeContext,
    sources: &dyn Sources,
    input: &ContainerInput<'_>,
) -> Result<ContainerConfig, SpecError> {
    let (pod, container) = (input.pod, input.container);
    if let Some(device) = container.volume_devices.iter().flatten().next() {
        return Err(SpecError::NoDevice {
            volume: device.name.clone(),
            container: container.name.clone(),
        });
    }
    let mut environment = env::environment(
        &EnvInput {
            node,
            pod,
            container,
            pod_ips: input.pod_ips,
            volumes: input.volumes,
        },
        sources,
    )
    .await?;
    for (name, value) in &input.devices.envs {
        let known = environment.entry(name.clone());
        known.or_insert_with(|| value.clone().into_bytes());
    }
    let plan = mounts::plan(&MountInput {
        node,
        pod,
        container,
        pod_ips: input.pod_ips,
        volumes: input.volumes,
        environment: &environment,
    })?;
    let linux = linux_config(node, input)?;
    let mounts = tokio::task::spawn_blocking(|| plan.carry_out()).await;
    let mut mounts = mounts.map_err(|_| SpecError::Stopped)??;
    mounts.splice(0..0, input.devices.mounts.iter().map(device_mount));
    for mount in &mut mounts {
        mount.uid_mappings.clone_from(&input.user_namespace.uids);
        mount.gid_mappings.clone_from(&input.user_namespace.gids);
    }

    let command = env::expand_all(container.command.as_ref(), &environment);
    let args = env::expand_all(container.args.as_ref(), &environment);
    let envs = environment.into_iter();
    let mut annotations = input.devices.annotations.clone();
    annotations.extend(labels::container_annotations(pod, container, input.attempt));
    let cdi_devices = input.devices.cdi_devices.iter();
    Ok(ContainerConfig {
        metadata: Some(ContainerMetadata {
            name: container.name.clone(),
            attempt: input.attempt,
        }),
        image: Some(ImageSpec {
            image: input.image_ref.to_owned(),
            user_specified_image: container.image.clone().unwrap_or_default(),
            ..ImageSpec::default()
        }),
        command,
        args,
        working_dir: container.working_dir.clone().unwrap_or_default(),
        envs: envs.map(|(key, value)| KeyValue { key, value }).collect(),
        mounts,
        devices: input.devices.devices.iter().map(device).collect(),
        labels: labels::container_labels(pod, container),
        annotations,
        log_path: format!("{}/{}.log", container.name, input.attempt),
        stdin: container.stdin.unwrap_or_default(),
        stdin_once: container.stdin_once.unwrap_or_default(),
        tty: container.tty.unwrap_or_default(),
        linux: Some(linux),
        cdi_devices: cdi_devices
            .map(|name| CdiDevice { name: name.clone() })
            .collect(),
    })
}

fn device(node: &DeviceNode) -> Device {
    Device {
        container_path: node.container_path.clone(),
        host_path: node.host_path.clone(),
        permissions: node.permissions.clone(),
    }
}

fn device_mount(mount: &DeviceMount) -> Mount {
    Mount {
        container_path: mount.container_path.clone(),
        host_path: mount.host_path.clone(),
        readonly: mount.is_read_only,
        ..Mount::default()
    }
}

fn linux_config(
    node: &NodeContext,
    input: &ContainerInput<'_>,
) -> Result<LinuxContainerConfig, SpecError> {
    let view = PodView::from_api(input.pod).map_err(SpecError::Quantities)?;
    let mut security = container_security(
        node,
        input.pod,
        input.container,
        &input.image_user,
        input.user_namespace,
    )?;
    if let (Some(target), Some(options)) = (input.target_id, &mut security.namespace_options)
        && options.pid == i32::from(NamespaceMode::Container)
    {
        options.pid = NamespaceMode::Target.into();
        options.target_id = target.to_owned();
    }
    let name = &input.container.name;
    Ok(LinuxContainerConfig {
        resources: Some(resources::linux_resources(
            &view,
            name,
            &node.container_settings,
        )),
        security_context: Some(security),
    })
}

#[cfg(test)]
mod tests;
