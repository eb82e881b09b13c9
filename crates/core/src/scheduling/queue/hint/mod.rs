//! Queueing hints: whether an event may make a pod schedulable, plugin by plugin.
//!
//! Each plugin has a file with the events it registers for and a function `hint(pod, object)`,
//! which is called only for those. A hint answers for a pod that this plugin rejected: could the
//! change have altered that? If it cannot decide, it returns [`Hint::Queue`], because a needless
//! attempt costs less than a pod that waits for the flush.
//!
//! Matches v1.36 pkg/scheduler/framework/plugins/*, `EventsToRegister` and `isSchedulableAfter*`,
//! with queueing hints enabled.

mod default_preemption;
mod dynamic_resources;
mod inter_pod_affinity;
mod node_affinity;
mod node_declared_features;
mod node_name;
mod node_ports;
mod node_resources_fit;
mod node_unschedulable;
mod node_volume_limits;
mod pod_topology_spread;
mod scheduling_gates;
mod taint_toleration;
mod volume_binding;
mod volume_restrictions;
mod volume_zone;

use super::action::Action;
use super::event::{Change, ClusterEvent, Object, Resource};
use super::facts::{PersistentVolumeClaimFacts, PodFacts};
use super::rejector::Plugin;

#[cfg(test)]
mod tests;

/// A plugin's queueing hint for an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// The pod may be schedulable now.
    Queue,
    /// The event changes nothing for the pod.
    Skip,
}

impl Hint {
    fn queue_if(is_worth_it: bool) -> Hint {
        if is_worth_it { Hint::Queue } else { Hint::Skip }
    }
}

/// Events that a plugin registers for: a kind of object and what happens to it.
type Registration = (Resource, Action);

impl Plugin {
    /// Whether the plugin registers for the event.
    pub fn registers(self, event: &ClusterEvent) -> bool {
        let resource = event.object().resource();
        self.registers_for(resource, event.action()) || self.takes_taints_for_nodes(event)
    }

    /// The plugin's hint for an event that it registers for.
    pub fn hint(self, pod: &PodFacts, event: &ClusterEvent) -> Hint {
        if self.takes_taints_for_nodes(event) {
            return Hint::Queue;
        }
        let hint = match self {
            Plugin::SchedulingGates => scheduling_gates::hint,
            Plugin::DefaultPreemption => default_preemption::hint,
            Plugin::DynamicResources => dynamic_resources::hint,
            Plugin::NodeUnschedulable => node_unschedulable::hint,
            Plugin::NodeName => node_name::hint,
            Plugin::TaintToleration => taint_toleration::hint,
            Plugin::NodeAffinity => node_affinity::hint,
            Plugin::NodePorts => node_ports::hint,
            Plugin::NodeResourcesFit => node_resources_fit::hint,
            Plugin::VolumeRestrictions => volume_restrictions::hint,
            Plugin::NodeVolumeLimits => node_volume_limits::hint,
            Plugin::VolumeBinding => volume_binding::hint,
            Plugin::VolumeZone => volume_zone::hint,
            Plugin::PodTopologySpread => pod_topology_spread::hint,
            Plugin::InterPodAffinity => inter_pod_affinity::hint,
            Plugin::NodeDeclaredFeatures => node_declared_features::hint,
        };
        hint(pod, event.object())
    }

    fn registrations(self) -> &'static [Registration] {
        match self {
            Plugin::SchedulingGates => scheduling_gates::EVENTS,
            Plugin::DefaultPreemption => default_preemption::EVENTS,
            Plugin::DynamicResources => dynamic_resources::EVENTS,
            Plugin::NodeUnschedulable => node_unschedulable::EVENTS,
            Plugin::NodeName => node_name::EVENTS,
            Plugin::TaintToleration => taint_toleration::EVENTS,
            Plugin::NodeAffinity => node_affinity::EVENTS,
            Plugin::NodePorts => node_ports::EVENTS,
            Plugin::NodeResourcesFit => node_resources_fit::EVENTS,
            Plugin::VolumeRestrictions => volume_restrictions::EVENTS,
            Plugin::NodeVolumeLimits => node_volume_limits::EVENTS,
            Plugin::VolumeBinding => volume_binding::EVENTS,
            Plugin::VolumeZone => volume_zone::EVENTS,
            Plugin::PodTopologySpread => pod_topology_spread::EVENTS,
            Plugin::InterPodAffinity => inter_pod_affinity::EVENTS,
            Plugin::NodeDeclaredFeatures => node_declared_features::EVENTS,
        }
    }

    fn registers_for(self, resource: Resource, action: Action) -> bool {
        let mut registrations = self.registrations().iter();
        registrations.any(|(of, actions)| *of == resource && actions.includes(action))
    }

    /// Upstream wakes the pods of every plugin that registers for new nodes also when taints of a
    /// node change, without asking the plugin, unless the plugin registers for taints itself
    /// (v1.36 pkg/scheduler/scheduler.go, `buildQueueingHintMap`).
    fn takes_taints_for_nodes(self, event: &ClusterEvent) -> bool {
        event.object().resource() == Resource::Node
            && event.action() == Action::UPDATE_NODE_TAINT
            && self.registers_for(Resource::Node, Action::ADD)
            && !self.registers_for(Resource::Node, Action::UPDATE_NODE_TAINT)
    }
}

/// Whether the change is an update of the pod itself.
fn is_own_update(pod: &PodFacts, change: &Change<PodFacts>) -> bool {
    matches!(change, Change::Updated { new, .. } if new.uid == pod.uid)
}

/// Whether a claim of the pod was added or updated; claims made for the pod alone count, too.
fn uses_claim(pod: &PodFacts, change: &Change<PersistentVolumeClaimFacts>) -> bool {
    change.after().is_some_and(|claim| {
        let mut names = pod.volumes.iter().filter_map(|volume| volume.claim_name());
        claim.namespace == pod.pod_ref.namespace && names.any(|name| name == claim.name)
    })
}
