//! What containers have.

use std::collections::{BTreeMap, BTreeSet};

use crate::object::identity::PodUid;
use crate::resources::ResourceName;

/// The devices of one resource that a container has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// The pod.
    pub pod: PodUid,
    /// The name of the container.
    pub container: String,
    /// The resource.
    pub resource: ResourceName,
    /// The ids of the devices, each with the NUMA nodes it had when it was allocated.
    pub devices: BTreeMap<String, Vec<i64>>,
    /// The plugin's settings for the container.
    pub settings: ContainerSettings,
}

/// What a container is made with so that it can use devices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainerSettings {
    /// Environment variables, unless the container's spec has them.
    pub envs: BTreeMap<String, String>,
    /// Mounts.
    pub mounts: Vec<DeviceMount>,
    /// Device nodes.
    pub devices: Vec<DeviceNode>,
    /// Annotations for the runtime.
    pub annotations: BTreeMap<String, String>,
    /// Fully qualified names of CDI devices.
    pub cdi_devices: Vec<String>,
}

/// A file or directory of the node that a container mounts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceMount {
    /// Where the container has it.
    pub container_path: String,
    /// Where the node has it.
    pub host_path: String,
    /// Whether the container only reads it.
    pub is_read_only: bool,
}

/// A device node of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceNode {
    /// Where the container has it.
    pub container_path: String,
    /// Where the node has it.
    pub host_path: String,
    /// Of `r`, `w` and `m`.
    pub permissions: String,
}

impl ContainerSettings {
    /// Adds what is not there yet.
    pub(super) fn merge(&mut self, other: &ContainerSettings) {
        add_missing(&mut self.envs, &other.envs);
        add_missing(&mut self.annotations, &other.annotations);
        for mount in &other.mounts {
            let mut known = self.mounts.iter();
            if !known.any(|known| known.container_path == mount.container_path) {
                self.mounts.push(mount.clone());
            }
        }
        for device in &other.devices {
            let mut known = self.devices.iter();
            if !known.any(|known| known.container_path == device.container_path) {
                self.devices.push(device.clone());
            }
        }
        for name in &other.cdi_devices {
            if !self.cdi_devices.contains(name) {
                self.cdi_devices.push(name.clone());
            }
        }
    }
}

fn add_missing(texts: &mut BTreeMap<String, String>, other: &BTreeMap<String, String>) {
    for (name, value) in other {
        texts.entry(name.clone()).or_insert_with(|| value.clone());
    }
}

/// All allocations, by pod, container and resource.
#[derive(Clone, Debug, Default)]
pub(super) struct Allocations(BTreeMap<PodUid, BTreeMap<(String, ResourceName), Allocation>>);

impl Allocations {
    pub(super) fn insert(&mut self, allocation: Allocation) {
        let key = (allocation.container.clone(), allocation.resource.clone());
        let pod = self.0.entry(allocation.pod.clone()).or_default();
        pod.insert(key, allocation);
    }

    pub(super) fn remove(&mut self, pod: &PodUid) -> bool {
        self.0.remove(pod).is_some()
    }

    pub(super) fn pods(&self) -> impl Iterator<Item = &PodUid> {
        self.0.keys()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Allocation> {
        self.0.values().flat_map(BTreeMap::values)
    }

    pub(super) fn of_container(
        &self,
        pod: &PodUid,
        container: &str,
    ) -> impl Iterator<Item = &Allocation> {
        let all = self.0.get(pod).into_iter().flat_map(BTreeMap::values);
        all.filter(move |allocation| allocation.container == container)
    }

    pub(super) fn get(
        &self,
        pod: &PodUid,
        container: &str,
        resource: &ResourceName,
    ) -> Option<&Allocation> {
        let mut own = self.of_container(pod, container);
        own.find(|allocation| allocation.resource == *resource)
    }

    pub(super) fn has_resource(&self, resource: &ResourceName) -> bool {
        self.iter()
            .any(|allocation| allocation.resource == *resource)
    }

    /// The devices of a resource that containers have.
    pub(super) fn in_use(&self, resource: &ResourceName) -> BTreeSet<&str> {
        let of_resource = self
            .iter()
            .filter(|allocation| allocation.resource == *resource);
        let devices = of_resource.flat_map(|allocation| allocation.devices.keys());
        devices.map(String::as_str).collect()
    }

    /// How many devices of each resource containers have.
    pub(super) fn counts(&self) -> BTreeMap<ResourceName, i64> {
        let resources: BTreeSet<&ResourceName> = self.iter().map(|one| &one.resource).collect();
        let counts = resources.into_iter().map(|resource| {
            let used = self.in_use(resource).len();
            (resource.clone(), i64::try_from(used).unwrap_or(i64::MAX))
        });
        counts.collect()
    }

    /// The pods that have one of these devices.
    pub(super) fn holders(
        &self,
        resource: &ResourceName,
        devices: &BTreeSet<String>,
    ) -> BTreeSet<PodUid> {
        let holders = self.iter().filter(|allocation| {
            let mut own = allocation.devices.keys();
            allocation.resource == *resource && own.any(|id| devices.contains(id))
        });
        holders.map(|allocation| allocation.pod.clone()).collect()
    }
}
