//! A pod that would have made its kind spread too unevenly.

use super::super::facts::NodeFacts;
use super::{Action, Change, Hint, Object, PodFacts, Registration, Resource};
use crate::scheduling::plugins::pod_topology_spread::has_all_keys;
use crate::scheduling::pod::{InclusionPolicy, SpreadConstraint};

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
        Object::Node(change) => alters_a_domain(pod.hard_spread(), change),
        _ => true,
    })
}

/// Unlike when pods are counted, whether a pod is being deleted does not matter here, and an empty
/// selector means every pod.
fn alters_a_count(pod: &PodFacts, change: &Change<PodFacts>) -> bool {
    let constraints = pod.hard_spread();
    let mut versions = change.before().into_iter().chain(change.after());
    if !versions.all(|other| is_involved(other, pod)) {
        return false;
    }
    let selects = |constraint: &SpreadConstraint, other: &PodFacts| {
        constraint.selector.matches(&other.labels)
    };
    let honors_taints =
        |constraint: &SpreadConstraint| constraint.node_taints_policy == InclusionPolicy::Honor;
    let mut each = constraints.iter();
    match change {
        Change::Added(other) | Change::Deleted(other) => {
            each.any(|constraint| selects(constraint, other))
        }
        Change::Updated { old, new } => {
            let tolerates_more = new.uid == pod.uid
                && new.tolerations != old.tolerations
                && constraints.iter().any(honors_taints);
            tolerates_more
                || each.any(|constraint| selects(constraint, old) != selects(constraint, new))
        }
    }
}

/// Whether the other pod can count: it is the pod itself, or has a node and the same namespace.
fn is_involved(other: &PodFacts, pod: &PodFacts) -> bool {
    other.uid == pod.uid || other.is_on_a_node() && other.pod_ref.namespace == pod.pod_ref.namespace
}

fn alters_a_domain(constraints: &[SpreadConstraint], change: &Change<NodeFacts>) -> bool {
    let has_all_keys = |node: &NodeFacts| has_all_keys(&node.labels, constraints);
    match change {
        Change::Added(node) | Change::Deleted(node) => has_all_keys(node),
        Change::Updated { old, new } => {
            let moves = || {
                let mut keys = constraints
                    .iter()
                    .map(|constraint| &constraint.topology_key);
                keys.any(|key| old.labels.get(key) != new.labels.get(key))
            };
            let (had, has) = (has_all_keys(old), has_all_keys(new));
            had != has || has && (moves() || old.taints != new.taints)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{
        added, assigned, but, deleted, labels, node_added, node_deleted, node_update, pod_with,
        updated,
    };
    use super::*;
    use crate::object::node::NodeView;
    use crate::object::taint::{Effect, Taint, Toleration, TolerationOperator};
    use serde_json::json;

    fn spreading() -> PodFacts {
        let constraint = json!({
            "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "web"}},
        });
        pod_with("a", json!({"topologySpreadConstraints": [constraint]}))
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
        let foreign = but(web(), |pod| pod.pod_ref.namespace = "elsewhere".to_owned());
        assert_eq!(asks(&spreading(), added(foreign)), Hint::Skip);
        let pending = but(web(), |pod| pod.node_name = None);
        assert_eq!(asks(&spreading(), deleted(pending)), Hint::Skip);
    }

    #[test]
    fn own_tolerations_count_where_a_constraint_honors_taints() {
        let tolerant = but(spreading(), |pod| {
            pod.tolerations.push(Toleration {
                key: None,
                operator: TolerationOperator::Exists,
                value: String::new(),
                effect: None,
                seconds: None,
            });
        });
        let change = || updated(spreading(), tolerant.clone());
        assert_eq!(asks(&spreading(), change()), Hint::Skip);
        let honoring = but(spreading(), |pod| {
            pod.spread.hard[0].node_taints_policy = InclusionPolicy::Honor;
        });
        assert_eq!(asks(&honoring, change()), Hint::Queue);
    }

    #[test]
    fn default_constraints_apply_to_pods_without_their_own() {
        let mut pod = pod_with("a", json!({}));
        assert_eq!(asks(&pod, added(web())), Hint::Skip);
        pod.default_spread.clone_from(&spreading().spread.hard);
        assert_eq!(asks(&pod, added(web())), Hint::Queue);
        let stated = but(pod, |pod| pod.spread.is_stated = true);
        assert_eq!(asks(&stated, added(web())), Hint::Skip);
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
