//! `NodeAffinity`: node selectors, required and preferred node affinity.

use crate::object::node::NodeView;
use crate::scheduling::plugin_names::{FilterPlugin, Rejection};
use crate::scheduling::pod::{NamedNodes, SchedulingPod};
use crate::scheduling::profile::AddedAffinity;

use super::normalize_to_highest;

const REASON: &str = "node(s) didn't match Pod's node affinity/selector";
const REASON_ADDED: &str = "node(s) didn't match scheduler-enforced node affinity";
const REASON_CONFLICT: &str = "pod affinity terms conflict";

/// Whether there is nothing to filter by.
pub fn skips_filter(pod: &SchedulingPod, added: &AddedAffinity) -> bool {
    !pod.node_rules.is_required && added.required.is_none()
}

/// Why the pod may not run on any node.
pub fn pre_filter(pod: &SchedulingPod) -> Option<Rejection> {
    let plugin = FilterPlugin::NodeAffinity;
    match &pod.node_rules.named {
        NamedNodes::Only(names) if names.is_empty() => {
            Some(Rejection::unresolvable(plugin, REASON_CONFLICT))
        }
        _ => None,
    }
}

/// Why the pod may not run on the node.
pub fn filter(pod: &SchedulingPod, added: &AddedAffinity, node: &NodeView) -> Option<Rejection> {
    let plugin = FilterPlugin::NodeAffinity;
    if let Some(required) = &added.required
        && !required
            .matches(node.name.as_str(), &node.labels)
            .unwrap_or(false)
    {
        return Some(Rejection::unresolvable(plugin, REASON_ADDED));
    }
    let is_allowed = pod.node_rules.allow(node);
    (!is_allowed).then(|| Rejection::unresolvable(plugin, REASON))
}

/// Whether there is nothing to score by.
pub fn skips_score(pod: &SchedulingPod, added: &AddedAffinity) -> bool {
    pod.node_rules.preferred.is_none() && added.preferred.is_none()
}

/// The sum of the weights of the preferences that the node meets.
pub fn score(pod: &SchedulingPod, added: &AddedAffinity, node: &NodeView) -> i64 {
    let preferences = added.preferred.iter().chain(&pod.node_rules.preferred);
    preferences
        .map(|preferred| preferred.score(node.name.as_str(), &node.labels))
        .fold(0, i64::wrapping_add)
}

/// Turns sums of weights into scores.
pub fn normalize(scores: &mut [i64]) {
    normalize_to_highest(scores, false);
}
