//! A pod whose node affinity matched no node.

use super::super::facts::NodeFacts;
use super::{Action, Hint, Object, PodFacts, Registration, Resource};

pub(super) const EVENTS: &[Registration] =
    &[(Resource::Node, Action::ADD.or(Action::UPDATE_NODE_LABEL))];

/// Unlike to the filter, an affinity that cannot be read is no mismatch here: the pod is requeued,
/// so that its problem is reported.
pub(super) fn hint(pod: &PodFacts, object: &Object) -> Hint {
    let Object::Node(change) = object else {
        return Hint::Queue;
    };
    let matches = |node: &NodeFacts| pod.node_rules.verdict(node);
    match (change.after().map(matches), change.before().map(matches)) {
        (Some(Err(_)), _) => Hint::Queue,
        (Some(Ok(true)), was) => Hint::queue_if(was != Some(Ok(true))),
        (Some(Ok(false)) | None, _) => Hint::Skip,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{labels, node_added, node_update, pod_named, pod_with};
    use super::*;
    use serde_json::json;

    #[test]
    fn node_that_starts_to_match_requeues_pod() {
        let zone_a = labels(&[("zone", "a")]);
        let pod = pod_with("a", json!({"nodeSelector": zone_a}));
        let gets = |node: &mut crate::object::node::NodeView| node.labels = zone_a.clone();
        assert_eq!(hint(&pod, &node_added(gets)), Hint::Queue);
        assert_eq!(hint(&pod, &node_added(|_| ())), Hint::Skip);
        assert_eq!(hint(&pod, &node_update(|_| (), gets)), Hint::Queue);
        assert_eq!(hint(&pod, &node_update(gets, |_| ())), Hint::Skip);
        let loses = node_update(gets, |node| node.labels.clear());
        assert_eq!(hint(&pod, &loses), Hint::Skip);
    }

    #[test]
    fn pod_without_affinity_is_not_requeued_for_labels() {
        let pod = pod_named("a");
        assert_eq!(hint(&pod, &node_added(|_| ())), Hint::Queue);
        assert_eq!(hint(&pod, &node_update(|_| (), |_| ())), Hint::Skip);
    }

    #[test]
    fn invalid_affinity_requeues_pod() {
        let malformed = json!({"matchExpressions": [{"key": "zone", "operator": "Near"}]});
        let required = json!({"nodeSelectorTerms": [malformed]});
        let affinity = json!({"nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": required,
        }});
        let pod = pod_with("a", json!({"affinity": affinity}));
        assert_eq!(hint(&pod, &node_added(|_| ())), Hint::Queue);
    }
}
