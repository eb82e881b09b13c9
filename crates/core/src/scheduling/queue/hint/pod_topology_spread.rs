//! A pod that would have made its kind spread too unevenly.

use super::super::facts::{NodeFacts, SpreadConstraint};
use super::{Action, Change, Hint, Object, PodFacts, Registration, Resource};

pub(super) const EVENTS: &[Registration] = &[
    (
        Resource::Pod,
        Action::ADD
            .or(Action::UPDATE_POD_LABEL)
            .or(Action::UPDATE_POD_TOLERATION)
            .or(Action::DELETE),
    ),
    (
        Resource::Node,
        Action::ADD
            .or(Action::DELETE)
            .or(Action::UPDATE_NODE_LABEL)
            .or(Action::UPDATE_NODE_TAINT),
    ),
];

pub(super) fn hint(pod: &PodFacts, object: &Object) -> Hint {
    Hint::queue_if(match object {
        Object::Pod(change) => alters_a_count(pod, change),
        Object::Node(change) => alters_a_domain(&pod.spread, change),
        _ => true,
    })
}

fn alters_a_count(pod: &PodFacts, change: &Change<PodFacts>) -> bool {
    let mut versions = change.before().into_iter().chain(change.after());
    if !versions.all(|other| is_involved(other, pod)) {
        return false;
    }
    let is_counted = |other: &PodFacts| {
        let mut constraints = pod.spread.iter();
        constraints.any(|constraint| constraint.selector.matches(&other.labels))
    };
    match change {
        Change::Added(other) | Change::Deleted(other) => is_counted(other),
        Change::Updated { old, new } => {
            let tolerates_more = new.uid == pod.uid
                && new.tolerations != old.tolerations
                && pod.spread.iter().any(|constraint| constraint.honors_taints);
            tolerates_more
                || pod.spread.iter().any(|constraint| {
                    let selector = &constraint.selector;
                    selector.matches(&old.labels) != selector.matches(&new.labels)
                })
        }
    }
}

/// Whether the other pod can count: it is the pod itself, or has a node and the same namespace.
fn is_involved(other: &PodFacts, pod: &PodFacts) -> bool {
    other.uid == pod.uid || other.is_on_a_node() && other.pod_ref.namespace == pod.pod_ref.namespace
}

fn alters_a_domain(constraints: &[SpreadConstraint], change: &Change<NodeFacts>) -> bool {
    let has_all_keys = |node: &NodeFacts| {
        let mut constraints = constraints.iter();
        constraints.all(|constraint| node.view.labels.contains_key(&constraint.topology_key))
    };
    match change {
        Change::Added(node) | Change::Deleted(node) => has_all_keys(node),
        Change::Updated { old, new } => {
            let moves = || {
                let mut keys = constraints
                    .iter()
                    .map(|constraint| &constraint.topology_key);
                keys.any(|key| old.view.labels.get(key) != new.view.labels.get(key))
            };
            let (had, has) = (has_all_keys(old), has_all_keys(new));
            had != has || has && (moves() || old.view.taints != new.view.taints)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{
        added, assigned, deleted, labels, node_added, node_deleted, node_update, pod_named, updated,
    };
    use super::*;
    use crate::object::node::NodeView;
    use crate::object::selector::LabelSelector;
    use crate::object::taint::{Effect, Taint, Toleration, TolerationOperator};

    fn spreading() -> PodFacts {
        PodFacts {
            spread: vec![SpreadConstraint {
                topology_key: "zone".to_owned(),
                selector: LabelSelector::from_set(&labels(&[("app", "web")])),
                honors_taints: false,
            }],
            ..pod_named("a")
        }
    }

    fn web() -> PodFacts {
        assigned("b", |pod| pod.labels = labels(&[("app", "web")]))
    }

    fn other() -> PodFacts {
        assigned("b", |_| ())
    }

    fn asks(pod: &PodFacts, change: Change<PodFacts>) -> Hint {
        hint(pod, &Object::Pod(change))
    }

    #[test]
    fn pods_count_if_a_constraint_selects_them_before_or_after() {
        assert_eq!(asks(&spreading(), added(web())), Hint::Queue);
        assert_eq!(asks(&spreading(), deleted(web())), Hint::Queue);
        assert_eq!(asks(&spreading(), added(other())), Hint::Skip);
        assert_eq!(asks(&spreading(), updated(web(), other())), Hint::Queue);
        assert_eq!(asks(&spreading(), updated(other(), web())), Hint::Queue);
        assert_eq!(asks(&spreading(), updated(web(), web())), Hint::Skip);
    }

    #[test]
    fn pods_elsewhere_or_without_a_node_do_not_count() {
        let mut foreign = web();
        foreign.pod_ref.namespace = "elsewhere".to_owned();
        assert_eq!(asks(&spreading(), added(foreign)), Hint::Skip);
        let mut pending = web();
        pending.node_name = None;
        assert_eq!(asks(&spreading(), deleted(pending)), Hint::Skip);
    }

    #[test]
    fn own_tolerations_count_where_a_constraint_honors_taints() {
        let mut tolerant = spreading();
        tolerant.tolerations.push(Toleration {
            key: None,
            operator: TolerationOperator::Exists,
            value: String::new(),
            effect: None,
            seconds: None,
        });
        let change = || updated(spreading(), tolerant.clone());
        assert_eq!(asks(&spreading(), change()), Hint::Skip);
        let mut honoring = spreading();
        honoring.spread[0].honors_taints = true;
        assert_eq!(asks(&honoring, change()), Hint::Queue);
    }

    #[test]
    fn nodes_count_if_they_have_every_key_before_or_after() {
        fn zone(value: &'static str) -> impl Fn(&mut NodeView) {
            move |node| node.labels = labels(&[("zone", value)])
        }
        fn none(node: &mut NodeView) {
            node.labels.clear();
        }
        let taint = |node: &mut NodeView| {
            node.taints.push(Taint {
                key: "a".to_owned(),
                value: String::new(),
                effect: Effect::NoSchedule,
            });
        };
        for (object, expected) in [
            (node_added(zone("a")), Hint::Queue),
            (node_added(none), Hint::Skip),
            (node_deleted(zone("a")), Hint::Queue),
            (node_deleted(none), Hint::Skip),
            (node_update(none, zone("a")), Hint::Queue),
            (node_update(zone("a"), none), Hint::Queue),
            (node_update(zone("a"), zone("b")), Hint::Queue),
            (node_update(zone("a"), taint), Hint::Queue),
            (node_update(none, taint), Hint::Skip),
            (node_update(zone("a"), |_| ()), Hint::Skip),
        ] {
            assert_eq!(hint(&spreading(), &object), expected, "{object:?}");
        }
    }
}
