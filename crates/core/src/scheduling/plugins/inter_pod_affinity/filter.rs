//! Required terms.

use std::collections::BTreeMap;

use crate::object::node::NodeView;
use crate::scheduling::cluster::{Cluster, NodeState};
use crate::scheduling::plugin_names::{FilterPlugin, Rejection};
use crate::scheduling::pod::{AffinityTerm, SchedulingPod};

use super::{incoming_term_matches, with_selected_namespaces};

const REASON_AFFINITY: &str = "node(s) didn't match pod affinity rules";
const REASON_ANTI_AFFINITY: &str = "node(s) didn't match pod anti-affinity rules";
const REASON_EXISTING: &str = "node(s) didn't satisfy existing pods anti-affinity rules";

/// Where the pods are that required terms select.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterState {
    affinity_terms: Vec<AffinityTerm>,
    anti_affinity_terms: Vec<AffinityTerm>,
    namespace_labels: BTreeMap<String, String>,
    /// Existing pods that match all the affinity terms.
    affinity: Counts,
    /// Existing pods that match an anti-affinity term.
    anti_affinity: Counts,
    /// Existing pods with an anti-affinity term that the pod matches.
    existing_anti_affinity: Counts,
}

/// Numbers of matches by label key and value; zeros are not kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Counts(BTreeMap<String, BTreeMap<String, i64>>);

impl Counts {
    fn get(&self, key: &str, value: &str) -> i64 {
        let values = self.0.get(key);
        values.and_then(|v| v.get(value)).copied().unwrap_or(0)
    }

