//! How a scheduler is set up: which plugins, with which weights and arguments.
//!
//! [`Profile::default`] is upstream's default profile. [`Profile::with_plugin_config`] changes the
//! arguments of plugins as the `pluginConfig` list of a `KubeSchedulerConfiguration` does, and
//! [`Profile::changed_arguments`] returns what has been changed.

mod checks;
mod decode_args;
mod plugin_args_fields;
mod render_args;

use std::collections::BTreeSet;

use crate::object::selector::{LabelSelector, NodeSelector, PreferredNodeAffinity};
use crate::object::taint::ComparisonOperators;
use crate::resources::ResourceName;

use super::plugin_names::{FilterPlugin, PostFilterPlugin, ScorePlugin};
use super::pod::{InclusionPolicy, SpreadConstraint, SpreadConstraints};

pub use render_args::Argument;

/// Scores in shapes go up to ten; scores of nodes to a hundred.
const SHAPE_SCORE_SCALE: i64 = 10;

/// The label whose value is the node itself.
pub const HOSTNAME_LABEL: &str = "kubernetes.io/hostname";
/// The label whose value is the failure zone.
pub const ZONE_LABEL: &str = "topology.kubernetes.io/zone";

/// A scheduler's set-up.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Which pods are its own.
    pub scheduler_name: String,
    /// Filters, in order.
    pub filters: Vec<FilterPlugin>,
    /// Scores, in order, with their weights.
    pub scores: Vec<(ScorePlugin, i64)>,
    /// How resources are filtered and scored.
    pub fit: FitArgs,
    /// Which resources are to be used in the same proportion.
    pub balanced_resources: Vec<ResourceName>,
    /// How pods near each other are scored.
    pub inter_pod_affinity: InterPodAffinityArgs,
    /// How pods without constraints of their own are spread.
    pub spread: SpreadDefaults,
    /// Node affinity that every pod of this profile gets.
    pub added_affinity: AddedAffinity,
    /// The PostFilter plugins for pods that fit nowhere, in order.
    pub post_filters: Vec<PostFilterPlugin>,
    /// How many nodes are tried for preemption.
    pub preemption: PreemptionArgs,
    /// Whether tolerations may compare numbers.
    pub comparison_operators: ComparisonOperators,
    /// When to stop looking for nodes; `None` looks at all of them.
    pub percentage_of_nodes_to_score: Option<u8>,
}

/// Arguments of `NodeResourcesFit`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FitArgs {
    /// The scoring strategy.
    pub strategy: ScoringStrategy,
    /// The resources that are scored, with their weights.
    pub resources: Vec<(ResourceName, i64)>,
    /// Extended resources that are not filtered by.
    pub ignored_resources: BTreeSet<String>,
    /// Domains of extended resources that are not filtered by.
    pub ignored_resource_groups: BTreeSet<String>,
}

/// The scoring strategy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScoringStrategy {
    /// Much left over.
    LeastAllocated,
    /// Little left over.
    MostAllocated,
    /// A line through these points, by utilization.
    RequestedToCapacityRatio(Vec<ShapePoint>),
}

/// A point of a scoring line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShapePoint {
    /// Percent of the resource in use.
    pub utilization: i64,
    /// Score there, of 100.
    pub score: i64,
}

/// Arguments of `InterPodAffinity`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterPodAffinityArgs {
    /// The score of a required term of a pod that is on a node already.
    pub hard_pod_affinity_weight: i32,
    /// Whether pods that prefer nothing are not scored by what others prefer.
    pub ignore_preferred_terms_of_existing_pods: bool,
}

/// Arguments of `PodTopologySpread`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpreadDefaults {
    /// Whether they are the built-in ones, which are lenient about nodes without a zone.
    pub is_system: bool,
    /// The constraints; their selectors are those of the pod's owners.
    pub constraints: SpreadConstraints,
}

