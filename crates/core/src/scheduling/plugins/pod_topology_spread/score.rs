//! Soft constraints.
//!
//! weight_c = ln(number of domains + 2)
//! raw = round( sum over constraints of count in the domain * weight_c + (maxSkew - 1) )

use std::collections::BTreeMap;

use crate::object::taint::ComparisonOperators;
use crate::scheduling::cluster::NodeState;
use crate::scheduling::plugins::{MAX_NODE_SCORE, count, truncate};
use crate::scheduling::pod::{SchedulingPod, SpreadConstraint};
use crate::scheduling::profile::{HOSTNAME_LABEL, SpreadDefaults};

use super::{count_on_node, has_all_keys, is_included};

/// How many pods there are in the domains of each constraint, and how much that matters.
#[derive(Clone, Debug, PartialEq)]
pub struct ScoreState {
    constraints: Vec<SpreadConstraint>,
    requires_all_keys: bool,
    /// Domains of feasible nodes only. Empty for the host name, which is counted on the node.
    counts: Vec<BTreeMap<String, i64>>,
    weights: Vec<f64>,
}

impl ScoreState {
    /// The state before anything is counted; `None` without constraints.
    ///
    /// `feasible` are the nodes that will be scored: their domains are those that matter. With the
    /// built-in defaults a node may lack a label; otherwise such nodes are out of the running.
    pub fn new<'a>(
        pod: &SchedulingPod,
        defaults: &SpreadDefaults,
        constraints: Vec<SpreadConstraint>,
        feasible: impl Iterator<Item = &'a NodeState>,
    ) -> Option<ScoreState> {
        if constraints.is_empty() {
            return None;
        }
        let mut state = ScoreState {
            requires_all_keys: pod.spread.is_stated || !defaults.is_system,
            counts: vec![BTreeMap::new(); constraints.len()],
            weights: Vec::new(),
            constraints,
        };
        let mut scored_nodes = 0;
        for node in feasible {
            if state.ignores(node) {
                continue;
            }
            scored_nodes += 1;
            for (constraint, counts) in state.constraints.iter().zip(&mut state.counts) {
                if constraint.topology_key != HOSTNAME_LABEL {
                    let domain = domain(node, constraint).to_owned();
                    counts.entry(domain).or_insert(0);
                }
            }
        }
        let sizes = state.constraints.iter().zip(&state.counts);
        let sizes = sizes.map(|(constraint, counts)| {
            if constraint.topology_key == HOSTNAME_LABEL {
                scored_nodes
            } else {
                counts.len()
            }
        });
        state.weights = sizes.map(domain_weight).collect();
        Some(state)
    }

    /// Counts over all nodes, feasible or not.
    #[must_use]
    pub fn scan<'a>(
        mut self,
        pod: &SchedulingPod,
        nodes: impl Iterator<Item = &'a NodeState>,
        comparison: ComparisonOperators,
    ) -> ScoreState {
        for node in nodes {
            if self.ignores(node) {
                continue;
            }
            for (constraint, counts) in self.constraints.iter().zip(&mut self.counts) {
                // A domain in which no node is feasible does not matter.
                if let Some(sum) = counts.get_mut(domain(node, constraint))
                    && is_included(constraint, pod, &node.view, comparison)
                {
                    *sum += count_on_node(constraint, &pod.pod_ref.namespace, node);
                }
            }
        }
        self
    }

    /// The constraints.
    pub fn constraints(&self) -> &[SpreadConstraint] {
        &self.constraints
    }

    /// The counts to be filled in, by constraint and domain, for callers that do not [`scan`].
    ///
    /// [`scan`]: ScoreState::scan
    pub fn counts_mut(&mut self) -> &mut [BTreeMap<String, i64>] {
        &mut self.counts
    }

    /// Whether the node is out of the running, because it lacks a label.
    pub fn ignores(&self, node: &NodeState) -> bool {
        self.requires_all_keys && !has_all_keys(&node.view.labels, &self.constraints)
    }

    /// How crowded the domains of the node are.
    pub fn score(&self, pod: &SchedulingPod, node: &NodeState) -> i64 {
        if self.ignores(node) {
            return 0;
        }
        let mut score = 0.0;
        let parts = self.constraints.iter().zip(&self.counts).zip(&self.weights);
        for ((constraint, counts), weight) in parts {
            let Some(domain) = node.label(&constraint.topology_key) else {
                continue;
            };
            let existing = if constraint.topology_key == HOSTNAME_LABEL {
                count_on_node(constraint, &pod.pod_ref.namespace, node)
            } else {
                counts.get(domain).copied().unwrap_or(0)
            };
            score += domain_score(existing, *weight, constraint);
        }
        rounded(score)
    }
}

/// How much a pod in a domain counts, where there are so many domains.
pub fn domain_weight(domains: usize) -> f64 {
    (count(domains + 2) as f64).ln()
}

/// The score for so many pods in a node's domain.
pub fn domain_score(existing: i64, weight: f64, constraint: &SpreadConstraint) -> f64 {
    existing as f64 * weight + f64::from(constraint.max_skew.wrapping_sub(1))
}

/// The sum over constraints as a score.
pub fn rounded(score: f64) -> i64 {
    truncate(score.round())
}

/// The domain of the node; one that lacks the label is in the domain without a name.
fn domain<'a>(node: &'a NodeState, constraint: &SpreadConstraint) -> &'a str {
    node.label(&constraint.topology_key).unwrap_or_default()
}

/// Turns crowdedness into scores: the emptier, the better. Ignored nodes get nothing.
pub fn normalize(scores: &mut [i64], is_ignored: &[bool]) {
    let counted = || {
        scores
            .iter()
            .zip(is_ignored)
            .filter(|(_, ignored)| !**ignored)
    };
    let least = counted().map(|(score, _)| *score).min().unwrap_or(i64::MAX);
    let most = counted().map(|(score, _)| *score).max().unwrap_or(0).max(0);
    for (score, is_ignored) in scores.iter_mut().zip(is_ignored) {
        *score = match (is_ignored, most) {
            (true, _) => 0,
            (false, 0) => MAX_NODE_SCORE,
            (false, most) => {
                let room = most.wrapping_add(least).wrapping_sub(*score);
                MAX_NODE_SCORE.wrapping_mul(room).wrapping_div(most)
            }
        };
    }
}
