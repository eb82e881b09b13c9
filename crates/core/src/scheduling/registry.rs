//! The plugins that exist, and the extension points at which each can act.
//!
//! Far fewer are modelled here (see [`super::plugin_names`]) than can be named in a configuration: the
//! rest is listed, so that a misspelled name can be distinguished from one that has no effect.

use std::fmt;

use crate::config::did_you_mean;
use crate::problem::{Problem, quoted};

use ExtensionPoint::*;

/// The extension point at which a plugin runs.
///
/// In the order in which upstream fills them; matches v1.36
/// pkg/scheduler/framework/runtime/framework.go, `getExtensionPoints`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ExtensionPoint {
    /// Once per pod, before nodes are looked at.
    PreFilter,
    /// Whether the pod may run on a node.
    Filter,
    /// What to do if it may run on none.
    PostFilter,
    /// Resources are held for the pod.
    Reserve,
    /// Once per pod, before nodes are scored.
    PreScore,
    /// How good a node is.
    Score,
    /// Before the pod is bound.
    PreBind,
    /// The pod is bound.
    Bind,
    /// After it is bound.
    PostBind,
    /// Binding may wait.
    Permit,
    /// Whether the pod may enter the queue.
    PreEnqueue,
    /// Which pod is next.
    QueueSort,
    /// Which placements a group of pods may have.
    PlacementGenerate,
    /// How good a placement is.
    PlacementScore,
}

impl ExtensionPoint {
    /// All of them.
    pub const ALL: [ExtensionPoint; 14] = [
        PreFilter,
        Filter,
        PostFilter,
        Reserve,
        PreScore,
        Score,
        PreBind,
        Bind,
        PostBind,
        Permit,
        PreEnqueue,
        QueueSort,
        PlacementGenerate,
        PlacementScore,
    ];

    /// The field of `plugins` in a configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            PreFilter => "preFilter",
            Filter => "filter",
            PostFilter => "postFilter",
            Reserve => "reserve",
            PreScore => "preScore",
            Score => "score",
            PreBind => "preBind",
            Bind => "bind",
            PostBind => "postBind",
            Permit => "permit",
            PreEnqueue => "preEnqueue",
            QueueSort => "queueSort",
            PlacementGenerate => "placementGenerate",
            PlacementScore => "placementScore",
        }
    }

    /// Upstream's name for a plugin at that point: `FilterPlugin`.
    pub fn plugin_type(self) -> String {
        format!("{self:?}Plugin")
    }
}

impl fmt::Display for ExtensionPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A plugin that a configuration may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registered {
    /// Its name.
    pub name: &'static str,
    /// Where it can act.
    pub points: &'static [ExtensionPoint],
}

/// Every plugin of the scheduler, by name.
///
/// Matches v1.36 pkg/scheduler/framework/plugins/registry.go and the interfaces that each plugin
/// implements.
#[rustfmt::skip]
pub const REGISTRY: &[Registered] = &[
    registered("DefaultBinder", &[Bind]),
    registered("DefaultPreemption", &[PostFilter, PreEnqueue]),
    registered("DynamicResources",
        &[PreFilter, Filter, PostFilter, Reserve, Score, PreBind, PreEnqueue]),
    registered("GangScheduling", &[Permit, PreEnqueue]),
    registered("ImageLocality", &[Score]),
    registered("InterPodAffinity", &[PreFilter, Filter, PreScore, Score]),
    registered("NodeAffinity", &[PreFilter, Filter, PreScore, Score]),
    registered("NodeDeclaredFeatures", &[PreFilter, Filter]),
    registered("NodeName", &[Filter]),
    registered("NodePorts", &[PreFilter, Filter]),
    registered("NodeResourcesBalancedAllocation", &[PreScore, Score]),
    registered("NodeResourcesFit", &[PreFilter, Filter, PreScore, Score, PlacementScore]),
    registered("NodeUnschedulable", &[Filter]),
    registered("NodeVolumeLimits", &[PreFilter, Filter]),
    registered("PodGroupPodsCount", &[PlacementScore]),
    registered("PodTopologySpread", &[PreFilter, Filter, PreScore, Score]),
    registered("PrioritySort", &[QueueSort]),
    registered("SchedulingGates", &[PreEnqueue]),
    registered("TaintToleration", &[Filter, PreScore, Score]),
    registered("TopologyPlacementGenerator", &[PlacementGenerate]),
    registered("VolumeBinding", &[PreFilter, Filter, Reserve, PreScore, Score, PreBind]),
    registered("VolumeRestrictions", &[PreFilter, Filter]),
    registered("VolumeZone", &[PreFilter, Filter]),
];

