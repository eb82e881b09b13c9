//! All scores of a profile on the feasible nodes.

use super::cluster::NodeState;
use super::filters::Cycle;
use super::plugin_names::ScorePlugin;
use super::plugins::{
    MAX_NODE_SCORE, image_locality, inter_pod_affinity, node_affinity,
    node_resources_balanced_allocation, node_resources_fit, pod_topology_spread, taint_toleration,
};

/// The counts of the scores that look beyond a node.
///
/// `None` where the score is not in the profile or has nothing to say.
#[derive(Clone, Debug)]
pub struct ScoreState {
    /// Of `PodTopologySpread`.
    pub spread: Option<pod_topology_spread::ScoreState>,
    /// Of `InterPodAffinity`.
    pub affinity: Option<inter_pod_affinity::ScoreState>,
}

/// The scores of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeScores {
    /// By plugin, in the order of the profile; those with nothing to say are left out.
    pub by_plugin: Vec<PluginScore>,
    /// The sum of weight times normalized score.
    pub total: i64,
}

/// The score of one plugin for a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PluginScore {
    /// The plugin.
    pub plugin: ScorePlugin,
    /// The plugin's raw score.
    pub raw: i64,
    /// The score after normalizing, 0 to 100.
    pub normalized: i64,
}

/// A score beyond all bounds. It ends the attempt to place the pod.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "applying score defaultWeights on Score plugins: plugin \"{plugin}\" returns an invalid score \
     {score}, it should in the range of [0, {MAX_NODE_SCORE}] after normalizing"
)]
pub struct InvalidScore {
    /// The plugin.
    pub plugin: ScorePlugin,
    /// The score.
    pub score: i64,
}

impl ScoreState {
    /// Counts over all nodes and their pods, for the feasible ones.
    pub fn scan(cycle: &Cycle<'_>, feasible: &[&NodeState]) -> ScoreState {
        let Cycle {
            cluster,
            profile,
            pod,
        } = cycle;
        let nodes = || cluster.nodes().map(|(_, node)| node);
        let is_on = |plugin| profile.scores.iter().any(|(own, _)| *own == plugin);
        let spread = is_on(ScorePlugin::PodTopologySpread).then(|| {
            let constraints =
                pod_topology_spread::soft_constraints(pod, &profile.spread, &cluster.owners);
            let state = pod_topology_spread::ScoreState::new(
                pod,
                &profile.spread,
                constraints.into_owned(),
                feasible.iter().copied(),
            )?;
            Some(state.scan(pod, nodes(), profile.comparison_operators))
        });
        let affinity = is_on(ScorePlugin::InterPodAffinity).then(|| {
            let args = profile.inter_pod_affinity;
            inter_pod_affinity::ScoreState::scan(pod, args, cluster, nodes())
        });
        ScoreState {
            spread: spread.flatten(),
            affinity: affinity.flatten(),
        }
    }
}

impl Cycle<'_> {
    /// Whether a score has nothing to say about the pod: it then adds nothing to any node.
    pub fn skips_score(&self, plugin: ScorePlugin, state: &ScoreState) -> bool {
        let Cycle { profile, pod, .. } = self;
        match plugin {
            ScorePlugin::NodeAffinity => node_affinity::skips_score(pod, &profile.added_affinity),
            ScorePlugin::PodTopologySpread => state.spread.is_none(),
            ScorePlugin::InterPodAffinity => state.affinity.is_none(),
            ScorePlugin::NodeResourcesBalancedAllocation => {
                node_resources_balanced_allocation::skips_score(pod, &profile.balanced_resources)
            }
            ScorePlugin::TaintToleration
            | ScorePlugin::NodeResourcesFit
            | ScorePlugin::ImageLocality => false,
        }
    }

    /// The raw score of one plugin for the node.
    pub fn raw_score(&self, plugin: ScorePlugin, node: &NodeState, state: &ScoreState) -> i64 {
        let Cycle {
            cluster,
            profile,
            pod,
        } = self;
        match plugin {
            ScorePlugin::TaintToleration => {
                taint_toleration::score(pod, &node.view, profile.comparison_operators)
            }
            ScorePlugin::NodeAffinity => {
                node_affinity::score(pod, &profile.added_affinity, &node.view)
            }
            ScorePlugin::NodeResourcesFit => node_resources_fit::score(pod, &profile.fit, node),
            ScorePlugin::PodTopologySpread => {
                let spread = state.spread.as_ref();
                spread.map_or(0, |spread| spread.score(pod, node))
            }
            ScorePlugin::InterPodAffinity => {
                let affinity = state.affinity.as_ref();
                affinity.map_or(0, |affinity| affinity.score(&node.view.labels))
            }
            ScorePlugin::NodeResourcesBalancedAllocation => {
                let resources = &profile.balanced_resources;
                node_resources_balanced_allocation::score(pod, resources, node)
            }
            ScorePlugin::ImageLocality => {
                image_locality::score(pod, node, cluster.images(), cluster.node_count())
            }
        }
    }

    /// Scores the feasible nodes, in their order.
    ///
    /// Matches v1.36 framework/runtime/framework.go, `RunScorePlugins`.
    pub fn score(
        &self,
        feasible: &[&NodeState],
        state: &ScoreState,
    ) -> Result<Vec<NodeScores>, InvalidScore> {
        let nothing = NodeScores {
            by_plugin: Vec::new(),
            total: 0,
        };
        let mut all = vec![nothing; feasible.len()];
        for (plugin, weight) in &self.profile.scores {
            let plugin = *plugin;
            if self.skips_score(plugin, state) {
                continue;
            }
            let nodes = feasible.iter();
            let raw: Vec<i64> = nodes.map(|n| self.raw_score(plugin, n, state)).collect();
            let mut normalized = raw.clone();
            normalize(plugin, &mut normalized, feasible, state);
            for ((scores, raw), normalized) in all.iter_mut().zip(raw).zip(normalized) {
                if !(0..=MAX_NODE_SCORE).contains(&normalized) {
                    let score = normalized;
                    return Err(InvalidScore { plugin, score });
                }
                scores.total = scores.total.wrapping_add(normalized.wrapping_mul(*weight));
                scores.by_plugin.push(PluginScore {
                    plugin,
                    raw,
                    normalized,
                });
            }
        }
        Ok(all)
    }
}

/// Brings the scores of one plugin, one per node, to a common scale.
pub fn normalize(
    plugin: ScorePlugin,
    scores: &mut [i64],
    nodes: &[&NodeState],
    state: &ScoreState,
) {
    match plugin {
        ScorePlugin::TaintToleration => taint_toleration::normalize(scores),
        ScorePlugin::NodeAffinity => node_affinity::normalize(scores),
        ScorePlugin::PodTopologySpread => {
            if let Some(spread) = &state.spread {
                let ignored: Vec<bool> = nodes.iter().map(|node| spread.ignores(node)).collect();
                pod_topology_spread::normalize(scores, &ignored);
            }
        }
        ScorePlugin::InterPodAffinity => inter_pod_affinity::normalize(scores),
        ScorePlugin::NodeResourcesFit
        | ScorePlugin::NodeResourcesBalancedAllocation
        | ScorePlugin::ImageLocality => {}
    }
}