    fn change(&mut self, key: &str, node: &NodeView, by: i64) {
        let Some(value) = node.labels.get(key) else {
            return;
        };
        let values = self.0.entry(key.to_owned()).or_default();
        let count = values.entry(value.clone()).or_insert(0);
        *count += by;
        if *count == 0 {
            values.remove(value);
            if values.is_empty() {
                self.0.remove(key);
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Of counts other than zero, each key and value once.
impl FromIterator<(String, String, i64)> for Counts {
    fn from_iter<I: IntoIterator<Item = (String, String, i64)>>(counts: I) -> Counts {
        let mut by_key: BTreeMap<String, BTreeMap<String, i64>> = BTreeMap::new();
        for (key, value, count) in counts {
            by_key.entry(key).or_default().insert(value, count);
        }
        Counts(by_key)
    }
}

/// No pod that the affinity selects is in the domain.
pub fn rejection_by_affinity() -> Rejection {
    Rejection::unresolvable(FilterPlugin::InterPodAffinity, REASON_AFFINITY)
}

/// A pod that the anti-affinity forbids is in the domain.
pub fn rejection_by_anti_affinity() -> Rejection {
    Rejection::resolvable(FilterPlugin::InterPodAffinity, REASON_ANTI_AFFINITY)
}

/// A pod in the domain has anti-affinity against this pod.
pub fn rejection_by_existing() -> Rejection {
    Rejection::resolvable(FilterPlugin::InterPodAffinity, REASON_EXISTING)
}

impl FilterState {
    /// The state before anything is counted. [`FilterState::change`] then counts pod by pod.
    pub fn new(pod: &SchedulingPod, cluster: &Cluster) -> FilterState {
        let expand = |terms: &[AffinityTerm]| -> Vec<AffinityTerm> {
            let terms = terms.iter();
            terms
                .map(|term| with_selected_namespaces(term, cluster))
                .collect()
        };
        FilterState {
            affinity_terms: expand(&pod.affinity.required),
            anti_affinity_terms: expand(&pod.affinity.required_anti),
            namespace_labels: cluster.namespace_labels(&pod.pod_ref.namespace).clone(),
            affinity: Counts::default(),
            anti_affinity: Counts::default(),
            existing_anti_affinity: Counts::default(),
        }
    }

    /// The state with counts by label key and value that are known already; `None` if the pod has
    /// no terms and no term of an existing pod selects it.
    pub fn with_counts(
        pod: &SchedulingPod,
        cluster: &Cluster,
        affinity: impl Iterator<Item = (String, String, i64)>,
        anti_affinity: impl Iterator<Item = (String, String, i64)>,
        existing_anti_affinity: impl Iterator<Item = (String, String, i64)>,
    ) -> Option<FilterState> {
        let mut state = FilterState::new(pod, cluster);
        state.affinity = Counts::from_iter(affinity);
        state.anti_affinity = Counts::from_iter(anti_affinity);
        state.existing_anti_affinity = Counts::from_iter(existing_anti_affinity);
        (!state.is_needless()).then_some(state)
    }

    /// Counts over all nodes; `None` if the pod has no terms and no term of an existing pod selects
    /// it.
    pub fn scan<'a>(
        pod: &SchedulingPod,
        cluster: &Cluster,
        nodes: impl Iterator<Item = &'a NodeState>,
    ) -> Option<FilterState> {
        let mut state = FilterState::new(pod, cluster);
        for node in nodes {
            for existing in node.pods() {
                state.change(pod, existing, &node.view, 1);
            }
        }
        (!state.is_needless()).then_some(state)
    }

    /// Whether it rejects no node, so that upstream does not even ask it again.
    pub fn is_needless(&self) -> bool {
        self.affinity_terms.is_empty()
            && self.anti_affinity_terms.is_empty()
            && self.existing_anti_affinity.is_empty()
    }

    /// Counts a pod on a node (`by` = 1), or no more (`by` = -1).
    pub fn change(
        &mut self,
        pod: &SchedulingPod,
        changed: &SchedulingPod,
        node: &NodeView,
        by: i64,
    ) {
        for term in &changed.affinity.required_anti {
            if term.matches(&pod.pod_ref, &pod.labels, &self.namespace_labels) {
                let key = &term.topology_key;
                self.existing_anti_affinity.change(key, node, by);
            }
        }
        if self.matches_all_affinity_terms(changed) {
            for term in &self.affinity_terms {
                self.affinity.change(&term.topology_key, node, by);
            }
        }
        for term in &self.anti_affinity_terms {
            if incoming_term_matches(term, changed) {
                self.anti_affinity.change(&term.topology_key, node, by);
            }
        }
    }

    /// Why the pod may not run on a node with these labels.
    pub fn filter(
        &self,
        pod: &SchedulingPod,
        labels: &BTreeMap<String, String>,
    ) -> Option<Rejection> {
        if !self.satisfies_affinity(pod, labels) {
            return Some(rejection_by_affinity());
        }
        let mut anti_affinity_keys = self.anti_affinity_terms.iter().map(|t| &t.topology_key);
        let is_occupied = |key: &String| {
            let value = labels.get(key);
            value.is_some_and(|value| self.anti_affinity.get(key, value) > 0)
        };
        if anti_affinity_keys.any(is_occupied) {
            return Some(rejection_by_anti_affinity());
        }
        let minds = &self.existing_anti_affinity;
        let mut keys = minds.0.keys();
        let is_minded = |key: &String| {
            let value = labels.get(key);
            value.is_some_and(|value| minds.get(key, value) > 0)
        };
        keys.any(is_minded).then(rejection_by_existing)
    }

    /// The first of a group of pods with affinity to each other finds no other pod. It passes if no
    /// pod counts anywhere and it matches its own terms.
    fn satisfies_affinity(&self, pod: &SchedulingPod, labels: &BTreeMap<String, String>) -> bool {
        let mut are_near = true;
        for term in &self.affinity_terms {
            let Some(value) = labels.get(&term.topology_key) else {
                return false;
            };
            are_near &= self.affinity.get(&term.topology_key, value) > 0;
        }
        are_near || (self.affinity.is_empty() && self.matches_all_affinity_terms(pod))
    }

    fn matches_all_affinity_terms(&self, other: &SchedulingPod) -> bool {
        let mut terms = self.affinity_terms.iter();
        !self.affinity_terms.is_empty() && terms.all(|term| incoming_term_matches(term, other))
    }
}
