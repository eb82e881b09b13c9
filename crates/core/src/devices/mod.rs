//! Devices of device plugins: which there are, and which container has which.
//!
//! [`Devices`] is the whole state as a value. Calls to plugins are the shell's: it computes
//! [`Candidates`], lets the plugin say which of them it prefers, has the plugin prepare the chosen
//! ones, and records what the plugin answers with [`Devices::allocate`]. Devices of init containers
//! are used again by the containers after them. Devices are chosen without regard to NUMA nodes.
//!
//! Reading order: `demand` (the requests of a pod), `plugin` (what a plugin offers), `allocation`
//! (what containers have), `choice` (which device goes to which container). Matches v1.36
//! pkg/kubelet/cm/devicemanager/manager.go and pod_devices.go.

mod allocation;
mod choice;
mod demand;
mod plugin;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use crate::allocatable::DevicePlugins;
use crate::object::identity::PodUid;
use crate::object::timestamp::Timestamp;
use crate::resources::{Count, ResourceName};

pub use allocation::{Allocation, ContainerSettings, DeviceMount, DeviceNode};
pub use choice::{AllocationError, Candidates, Request};
pub use demand::{ContainerDemand, ContainerKind, PodDemand};
pub use plugin::{Device, PluginOptions};

use allocation::Allocations;
use plugin::Plugin;

/// The devices of a node, and the containers that have them.
#[derive(Clone, Debug, Default)]
pub struct Devices {
    plugins: BTreeMap<ResourceName, Plugin>,
    /// Resources whose plugin has been gone for long.
    removed: BTreeSet<ResourceName>,
    allocations: Allocations,
}

impl Devices {
    /// The state that an earlier agent has left. Resources have no devices until their plugins
    /// register again.
    pub fn restored(
        resources: impl IntoIterator<Item = ResourceName>,
        allocations: impl IntoIterator<Item = Allocation>,
        now: Timestamp,
    ) -> Devices {
        let mut devices = Devices::default();
        for resource in resources {
            devices.plugins.insert(resource, Plugin::stopped(now));
        }
        for allocation in allocations {
            devices.allocate(allocation);
        }
        devices
    }

    /// A plugin has registered. Its devices are those of the plugin before it until it lists them.
    pub fn registered(&mut self, resource: &ResourceName, options: PluginOptions) {
        let plugin = self.plugins.entry(resource.clone()).or_default();
        plugin.options = Some(options);
        plugin.stopped_at = None;
        self.removed.remove(resource);
    }

    /// A plugin has listed all its devices. Returns the pods that have a device of which another
    /// health is known than before.
    pub fn listed(&mut self, resource: &ResourceName, devices: Vec<Device>) -> BTreeSet<PodUid> {
        let Some(plugin) = self.plugins.get_mut(resource) else {
            return BTreeSet::new();
        };
        let changed = plugin.list(devices);
        self.allocations.holders(resource, &changed)
    }

    /// A plugin is gone. Its devices are unhealthy from now on, and forgotten after a while.
    pub fn disconnected(&mut self, resource: &ResourceName, now: Timestamp) -> BTreeSet<PodUid> {
        let Some(plugin) = self.plugins.get_mut(resource) else {
            return BTreeSet::new();
        };
        let changed = plugin.stop(now);
        self.allocations.holders(resource, &changed)
    }

    /// Forgets plugins that have been gone for too long. Returns whether there were any.
    pub fn expire(&mut self, now: Timestamp) -> bool {
        let expired = self
            .plugins
            .iter()
            .filter(|(_, plugin)| plugin.is_expired(now));
        let expired: Vec<ResourceName> = expired.map(|(resource, _)| resource.clone()).collect();
        for resource in &expired {
            self.plugins.remove(resource);
            self.removed.insert(resource.clone());
        }
        !expired.is_empty()
    }

    /// The resources for the node's status: all devices are capacity, healthy ones allocatable.
    pub fn resources(&self) -> DevicePlugins {
        let mut resources = DevicePlugins {
            removed: self.removed.iter().cloned().collect(),
            ..DevicePlugins::default()
        };
        for (resource, plugin) in &self.plugins {
            let all = count(plugin.devices.len()).to_quantity();
            let healthy = count(plugin.healthy().count()).to_quantity();
            resources.capacity.insert(resource.clone(), all);
            resources.allocatable.insert(resource.clone(), healthy);
        }
        resources
    }

    /// Whether devices of a plugin make up the resource, or have done so for a container that is
    /// still there.
    pub fn is_managed(&self, resource: &ResourceName) -> bool {
        self.plugins.contains_key(resource) || self.allocations.has_resource(resource)
    }

    /// The options of a resource's plugin at its registration; `None` since the agent was
    /// started and if there is no plugin.
    pub fn options(&self, resource: &ResourceName) -> Option<PluginOptions> {
        self.plugins.get(resource)?.options
    }

    /// Whether no plugin of the resource is connected.
    pub fn is_stopped(&self, resource: &ResourceName) -> bool {
        let plugin = self.plugins.get(resource);
        plugin.is_none_or(|plugin| plugin.stopped_at.is_some())
    }

    /// The resources that have a plugin.
    pub fn plugin_resources(&self) -> impl Iterator<Item = &ResourceName> {
        self.plugins.keys()
    }

    /// The healthy devices of all plugins.
    pub fn healthy_devices(&self) -> impl Iterator<Item = (&ResourceName, &Device)> {
        let plugins = self.plugins.iter();
        plugins
            .flat_map(|(resource, plugin)| plugin.healthy().map(move |device| (resource, device)))
    }

    /// The NUMA nodes of a device.
    pub fn numa_nodes(&self, resource: &ResourceName, id: &str) -> &[i64] {
        let plugin = self.plugins.get(resource);
        let device = plugin.and_then(|plugin| plugin.devices.get(id));
        device.map_or(&[], |device| &device.numa_nodes)
    }

    /// Records that a container has devices.
    pub fn allocate(&mut self, allocation: Allocation) {
        self.allocations.insert(allocation);
    }

    /// Frees the devices of a pod. Returns whether it had any.
    pub fn release(&mut self, pod: &PodUid) -> bool {
        self.allocations.remove(pod)
    }

    /// The pods that have devices.
    pub fn pods(&self) -> impl Iterator<Item = &PodUid> {
        self.allocations.pods()
    }

    /// Everything that containers have.
    pub fn allocations(&self) -> impl Iterator<Item = &Allocation> {
        self.allocations.iter()
    }

    /// What a container has.
    pub fn of_container(&self, pod: &PodUid, container: &str) -> impl Iterator<Item = &Allocation> {
        self.allocations.of_container(pod, container)
    }

    /// The settings of a container that has devices. Where plugins contradict each other, the first
    /// by the name of the resource is followed.
    pub fn settings(&self, pod: &PodUid, container: &str) -> ContainerSettings {
        let mut settings = ContainerSettings::default();
        for allocation in self.of_container(pod, container) {
            settings.merge(&allocation.settings);
        }
        settings
    }

    /// Whether a device that a container has is healthy. One that is not known any more is, as in
    /// upstream.
    pub fn is_healthy(&self, resource: &ResourceName, id: &str) -> bool {
        let plugin = self.plugins.get(resource);
        let device = plugin.and_then(|plugin| plugin.devices.get(id));
        device.is_none_or(|device| device.is_healthy)
    }
}

fn count(number: usize) -> Count {
    Count(i64::try_from(number).unwrap_or(i64::MAX))
}
