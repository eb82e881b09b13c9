//! A pod that needs features which nodes did not declare.

use super::{Action, Change, Hint, Object, PodFacts, Registration, Resource};

pub(super) const EVENTS: &[Registration] = &[
    (
        Resource::Node,
        Action::ADD.or(Action::UPDATE_NODE_DECLARED_FEATURE),
    ),
    (Resource::Pod, Action::UPDATE),
];

pub(super) fn hint(pod: &PodFacts, object: &Object) -> Hint {
    Hint::queue_if(match object {
        Object::Node(Change::Updated { old, new }) => {
            old.declared_features != new.declared_features
        }
        Object::Pod(Change::Updated { old, new }) => {
            new.uid == pod.uid && old.required_features != new.required_features
        }
        _ => true,
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::facts::NodeFacts;
    use super::super::tests::{node_added, pod_named, updated};
    use super::*;

    #[test]
    fn changed_declared_features_requeue_pod() {
        let node = |features: &[&str]| NodeFacts {
            declared_features: features.iter().map(|f| (*f).to_owned()).collect(),
            ..NodeFacts::default()
        };
        let pod = pod_named("a");
        assert_eq!(hint(&pod, &node_added(|_| ())), Hint::Queue);
        let declares = Object::Node(updated(node(&[]), node(&["x"])));
        assert_eq!(hint(&pod, &declares), Hint::Queue);
        let same = Object::Node(updated(node(&["x"]), node(&["x"])));
        assert_eq!(hint(&pod, &same), Hint::Skip);

        let needs = |name: &str| PodFacts {
            required_features: ["x"].into(),
            ..pod_named(name)
        };
        let change = |name| Object::Pod(updated(needs(name), pod_named(name)));
        assert_eq!(hint(&pod, &change("a")), Hint::Queue);
        assert_eq!(hint(&pod, &change("b")), Hint::Skip);
    }
}
