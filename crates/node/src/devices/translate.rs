//! Between the messages of the plugin API and core's terms.

use plimsoll_core::devices::{ContainerSettings, Device, DeviceMount, DeviceNode, PluginOptions};

use super::wire;

pub(super) fn device(device: wire::Device) -> Device {
    let nodes = device
        .topology
        .into_iter()
        .flat_map(|topology| topology.nodes);
    Device {
        is_healthy: device.health == wire::HEALTHY,
        id: device.id,
        numa_nodes: nodes.map(|node| node.id).collect(),
    }
}

pub(super) fn options(options: wire::DevicePluginOptions) -> PluginOptions {
    PluginOptions {
        pre_start_required: options.pre_start_required,
        prefers_devices: options.get_preferred_allocation_available,
    }
}

pub(super) fn settings(answer: wire::ContainerAllocateResponse) -> ContainerSettings {
    let mounts = answer.mounts.into_iter().map(|mount| DeviceMount {
        container_path: mount.container_path,
        host_path: mount.host_path,
        is_read_only: mount.read_only,
    });
    let devices = answer.devices.into_iter().map(|device| DeviceNode {
        container_path: device.container_path,
        host_path: device.host_path,
        permissions: device.permissions,
    });
    let cdi_devices = answer.cdi_devices.into_iter().map(|device| device.name);
    ContainerSettings {
        envs: answer.envs,
        mounts: mounts.collect(),
        devices: devices.collect(),
        annotations: answer.annotations,
        cdi_devices: cdi_devices.collect(),
    }
}

/// The inverse of [`settings`].
pub(super) fn answer(settings: &ContainerSettings) -> wire::ContainerAllocateResponse {
    let mounts = settings.mounts.iter().map(|mount| wire::Mount {
        container_path: mount.container_path.clone(),
        host_path: mount.host_path.clone(),
        read_only: mount.is_read_only,
    });
    let devices = settings.devices.iter().map(|device| wire::DeviceSpec {
        container_path: device.container_path.clone(),
        host_path: device.host_path.clone(),
        permissions: device.permissions.clone(),
    });
    let cdi_devices = settings.cdi_devices.iter();
    wire::ContainerAllocateResponse {
        envs: settings.envs.clone(),
        mounts: mounts.collect(),
        devices: devices.collect(),
        annotations: settings.annotations.clone(),
        cdi_devices: cdi_devices
            .map(|name| wire::CdiDevice { name: name.clone() })
            .collect(),
    }
}
