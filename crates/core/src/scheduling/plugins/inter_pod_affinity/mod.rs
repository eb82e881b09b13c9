//! `InterPodAffinity`: which pods are, or must not be, near.
//!
//! `filter` holds the counts behind required terms, `score` the sums behind preferred ones, `conflict`
//! names the pods behind a rejection.
//! Matches v1.36 plugins/interpodaffinity.

mod conflict;
mod filter;
mod score;

use std::collections::BTreeMap;

use crate::scheduling::cluster::Cluster;
use crate::scheduling::pod::{AffinityTerm, SchedulingPod};

pub use conflict::{Conflict, conflicts};
pub use filter::{
    FilterState, rejection_by_affinity, rejection_by_anti_affinity, rejection_by_existing,
};
pub use score::{ScoreState, normalize};

/// A term of the pod that looks for a node, as it is matched against existing pods.
///
/// Upstream adds the names of the selected namespaces to the term, but still evaluates the selector
/// too, with no labels at all. So a selector that matches no labels selects every namespace; an
/// empty one did so anyway.
pub fn with_selected_namespaces(term: &AffinityTerm, cluster: &Cluster) -> AffinityTerm {
    let mut term = term.clone();
    if !term.namespace_selector.is_empty() {
        let selected = cluster
            .namespaces()
            .filter(|(_, labels)| term.namespace_selector.matches(*labels));
        term.namespaces
            .extend(selected.map(|(name, _)| name.to_owned()));
    }
    term
}

/// Whether a term [with its namespaces](with_selected_namespaces) means the existing pod.
pub fn incoming_term_matches(term: &AffinityTerm, existing: &SchedulingPod) -> bool {
    static NO_LABELS: BTreeMap<String, String> = BTreeMap::new();
    term.matches(&existing.pod_ref, &existing.labels, &NO_LABELS)
}

#[cfg(test)]
mod tests;
