//! What a plugin offers.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::object::timestamp::Timestamp;

/// How long the devices of a plugin that is gone are kept.
const STOPPED_PLUGIN_KEPT: Duration = Duration::from_secs(5 * 60);

/// One device of a plugin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Device {
    /// The plugin's name for it.
    pub id: String,
    /// Whether containers may get it.
    pub is_healthy: bool,
    /// The NUMA nodes it belongs to. They are reported and not decided by.
    pub numa_nodes: Vec<i64>,
}

/// The calls that a plugin expects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PluginOptions {
    /// Before each start of a container that has its devices.
    pub pre_start_required: bool,
    /// For the devices it prefers to be allocated.
    pub prefers_devices: bool,
}

/// The plugin of one resource.
#[derive(Clone, Debug, Default)]
pub(super) struct Plugin {
    pub(super) devices: BTreeMap<String, Device>,
    /// `None` until it registers.
    pub(super) options: Option<PluginOptions>,
    /// When its connection ended, if it has.
    pub(super) stopped_at: Option<Timestamp>,
}

impl Plugin {
    /// One that has not registered again since the agent was started.
    pub(super) fn stopped(now: Timestamp) -> Plugin {
        Plugin {
            stopped_at: Some(now),
            ..Plugin::default()
        }
    }

    pub(super) fn healthy(&self) -> impl Iterator<Item = &Device> {
        self.devices.values().filter(|device| device.is_healthy)
    }

    /// Takes the plugin's list; returns the devices that are new or have another health.
    pub(super) fn list(&mut self, devices: Vec<Device>) -> BTreeSet<String> {
        let known = std::mem::take(&mut self.devices);
        let devices = devices
            .into_iter()
            .map(|device| (device.id.clone(), device));
        self.devices = devices.collect();
        let changed = self.devices.values().filter(|device| {
            let before = known.get(&device.id);
            before.is_none_or(|before| before.is_healthy != device.is_healthy)
        });
        changed.map(|device| device.id.clone()).collect()
    }

    /// Makes all devices unhealthy; returns those that were not.
    pub(super) fn stop(&mut self, now: Timestamp) -> BTreeSet<String> {
        let changed = self.healthy().map(|device| device.id.clone()).collect();
        for device in self.devices.values_mut() {
            device.is_healthy = false;
        }
        self.stopped_at = Some(now);
        changed
    }

    pub(super) fn is_expired(&self, now: Timestamp) -> bool {
        let stopped_at = self.stopped_at;
        stopped_at.is_some_and(|at| now.saturating_since(at) > STOPPED_PLUGIN_KEPT)
    }
}
