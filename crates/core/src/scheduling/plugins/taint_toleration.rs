//! `TaintToleration`: taints keep pods away that do not tolerate them.

use crate::object::node::NodeView;
use crate::object::taint::{ComparisonOperators, TaintFilter, first_untolerated, is_tolerated};
use crate::scheduling::plugin_names::{FilterPlugin, Rejection};
use crate::scheduling::pod::SchedulingPod;

use super::{count, normalize_to_highest};

const REASON: &str = "node(s) had untolerated taint(s)";

/// Why the pod may not run on the node.
pub fn filter(
    pod: &SchedulingPod,
    node: &NodeView,
    comparison: ComparisonOperators,
) -> Option<Rejection> {
    let plugin = FilterPlugin::TaintToleration;
    is_kept_away(pod, node, comparison).then(|| Rejection::unresolvable(plugin, REASON))
}

/// Whether the node has a taint that forbids placing the pod.
pub fn is_kept_away(pod: &SchedulingPod, node: &NodeView, comparison: ComparisonOperators) -> bool {
    let filter = TaintFilter::NoScheduleOrNoExecute;
    first_untolerated(&node.taints, &pod.tolerations, filter, comparison).is_some()
}

/// How many `PreferNoSchedule` taints the pod does not tolerate.
pub fn score(pod: &SchedulingPod, node: &NodeView, comparison: ComparisonOperators) -> i64 {
    let taints = node.taints.iter();
    let discouraging = taints.filter(|taint| TaintFilter::PreferNoSchedule.includes(taint));
    let untolerated =
        discouraging.filter(|taint| !is_tolerated(taint, &pod.tolerations, comparison));
    count(untolerated.count())
}

/// Turns numbers of taints into scores: the fewer, the better.
pub fn normalize(scores: &mut [i64]) {
    normalize_to_highest(scores, true);
}
