//! The plugins that can reject a pod.

use std::fmt;

/// A plugin of the default profile that can keep a pod from being scheduled.
///
/// In the order in which they run: those before a pod may enter the queue, then the filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(
    missing_docs,
    reason = "the names are upstream's and are documented there"
)]
pub enum Plugin {
    SchedulingGates,
    DefaultPreemption,
    DynamicResources,
    NodeUnschedulable,
    NodeName,
    TaintToleration,
    NodeAffinity,
    NodePorts,
    NodeResourcesFit,
    VolumeRestrictions,
    NodeVolumeLimits,
    VolumeBinding,
    VolumeZone,
    PodTopologySpread,
    InterPodAffinity,
    NodeDeclaredFeatures,
}

impl Plugin {
    /// All of them, in order.
    pub const ALL: [Plugin; 16] = [
        Plugin::SchedulingGates,
        Plugin::DefaultPreemption,
        Plugin::DynamicResources,
        Plugin::NodeUnschedulable,
        Plugin::NodeName,
        Plugin::TaintToleration,
        Plugin::NodeAffinity,
        Plugin::NodePorts,
        Plugin::NodeResourcesFit,
        Plugin::VolumeRestrictions,
        Plugin::NodeVolumeLimits,
        Plugin::VolumeBinding,
        Plugin::VolumeZone,
        Plugin::PodTopologySpread,
        Plugin::InterPodAffinity,
        Plugin::NodeDeclaredFeatures,
    ];

    /// Its name in configurations and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Plugin::SchedulingGates => "SchedulingGates",
            Plugin::DefaultPreemption => "DefaultPreemption",
            Plugin::DynamicResources => "DynamicResources",
            Plugin::NodeUnschedulable => "NodeUnschedulable",
            Plugin::NodeName => "NodeName",
            Plugin::TaintToleration => "TaintToleration",
            Plugin::NodeAffinity => "NodeAffinity",
            Plugin::NodePorts => "NodePorts",
            Plugin::NodeResourcesFit => "NodeResourcesFit",
            Plugin::VolumeRestrictions => "VolumeRestrictions",
            Plugin::NodeVolumeLimits => "NodeVolumeLimits",
            Plugin::VolumeBinding => "VolumeBinding",
            Plugin::VolumeZone => "VolumeZone",
            Plugin::PodTopologySpread => "PodTopologySpread",
            Plugin::InterPodAffinity => "InterPodAffinity",
            Plugin::NodeDeclaredFeatures => "NodeDeclaredFeatures",
        }
    }

    /// The plugin of that name.
    pub fn from_name(name: &str) -> Option<Plugin> {
        Plugin::ALL
            .into_iter()
            .find(|plugin| plugin.as_str() == name)
    }
}

impl fmt::Display for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
