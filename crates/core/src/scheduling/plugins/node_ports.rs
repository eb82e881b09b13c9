//! `NodePorts`: two pods cannot hold the same port of a node.

use crate::scheduling::cluster::NodeState;
use crate::scheduling::plugin_names::{FilterPlugin, Rejection};
use crate::scheduling::pod::SchedulingPod;

const REASON: &str = "node(s) didn't have free ports for the requested pod ports";

/// Whether there is nothing to filter by.
pub fn skips_filter(pod: &SchedulingPod) -> bool {
    pod.host_ports.is_empty()
}

/// Why the pod may not run on the node.
pub fn filter(pod: &SchedulingPod, node: &NodeState) -> Option<Rejection> {
    let is_taken = node.used_ports().conflicts_with(&pod.host_ports);
    is_taken.then(|| Rejection::resolvable(FilterPlugin::NodePorts, REASON))
}
