//! A pod for which only cordoned nodes were left.

use super::super::facts::NodeFacts;
use super::{Action, Change, Hint, Object, PodFacts, Registration, Resource, is_own_update};
use crate::object::taint::ComparisonOperators;
use crate::scheduling::plugins::node_unschedulable::tolerates_cordon;

pub(super) const EVENTS: &[Registration] = &[
    (Resource::Node, Action::ADD.or(Action::UPDATE_NODE_TAINT)),
    (Resource::Pod, Action::UPDATE_POD_TOLERATION),
];

pub(super) fn hint(pod: &PodFacts, object: &Object) -> Hint {
    match object {
        Object::Node(change) => Hint::queue_if(is_open_to_pods(change)),
        // The pod was rejected because it lacked this toleration, so that its old tolerations need
        // not be compared.
        Object::Pod(change) => {
            let tolerates = |new: &PodFacts| tolerates_cordon(new, ComparisonOperators::Disabled);
            Hint::queue_if(is_own_update(pod, change) && change.after().is_some_and(tolerates))
        }
        _ => Hint::Queue,
    }
}

/// Added open, or uncordoned.
fn is_open_to_pods(change: &Change<NodeFacts>) -> bool {
    let was_closed = change.before().is_none_or(|old| old.is_unschedulable);
    was_closed && change.after().is_some_and(|new| !new.is_unschedulable)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{node_added, node_update, pod_named, pod_with, updated};
    use super::*;
    use crate::object::taint::NODE_UNSCHEDULABLE;
    use serde_json::json;

    #[test]
    fn schedulable_or_uncordoned_node_requeues_pod() {
        let pod = pod_named("a");
        assert_eq!(hint(&pod, &node_added(|_| ())), Hint::Queue);
        assert_eq!(
            hint(&pod, &node_added(|node| node.is_unschedulable = true)),
            Hint::Skip
        );
        let uncordoned = node_update(
            |node| node.is_unschedulable = true,
            |node| node.is_unschedulable = false,
        );
        assert_eq!(hint(&pod, &uncordoned), Hint::Queue);
        assert_eq!(hint(&pod, &node_update(|_| (), |_| ())), Hint::Skip);
    }

    #[test]
    fn toleration_of_unschedulable_taint_requeues_pod() {
        let tolerant = |name, key: &str| {
            let toleration = json!({"key": key, "operator": "Exists"});
            let pod = pod_with(name, json!({"tolerations": [toleration]}));
            Object::Pod(updated(pod_named(name), pod))
        };
        let pod = pod_named("a");
        assert_eq!(hint(&pod, &tolerant("a", NODE_UNSCHEDULABLE)), Hint::Queue);
        assert_eq!(hint(&pod, &tolerant("a", "other")), Hint::Skip);
        assert_eq!(hint(&pod, &tolerant("b", NODE_UNSCHEDULABLE)), Hint::Skip);
    }
}
