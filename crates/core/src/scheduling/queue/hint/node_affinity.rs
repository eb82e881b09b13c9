//! A pod that wants other nodes than there were.

use super::super::facts::NodeFacts;
use super::{Action, Hint, Object, PodFacts, Registration, Resource};

pub(super) const EVENTS: &[Registration] =
    &[(Resource::Node, Action::ADD.or(Action::UPDATE_NODE_LABEL))];

/// An affinity that cannot be read is worth an attempt, so that its problem is told.
pub(super) fn hint(pod: &PodFacts, object: &Object) -> Hint {
    let (Object::Node(change), Some(affinity)) = (object, &pod.node_affinity) else {
        return Hint::Queue;
    };
    let matches = |node: &NodeFacts| affinity.matches(node.view.name.as_str(), &node.view.labels);
    match (change.after().map(matches), change.before().map(matches)) {
        (Some(Err(_)), _) => Hint::Queue,
        (Some(Ok(true)), was) => Hint::queue_if(was != Some(Ok(true))),
        (Some(Ok(false)) | None, _) => Hint::Skip,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{labels, node_added, node_update, pod_named};
    use super::*;
    use crate::object::selector::RequiredNodeAffinity;
    use k8s_openapi::api::core::v1::PodSpec;

    #[test]
    fn a_node_that_begins_to_match_is_worth_an_attempt() {
        let zone_a = labels(&[("zone", "a")]);
        let mut pod = pod_named("a");
        pod.node_affinity = Some(RequiredNodeAffinity::from_spec(&PodSpec {
            node_selector: Some(zone_a.clone()),
            ..PodSpec::default()
        }));
        let gets = |node: &mut crate::object::node::NodeView| node.labels = zone_a.clone();
        assert_eq!(hint(&pod, &node_added(gets)), Hint::Queue);
        assert_eq!(hint(&pod, &node_added(|_| ())), Hint::Skip);
        assert_eq!(hint(&pod, &node_update(|_| (), gets)), Hint::Queue);
        assert_eq!(hint(&pod, &node_update(gets, |_| ())), Hint::Skip);
        let loses = node_update(gets, |node| node.labels.clear());
        assert_eq!(hint(&pod, &loses), Hint::Skip);
    }
}
