//! Which pods are behind a rejection: for explanations, not for decisions.

use crate::object::identity::PodRef;
use crate::scheduling::cluster::{Cluster, NodeState};
use crate::scheduling::pod::{AffinityTerm, SchedulingPod};

use super::{incoming_term_matches, with_selected_namespaces};

/// What about other pods keeps a pod from a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conflict {
    /// The pod must be near a pod that this term means, and none is there.
    Missing(AffinityTerm),
    /// The pod must not be near pods that this term means, and these are there.
    Unwanted(AffinityTerm, Vec<PodRef>),
    /// A pod that is there must not be near the pod, by this term of its own.
    UnwantedBy(PodRef, AffinityTerm),
}

/// What required terms have against the node, in the order in which the filter asks. Looks at every
/// pod of every node that the terms call near.
pub fn conflicts(pod: &SchedulingPod, cluster: &Cluster, node: &NodeState) -> Vec<Conflict> {
    let mut conflicts = Vec::new();
    for term in &pod.affinity.required {
        let expanded = with_selected_namespaces(term, cluster);
        if near(cluster, node, &term.topology_key, |other| {
            incoming_term_matches(&expanded, other)
        })
        .is_empty()
        {
            conflicts.push(Conflict::Missing(term.clone()));
        }
    }
    for term in &pod.affinity.required_anti {
        let expanded = with_selected_namespaces(term, cluster);
        let found = near(cluster, node, &term.topology_key, |other| {
            incoming_term_matches(&expanded, other)
        });
        if !found.is_empty() {
            conflicts.push(Conflict::Unwanted(term.clone(), found));
        }
    }
    let labels = cluster.namespace_labels(&pod.pod_ref.namespace);
    for (_, other_node) in cluster.nodes() {
        for other in other_node.pods() {
            let terms = other.affinity.required_anti.iter();
            let mut minding = terms.filter(|term| {
                is_near(node, other_node, &term.topology_key)
                    && term.matches(&pod.pod_ref, &pod.labels, labels)
            });
            let first = minding.next();
            conflicts.extend(
                first.map(|term| Conflict::UnwantedBy(other.pod_ref.clone(), term.clone())),
            );
        }
    }
    conflicts
}

fn near(
    cluster: &Cluster,
    node: &NodeState,
    topology_key: &str,
    is_meant: impl Fn(&SchedulingPod) -> bool,
) -> Vec<PodRef> {
    let nodes = cluster.nodes().map(|(_, other)| other);
    let nodes = nodes.filter(|other| is_near(node, other, topology_key));
    let pods = nodes.flat_map(NodeState::pods);
    let meant = pods.filter(|other| is_meant(other));
    meant.map(|other| other.pod_ref.clone()).collect()
}

fn is_near(node: &NodeState, other: &NodeState, topology_key: &str) -> bool {
    let value = node.label(topology_key);
    value.is_some() && value == other.label(topology_key)
}
