//! `PodTopologySpread`: pods of one kind are spread evenly over zones, nodes or any other domains.
//!
//! `filter` holds the counts behind `DoNotSchedule`, `score` those behind `ScheduleAnyway`.
//! Matches v1.36 plugins/podtopologyspread.

mod filter;
mod score;

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::object::node::NodeView;
use crate::object::taint::ComparisonOperators;
use crate::scheduling::cluster::{NodeState, Owners};
use crate::scheduling::pod::{InclusionPolicy, SchedulingPod, SpreadConstraint, SpreadConstraints};
use crate::scheduling::profile::SpreadDefaults;

use super::count;
use super::taint_toleration::is_kept_away;

pub use filter::{FilterState, rejection_by_skew, rejection_without_label};
pub use score::{ScoreState, domain_score, domain_weight, normalize, rounded};

/// The hard constraints that apply to the pod: its own, or the profile's if it has none at all.
pub fn hard_constraints<'a>(
    pod: &'a SchedulingPod,
    defaults: &SpreadDefaults,
    owners: &Owners,
) -> Cow<'a, [SpreadConstraint]> {
    constraints(pod, defaults, owners, |constraints| &constraints.hard)
}

/// The soft constraints that apply to the pod.
pub fn soft_constraints<'a>(
    pod: &'a SchedulingPod,
    defaults: &SpreadDefaults,
    owners: &Owners,
) -> Cow<'a, [SpreadConstraint]> {
    constraints(pod, defaults, owners, |constraints| &constraints.soft)
}

fn constraints<'a>(
    pod: &'a SchedulingPod,
    defaults: &SpreadDefaults,
    owners: &Owners,
    part: fn(&SpreadConstraints) -> &Vec<SpreadConstraint>,
) -> Cow<'a, [SpreadConstraint]> {
    if pod.spread.is_stated {
        return Cow::Borrowed(part(&pod.spread));
    }
    let by_default = part(&defaults.constraints);
    if by_default.is_empty() {
        return Cow::Borrowed(&[]);
    }
    let selector = owners.default_selector(pod);
    if selector.is_empty() {
        return Cow::Borrowed(&[]);
    }
    let with_selector = by_default.iter().map(|constraint| SpreadConstraint {
        selector: selector.clone(),
        ..constraint.clone()
    });
    Cow::Owned(with_selector.collect())
}

/// Whether the node carries the labels of all the constraints.
pub fn has_all_keys(labels: &BTreeMap<String, String>, constraints: &[SpreadConstraint]) -> bool {
    let mut constraints = constraints.iter();
    constraints.all(|constraint| labels.contains_key(&constraint.topology_key))
}

/// Whether the pods of the node count for the constraint.
pub fn is_included(
    constraint: &SpreadConstraint,
    pod: &SchedulingPod,
    node: &NodeView,
    comparison: ComparisonOperators,
) -> bool {
    let honors = |policy: InclusionPolicy| policy == InclusionPolicy::Honor;
    if honors(constraint.node_affinity_policy) && !pod.node_rules.allow(node) {
        return false;
    }
    !(honors(constraint.node_taints_policy) && is_kept_away(pod, node, comparison))
}

/// Whether an existing pod counts for the constraint of a pod in `namespace`.
///
/// An empty selector counts nothing here, although it matches the pod that looks for a node.
pub fn is_counted(
    constraint: &SpreadConstraint,
    namespace: &str,
    existing: &SchedulingPod,
) -> bool {
    !constraint.selector.is_empty()
        && !existing.is_terminating
        && existing.pod_ref.namespace == namespace
        && constraint.selector.matches(&existing.labels)
}

/// How many pods of the node count for the constraint of a pod in `namespace`.
pub fn count_on_node(constraint: &SpreadConstraint, namespace: &str, node: &NodeState) -> i64 {
    let pods = node.pods().iter();
    count(
        pods.filter(|pod| is_counted(constraint, namespace, pod))
            .count(),
    )
}

#[cfg(test)]
mod tests;
