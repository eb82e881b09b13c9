//! `NodeName`: a pod that names a node runs nowhere else.

use crate::object::node::NodeView;
use crate::scheduling::plugin_names::{FilterPlugin, Rejection};
use crate::scheduling::pod::SchedulingPod;

const REASON: &str = "node(s) didn't match the requested node name";

/// Why the pod may not run on the node.
pub fn filter(pod: &SchedulingPod, node: &NodeView) -> Option<Rejection> {
    let wanted = pod.node_name.as_ref()?;
    let is_other = *wanted != node.name;
    is_other.then(|| Rejection::unresolvable(FilterPlugin::NodeName, REASON))
}
