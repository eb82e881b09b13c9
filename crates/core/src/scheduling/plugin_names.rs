//! Names of plugins, and the reasons for which a plugin rejects a node.

use std::borrow::Cow;
use std::fmt;

/// Plugins that say whether a pod may run on a node, in the order of the default profile.
///
/// The plugins for volumes, dynamic resources and declared node features are not here: nothing in
/// this crate models what they read, so they never reject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FilterPlugin {
    /// Cordoned nodes.
    NodeUnschedulable,
    /// The node that the pod names.
    NodeName,
    /// Taints.
    TaintToleration,
    /// Node selector and node affinity.
    NodeAffinity,
    /// Ports on the node.
    NodePorts,
    /// Resources.
    NodeResourcesFit,
    /// Even spreading.
    PodTopologySpread,
    /// Other pods near.
    InterPodAffinity,
}

impl FilterPlugin {
    /// All of them, in the order of the default profile.
    pub const ALL: [FilterPlugin; 8] = [
        FilterPlugin::NodeUnschedulable,
        FilterPlugin::NodeName,
        FilterPlugin::TaintToleration,
        FilterPlugin::NodeAffinity,
        FilterPlugin::NodePorts,
        FilterPlugin::NodeResourcesFit,
        FilterPlugin::PodTopologySpread,
        FilterPlugin::InterPodAffinity,
    ];

    /// The name in configurations and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            FilterPlugin::NodeUnschedulable => "NodeUnschedulable",
            FilterPlugin::NodeName => "NodeName",
            FilterPlugin::TaintToleration => "TaintToleration",
            FilterPlugin::NodeAffinity => "NodeAffinity",
            FilterPlugin::NodePorts => "NodePorts",
            FilterPlugin::NodeResourcesFit => "NodeResourcesFit",
            FilterPlugin::PodTopologySpread => "PodTopologySpread",
            FilterPlugin::InterPodAffinity => "InterPodAffinity",
        }
    }

    /// The plugin of that name, if it is modelled.
    pub fn from_name(name: &str) -> Option<FilterPlugin> {
        let mut all = FilterPlugin::ALL.into_iter();
        all.find(|plugin| plugin.as_str() == name)
    }
}

impl fmt::Display for FilterPlugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Plugins that say how good a node is, in the order of the default profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ScorePlugin {
    /// Fewest taints that merely discourage.
    TaintToleration,
    /// Preferred node affinity.
    NodeAffinity,
    /// Most, or least, left over.
    NodeResourcesFit,
    /// Even spreading.
    PodTopologySpread,
    /// Other pods near.
    InterPodAffinity,
    /// Resources used in the same proportion.
    NodeResourcesBalancedAllocation,
    /// Images already there.
    ImageLocality,
}

impl ScorePlugin {
    /// All of them, in the order of the default profile.
    pub const ALL: [ScorePlugin; 7] = [
        ScorePlugin::TaintToleration,
        ScorePlugin::NodeAffinity,
        ScorePlugin::NodeResourcesFit,
        ScorePlugin::PodTopologySpread,
        ScorePlugin::InterPodAffinity,
        ScorePlugin::NodeResourcesBalancedAllocation,
        ScorePlugin::ImageLocality,
    ];

    /// The name in configurations and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            ScorePlugin::TaintToleration => "TaintToleration",
            ScorePlugin::NodeAffinity => "NodeAffinity",
            ScorePlugin::NodeResourcesFit => "NodeResourcesFit",
            ScorePlugin::PodTopologySpread => "PodTopologySpread",
            ScorePlugin::InterPodAffinity => "InterPodAffinity",
            ScorePlugin::NodeResourcesBalancedAllocation => "NodeResourcesBalancedAllocation",
            ScorePlugin::ImageLocality => "ImageLocality",
        }
    }

    /// The plugin of that name, if it is modelled.
    pub fn from_name(name: &str) -> Option<ScorePlugin> {
        let mut all = ScorePlugin::ALL.into_iter();
        all.find(|plugin| plugin.as_str() == name)
    }
}

impl fmt::Display for ScorePlugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Plugins that look for a way out when no node will do, in the order of the default profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PostFilterPlugin {
    /// Claims could be given up. There are none here, but the plugin reports it.
    DynamicResources,
    /// Other pods could go.
    DefaultPreemption,
}

impl PostFilterPlugin {
    /// All of them, in the order of the default profile.
    pub const ALL: [PostFilterPlugin; 2] = [
        PostFilterPlugin::DynamicResources,
        PostFilterPlugin::DefaultPreemption,
    ];

    /// The name in configurations and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            PostFilterPlugin::DynamicResources => "DynamicResources",
            PostFilterPlugin::DefaultPreemption => "DefaultPreemption",
        }
    }

    /// The plugin of that name.
    pub fn from_name(name: &str) -> Option<PostFilterPlugin> {
        let mut all = PostFilterPlugin::ALL.into_iter();
        all.find(|plugin| plugin.as_str() == name)
    }
}

impl fmt::Display for PostFilterPlugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Whether removing pods from the node could help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Code {
    /// It could.
    Unschedulable,
    /// It could not.
    UnschedulableAndUnresolvable,
}

impl Code {
    /// Upstream's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Code::Unschedulable => "Unschedulable",
            Code::UnschedulableAndUnresolvable => "UnschedulableAndUnresolvable",
        }
    }
}

/// Why a node does not do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// The plugin that rejects; `None` if it is not a plugin's verdict on this very node.
    pub plugin: Option<FilterPlugin>,
    /// Whether removing pods could help.
    pub code: Code,
    /// The reasons that users read, in order.
    pub reasons: Vec<Cow<'static, str>>,
}

impl Rejection {
    /// A rejection that removing pods could lift.
    pub fn resolvable(plugin: FilterPlugin, reason: &'static str) -> Rejection {
        Rejection {
            plugin: Some(plugin),
            code: Code::Unschedulable,
            reasons: vec![Cow::Borrowed(reason)],
        }
    }

    /// A rejection that removing pods cannot lift.
    pub fn unresolvable(plugin: FilterPlugin, reason: &'static str) -> Rejection {
        Rejection {
            code: Code::UnschedulableAndUnresolvable,
            ..Rejection::resolvable(plugin, reason)
        }
    }

    /// A rejection that is no plugin's, and that removing pods cannot lift.
    pub fn by_no_plugin(reason: impl Into<Cow<'static, str>>) -> Rejection {
        Rejection {
            plugin: None,
            code: Code::UnschedulableAndUnresolvable,
            reasons: vec![reason.into()],
        }
    }
}
