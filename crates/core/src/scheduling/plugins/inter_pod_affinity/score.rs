//! Preferred terms.

use std::collections::BTreeMap;

use crate::object::node::NodeView;
use crate::scheduling::cluster::{Cluster, NodeState};
use crate::scheduling::plugins::{MAX_NODE_SCORE, truncate};
use crate::scheduling::pod::{AffinityTerm, SchedulingPod, WeightedTerm};
use crate::scheduling::profile::InterPodAffinityArgs;

use super::{incoming_term_matches, with_selected_namespaces};

/// The score of each domain for the pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScoreState {
    preferred: Vec<WeightedTerm>,
    preferred_anti: Vec<WeightedTerm>,
    namespace_labels: BTreeMap<String, String>,
    hard_pod_affinity_weight: i32,
    /// Sums by label key and value. A sum of zero is kept: it means that some term applied.
    worth: BTreeMap<String, BTreeMap<String, i64>>,
}

impl ScoreState {
    /// The state before anything is added; `None` if nothing may be.
    pub fn new(
        pod: &SchedulingPod,
        args: InterPodAffinityArgs,
        cluster: &Cluster,
    ) -> Option<ScoreState> {
        if args.ignore_preferred_terms_of_existing_pods && !pod.affinity.has_preferences() {
            return None;
        }
        let expand = |terms: &[WeightedTerm]| -> Vec<WeightedTerm> {
            let terms = terms.iter();
            terms
                .map(|weighted| WeightedTerm {
                    term: with_selected_namespaces(&weighted.term, cluster),
                    weight: weighted.weight,
                })
                .collect()
        };
        Some(ScoreState {
            preferred: expand(&pod.affinity.preferred),
            preferred_anti: expand(&pod.affinity.preferred_anti),
            namespace_labels: cluster.namespace_labels(&pod.pod_ref.namespace).clone(),
            hard_pod_affinity_weight: args.hard_pod_affinity_weight,
            worth: BTreeMap::new(),
        })
    }

    /// Adds up over all nodes; `None` if no term applies.
    pub fn scan<'a>(
        pod: &SchedulingPod,
        args: InterPodAffinityArgs,
        cluster: &Cluster,
        nodes: impl Iterator<Item = &'a NodeState>,
    ) -> Option<ScoreState> {
        let mut state = ScoreState::new(pod, args, cluster)?;
        for node in nodes {
            for existing in node.pods() {
                state.add(pod, existing, &node.view);
            }
        }
        (!state.is_needless()).then_some(state)
    }

    /// Whether no term applies.
    pub fn is_needless(&self) -> bool {
        self.worth.is_empty()
    }

    /// Adds what an existing pod on a node means to the pod, and the pod to it.
    pub fn add(&mut self, pod: &SchedulingPod, existing: &SchedulingPod, node: &NodeView) {
        let mut worth = ScoreSums {
            sums: &mut self.worth,
            node,
        };
        for WeightedTerm { term, weight } in &self.preferred {
            if incoming_term_matches(term, existing) {
                worth.add(term, i64::from(*weight));
            }
        }
        for WeightedTerm { term, weight } in &self.preferred_anti {
            if incoming_term_matches(term, existing) {
                worth.add(term, -i64::from(*weight));
            }
        }
        let means_pod =
            |term: &AffinityTerm| term.matches(&pod.pod_ref, &pod.labels, &self.namespace_labels);
        if self.hard_pod_affinity_weight > 0 {
            for term in existing.affinity.required.iter().filter(|t| means_pod(t)) {
                worth.add(term, i64::from(self.hard_pod_affinity_weight));
            }
        }
        for WeightedTerm { term, weight } in &existing.affinity.preferred {
            if means_pod(term) {
                worth.add(term, i64::from(*weight));
            }
        }
        for WeightedTerm { term, weight } in &existing.affinity.preferred_anti {
            if means_pod(term) {
                worth.add(term, -i64::from(*weight));
            }
        }
    }

    /// The score of a node with these labels.
    pub fn score(&self, labels: &BTreeMap<String, String>) -> i64 {
        let worth = self.worth.iter();
        worth
            .filter_map(|(key, values)| values.get(labels.get(key)?))
            .copied()
            .fold(0, i64::wrapping_add)
    }
}

struct ScoreSums<'a> {
    sums: &'a mut BTreeMap<String, BTreeMap<String, i64>>,
    node: &'a NodeView,
}

impl ScoreSums<'_> {
    fn add(&mut self, term: &AffinityTerm, weight: i64) {
        let key = &term.topology_key;
        if let Some(value) = self.node.labels.get(key) {
            let values = self.sums.entry(key.clone()).or_default();
            let sum = values.entry(value.clone()).or_insert(0);
            *sum = sum.wrapping_add(weight);
        }
    }
}

/// Turns worths into scores between the least and the greatest.
pub fn normalize(scores: &mut [i64]) {
    let least = scores.iter().copied().min().unwrap_or(0);
    let greatest = scores.iter().copied().max().unwrap_or(0);
    let span = greatest.wrapping_sub(least);
    for score in scores {
        *score = if span > 0 {
            let above = score.wrapping_sub(least);
            truncate(MAX_NODE_SCORE as f64 * (above as f64 / span as f64))
        } else {
            0
        };
    }
}