const fn registered(name: &'static str, points: &'static [ExtensionPoint]) -> Registered {
    Registered { name, points }
}

/// The plugin of that name.
pub fn find(name: &str) -> Option<&'static Registered> {
    REGISTRY.iter().find(|plugin| plugin.name == name)
}

/// The group of the scheduler's configuration.
pub const GROUP: &str = "kubescheduler.config.k8s.io";

/// The version of the scheduler's configuration that is read.
pub const API_VERSION: &str = "kubescheduler.config.k8s.io/v1";

/// The problem that no plugin has the name; `what` it should have been: `FilterPlugin`.
pub(super) fn no_such(path: &str, name: &str, what: &str) -> Problem {
    let mut rule = format!("{what} {} does not exist", quoted(name));
    let suggestion = did_you_mean(name, REGISTRY.iter().map(|plugin| plugin.name));
    if !suggestion.is_empty() {
        rule = format!("{rule}, {suggestion}");
    }
    Problem::invalid(path, name, rule)
}

/// The problem that a plugin is no more.
///
/// Matches v1.36 pkg/scheduler/apis/config/validation/validation.go, where the first version is
/// that of the core group.
pub(super) fn removed(path: &str, name: &str) -> Problem {
    let rule = format!(
        "was invalid in version \"v1\" (KubeSchedulerConfiguration is version \"{API_VERSION}\")"
    );
    Problem::invalid(path, name, rule)
}

/// Plugins that were removed. Upstream refuses them by name, so that a configuration does not rely
/// on them.
pub const REMOVED: [&str; 4] = [
    "AzureDiskLimits",
    "CinderLimits",
    "EBSLimits",
    "GCEPDLimits",
];

/// The default plugins in order, all of them `multiPoint`; a weight of zero is one that is not
/// stated.
///
/// Matches v1.36 pkg/scheduler/apis/config/v1/default_plugins.go with the default feature gates.
pub const DEFAULT_PLUGINS: [(&str, i32); 20] = [
    ("SchedulingGates", 0),
    ("PrioritySort", 0),
    ("NodeUnschedulable", 0),
    ("NodeName", 0),
    ("TaintToleration", 3),
    ("NodeAffinity", 2),
    ("NodePorts", 0),
    ("NodeResourcesFit", 1),
    ("VolumeRestrictions", 0),
    ("NodeVolumeLimits", 0),
    ("VolumeBinding", 0),
    ("VolumeZone", 0),
    ("PodTopologySpread", 2),
    ("InterPodAffinity", 2),
    ("DynamicResources", 2),
    ("DefaultPreemption", 0),
    ("NodeResourcesBalancedAllocation", 1),
    ("ImageLocality", 1),
    ("DefaultBinder", 0),
    ("NodeDeclaredFeatures", 0),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduling::plugin_names::{FilterPlugin, ScorePlugin};

    #[test]
    fn modelled_and_default_plugins_are_registered() {
        for (name, _) in DEFAULT_PLUGINS {
            assert!(find(name).is_some(), "{name}");
        }
        for plugin in FilterPlugin::ALL {
            let found = find(plugin.as_str()).unwrap();
            assert!(found.points.contains(&Filter), "{plugin}");
        }
        for plugin in ScorePlugin::ALL {
            let found = find(plugin.as_str()).unwrap();
            assert!(found.points.contains(&Score), "{plugin}");
        }
    }

    #[test]
    fn points_are_named_as_upstream_names_them() {
        assert_eq!(PreFilter.as_str(), "preFilter");
        assert_eq!(PreFilter.plugin_type(), "PreFilterPlugin");
    }
}