/// Arguments of `NodeAffinity`.
#[derive(Clone, Debug, Default)]
pub struct AddedAffinity {
    /// Where all pods must run.
    pub required: Option<NodeSelector>,
    /// Where all pods would rather run.
    pub preferred: Option<PreferredNodeAffinity>,
}

/// Arguments of `DefaultPreemption`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreemptionArgs {
    /// Percentage of the nodes that could help, at which the search may end.
    pub min_candidate_nodes_percentage: i32,
    /// Number of candidates below which the search does not end.
    pub min_candidate_nodes_absolute: i32,
}

impl Default for Profile {
    /// Matches v1.36 pkg/scheduler/apis/config/v1/default_plugins.go and defaults.go, except that
    /// all nodes are scored.
    fn default() -> Profile {
        let weight = |plugin: &ScorePlugin| match plugin {
            ScorePlugin::TaintToleration => 3,
            ScorePlugin::NodeAffinity
            | ScorePlugin::PodTopologySpread
            | ScorePlugin::InterPodAffinity => 2,
            _ => 1,
        };
        let scores = ScorePlugin::ALL.iter();
        Profile {
            scheduler_name: "default-scheduler".to_owned(),
            filters: FilterPlugin::ALL.to_vec(),
            scores: scores.map(|plugin| (*plugin, weight(plugin))).collect(),
            fit: FitArgs {
                strategy: ScoringStrategy::LeastAllocated,
                resources: vec![(ResourceName::CPU, 1), (ResourceName::MEMORY, 1)],
                ignored_resources: BTreeSet::new(),
                ignored_resource_groups: BTreeSet::new(),
            },
            balanced_resources: vec![ResourceName::CPU, ResourceName::MEMORY],
            inter_pod_affinity: InterPodAffinityArgs {
                hard_pod_affinity_weight: 1,
                ignore_preferred_terms_of_existing_pods: false,
            },
            spread: SpreadDefaults::system(),
            added_affinity: AddedAffinity::default(),
            post_filters: PostFilterPlugin::ALL.to_vec(),
            preemption: PreemptionArgs {
                min_candidate_nodes_percentage: 10,
                min_candidate_nodes_absolute: 100,
            },
            comparison_operators: ComparisonOperators::Disabled,
            percentage_of_nodes_to_score: None,
        }
    }
}

impl SpreadDefaults {
    /// The built-in constraints: over nodes and over zones, neither binding.
    pub fn system() -> SpreadDefaults {
        let constraint = |topology_key: &str, max_skew: i32| SpreadConstraint {
            max_skew,
            topology_key: topology_key.to_owned(),
            selector: LabelSelector::nothing(),
            min_domains: 1,
            node_affinity_policy: InclusionPolicy::Honor,
            node_taints_policy: InclusionPolicy::Ignore,
        };
        SpreadDefaults {
            is_system: true,
            constraints: SpreadConstraints {
                hard: Vec::new(),
                soft: vec![constraint(HOSTNAME_LABEL, 3), constraint(ZONE_LABEL, 5)],
                is_stated: true,
            },
        }
    }
}

impl Profile {
    /// Whether pods that fit nowhere may push others out.
    pub fn preempts(&self) -> bool {
        self.post_filters
            .contains(&PostFilterPlugin::DefaultPreemption)
    }

    /// How many feasible nodes are enough, of `node_count`.
    ///
    /// Matches v1.36 pkg/scheduler/schedule_one.go, `numFeasibleNodesToFind`; zero percent means
    /// fewer percent the larger the cluster.
    pub fn nodes_to_find(&self, node_count: usize) -> usize {
        const MINIMUM: usize = 100;
        let Some(percentage) = self.percentage_of_nodes_to_score else {
            return node_count;
        };
        if node_count < MINIMUM {
            return node_count;
        }
        let percentage = match percentage {
            0 => 50usize.saturating_sub(node_count / 125).max(5),
            stated => usize::from(stated),
        };
        (node_count * percentage / 100).max(MINIMUM)
    }
}

#[cfg(test)]
mod tests;
