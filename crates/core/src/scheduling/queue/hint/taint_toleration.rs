//! A pod that did not tolerate the taints of some node.

use super::super::facts::NodeFacts;
use super::{Action, Hint, Object, PodFacts, Registration, Resource, is_own_update};
use crate::object::taint::ComparisonOperators;
use crate::scheduling::plugins::taint_toleration::is_kept_away;

pub(super) const EVENTS: &[Registration] = &[
    (Resource::Node, Action::ADD.or(Action::UPDATE_NODE_TAINT)),
    (Resource::Pod, Action::UPDATE_POD_TOLERATION),
];

pub(super) fn hint(pod: &PodFacts, object: &Object) -> Hint {
    match object {
        Object::Node(change) => {
            let was_tolerated = change.before().is_some_and(|node| is_tolerated(pod, node));
            let is_tolerated = change.after().is_some_and(|node| is_tolerated(pod, node));
            Hint::queue_if(!was_tolerated && is_tolerated)
        }
        // Tolerations can only be added, and any of them may be the one that was missing.
        Object::Pod(change) => Hint::queue_if(is_own_update(pod, change)),
        _ => Hint::Queue,
    }
}

fn is_tolerated(pod: &PodFacts, node: &NodeFacts) -> bool {
    !is_kept_away(pod, node, ComparisonOperators::Disabled)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{node_added, node_update, pod_named, updated};
    use super::*;
    use crate::object::node::NodeView;
    use crate::object::taint::{Effect, Taint};

    fn taint(effect: Effect) -> impl Fn(&mut NodeView) {
        move |node| {
            node.taints.push(Taint {
                key: "a".to_owned(),
                value: String::new(),
                effect: effect.clone(),
            });
        }
    }

    #[test]
    fn node_that_becomes_tolerated_requeues_pod() {
        let pod = pod_named("a");
        assert_eq!(hint(&pod, &node_added(|_| ())), Hint::Queue);
        assert_eq!(
            hint(&pod, &node_added(taint(Effect::NoSchedule))),
            Hint::Skip
        );
        assert_eq!(
            hint(&pod, &node_added(taint(Effect::PreferNoSchedule))),
            Hint::Queue
        );
        let untainted = node_update(taint(Effect::NoExecute), |node| node.taints.clear());
        assert_eq!(hint(&pod, &untainted), Hint::Queue);
        assert_eq!(hint(&pod, &node_update(|_| (), |_| ())), Hint::Skip);
    }

    #[test]
    fn new_toleration_requeues_pod() {
        let update = |name| Object::Pod(updated(pod_named(name), pod_named(name)));
        assert_eq!(hint(&pod_named("a"), &update("a")), Hint::Queue);
        assert_eq!(hint(&pod_named("a"), &update("b")), Hint::Skip);
    }
}
