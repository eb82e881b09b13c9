//! Hard constraints.

use std::collections::BTreeMap;

use crate::object::node::NodeView;
use crate::object::taint::ComparisonOperators;
use crate::scheduling::cluster::NodeState;
use crate::scheduling::plugin_names::{FilterPlugin, Rejection};
use crate::scheduling::pod::{SchedulingPod, SpreadConstraint};

use super::{count_on_node, has_all_keys, is_included};

const REASON: &str = "node(s) didn't match pod topology spread constraints";
const REASON_NO_LABEL: &str =
    "node(s) didn't match pod topology spread constraints (missing required label)";

/// How many pods there are in each domain of each constraint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterState {
    constraints: Vec<SpreadConstraint>,
    domains: Vec<Domains>,
}

/// Counts by domain, with the least of them.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Domains {
    counts: BTreeMap<String, i64>,
    minimum: i64,
}

impl Domains {
    fn new(counts: BTreeMap<String, i64>) -> Domains {
        let minimum = minimum(&counts);
        Domains { counts, minimum }
    }

    fn change(&mut self, domain: &str, by: i64) {
        let count = match self.counts.get_mut(domain) {
            Some(count) => count,
            None => self.counts.entry(domain.to_owned()).or_insert(0),
        };
        let old = *count;
        *count = old + by;
        let new = *count;
        if new < self.minimum {
            self.minimum = new;
        } else if old == self.minimum {
            self.minimum = minimum(&self.counts);
        }
    }
}

/// Without any domain the least is beyond reach, so that no skew is too large.
fn minimum(counts: &BTreeMap<String, i64>) -> i64 {
    let least = counts.values().copied().min();
    least.unwrap_or(i64::from(i32::MAX))
}

/// The node lacks the key of a constraint.
pub fn rejection_without_label() -> Rejection {
    Rejection::unresolvable(FilterPlugin::PodTopologySpread, REASON_NO_LABEL)
}

/// The pod would make its domain too full.
pub fn rejection_by_skew() -> Rejection {
    Rejection::resolvable(FilterPlugin::PodTopologySpread, REASON)
}

impl FilterState {
    /// A state from counts by domain, one map per constraint.
    ///
    /// Domains are the label values of nodes that carry all the constraints' labels and are
    /// [included](is_included); a domain without pods counts too, with zero.
    pub fn new(
        constraints: Vec<SpreadConstraint>,
        counts: Vec<BTreeMap<String, i64>>,
    ) -> FilterState {
        let domains = counts.into_iter().map(Domains::new).collect();
        FilterState {
            constraints,
            domains,
        }
    }

    /// Counts over all nodes; `None` without constraints.
    pub fn scan<'a>(
        pod: &SchedulingPod,
        constraints: Vec<SpreadConstraint>,
        nodes: impl Iterator<Item = &'a NodeState>,
        comparison: ComparisonOperators,
    ) -> Option<FilterState> {
        if constraints.is_empty() {
            return None;
        }
        let mut counts = vec![BTreeMap::new(); constraints.len()];
        for node in nodes {
            let labels = &node.view.labels;
            if !has_all_keys(labels, &constraints) {
                continue;
            }
            for (constraint, counts) in constraints.iter().zip(&mut counts) {
                if is_included(constraint, pod, &node.view, comparison) {
                    let domain = labels[&constraint.topology_key].clone();
                    *counts.entry(domain).or_insert(0) +=
                        count_on_node(constraint, &pod.pod_ref.namespace, node);
                }
            }
        }
        Some(FilterState::new(constraints, counts))
    }

    /// The constraints.
    pub fn constraints(&self) -> &[SpreadConstraint] {
        &self.constraints
    }

    /// Follows the trial of adding (`by` = 1) or removing (`by` = -1) a pod on a node.
    ///
    /// Unlike the first count, this counts terminating pods and those that an empty selector
    /// matches: upstream's does.
    pub fn change(
        &mut self,
        pod: &SchedulingPod,
        changed: &SchedulingPod,
        node: &NodeView,
        by: i64,
        comparison: ComparisonOperators,
    ) {
        if changed.pod_ref.namespace != pod.pod_ref.namespace
            || !has_all_keys(&node.labels, &self.constraints)
        {
            return;
        }
        for (constraint, domains) in self.constraints.iter().zip(&mut self.domains) {
            if constraint.selector.matches(&changed.labels)
                && is_included(constraint, pod, node, comparison)
            {
                domains.change(&node.labels[&constraint.topology_key], by);
            }
        }
    }

    /// Why the pod may not run on a node with these labels.
    ///
    /// skew = count in the domain + 1 if the pod counts itself - least count over all domains
    pub fn filter(
        &self,
        pod: &SchedulingPod,
        labels: &BTreeMap<String, String>,
    ) -> Option<Rejection> {
        for (constraint, domains) in self.constraints.iter().zip(&self.domains) {
            let Some(domain) = labels.get(&constraint.topology_key) else {
                return Some(rejection_without_label());
            };
            let wanted = usize::try_from(constraint.min_domains).unwrap_or(0);
            let minimum = if domains.counts.len() < wanted {
                0
            } else {
                domains.minimum
            };
            let own = i64::from(constraint.selector.matches(&pod.labels));
            let existing = domains.counts.get(domain).copied().unwrap_or(0);
            if existing + own - minimum > i64::from(constraint.max_skew) {
                return Some(rejection_by_skew());
            }
        }
        None
    }
}
