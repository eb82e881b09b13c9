//! `NodeUnschedulable`: cordoned nodes take only pods that tolerate it.

use crate::object::node::NodeView;
use crate::object::taint::{ComparisonOperators, Effect, NODE_UNSCHEDULABLE, Taint, is_tolerated};
use crate::scheduling::plugin_names::{FilterPlugin, Rejection};
use crate::scheduling::pod::SchedulingPod;

const REASON: &str = "node(s) were unschedulable";

/// Why the pod may not run on the node.
pub fn filter(
    pod: &SchedulingPod,
    node: &NodeView,
    comparison: ComparisonOperators,
) -> Option<Rejection> {
    if !node.is_unschedulable || tolerates_cordon(pod, comparison) {
        return None;
    }
    let plugin = FilterPlugin::NodeUnschedulable;
    Some(Rejection::unresolvable(plugin, REASON))
}

/// Whether the pod may run on cordoned nodes.
pub fn tolerates_cordon(pod: &SchedulingPod, comparison: ComparisonOperators) -> bool {
    let taint = Taint {
        key: NODE_UNSCHEDULABLE.to_owned(),
        value: String::new(),
        effect: Effect::NoSchedule,
    };
    is_tolerated(&taint, &pod.tolerations, comparison)
}
