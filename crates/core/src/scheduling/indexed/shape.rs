//! Pods that get the same answers.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::scheduling::pod::SchedulingPod;

/// Whether every filter and score gives the same answer for both pods, on any node, and the same
/// pods would be preempted for them.
///
/// What is left out has no part in that: names and ids, times and gates, and whether the pod may
/// preempt others at all, which is checked per pod.
pub(super) fn is_same(a: &SchedulingPod, b: &SchedulingPod) -> bool {
    a.priority == b.priority
        && a.pod_ref.namespace == b.pod_ref.namespace
        && a.requests == b.requests
        && a.labels == b.labels
        && a.tolerations == b.tolerations
        && a.node_rules == b.node_rules
        && a.node_name == b.node_name
        && a.host_ports == b.host_ports
        && a.images == b.images
        && a.spread == b.spread
        && a.affinity == b.affinity
        && a.controller == b.controller
}

/// Equal for pods of the same shape. Covers what usually differs between shapes, not everything.
pub(super) fn hash(pod: &SchedulingPod) -> u64 {
    let mut hasher = DefaultHasher::new();
    pod.pod_ref.namespace.hash(&mut hasher);
    pod.labels.hash(&mut hasher);
    pod.priority.hash(&mut hasher);
    pod.requests.incoming.milli_cpu.hash(&mut hasher);
    pod.requests.incoming.memory.hash(&mut hasher);
    pod.images.names.hash(&mut hasher);
    pod.node_name.hash(&mut hasher);
    hasher.finish()
}
