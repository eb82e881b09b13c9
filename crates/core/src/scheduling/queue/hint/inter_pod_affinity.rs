//! A pod that other pods attract or repel.

use super::super::facts::NodeFacts;
use super::{Action, Change, Hint, Object, PodFacts, Registration, Resource, is_own_update};
use crate::scheduling::plugins::inter_pod_affinity::incoming_term_matches;
use crate::scheduling::pod::AffinityTerm;

pub(super) const EVENTS: &[Registration] = &[
    (
        Resource::Pod,
        Action::ADD.or(Action::UPDATE_POD_LABEL).or(Action::DELETE),
    ),
    (Resource::Node, Action::ADD.or(Action::UPDATE_NODE_LABEL)),
];

pub(super) fn hint(pod: &PodFacts, object: &Object) -> Hint {
    Hint::queue_if(match object {
        Object::Pod(change) => is_own_update(pod, change) || alters_a_match(pod, change),
        Object::Node(change) => alters_a_domain(pod, change),
        _ => true,
    })
}

/// Affinity requires one pod that all terms select, hence all of them. Anti-affinity is treated
/// alike here, although a single term is enough to reject: upstream does. Unlike the filter,
/// upstream does not look up here which namespaces a selector selects, so that one which requires
/// labels selects none.
fn all_match(terms: &[AffinityTerm], pod: &PodFacts) -> bool {
    let mut each = terms.iter();
    !terms.is_empty() && each.all(|term| incoming_term_matches(term, pod))
}

fn alters_a_match(pod: &PodFacts, change: &Change<PodFacts>) -> bool {
    let mut versions = change.before().into_iter().chain(change.after());
    if !versions.all(PodFacts::is_on_a_node) {
        return false;
    }
    let attracts = |other| all_match(&pod.affinity.required, other);
    let repels = |other| all_match(&pod.affinity.required_anti, other);
    match change {
        Change::Added(new) => attracts(new),
        Change::Updated { old, new } => {
            (!attracts(old) && attracts(new)) || (repels(old) && !repels(new))
        }
        Change::Deleted(old) => repels(old) || all_match(&old.affinity.required_anti, pod),
    }
}

fn alters_a_domain(pod: &PodFacts, change: &Change<NodeFacts>) -> bool {
    let Some(new) = change.after() else {
        return false;
    };
    let (near, far) = (&pod.affinity.required, &pod.affinity.required_anti);
    let value =
        |node: &NodeFacts, term: &AffinityTerm| node.labels.get(&term.topology_key).cloned();
    let Some(old) = change.before() else {
        // A node without the key is in no domain that could hold a repelling pod, and one with
        // the key may be in a new domain.
        let joins = near.iter().any(|term| value(new, term).is_some());
        return joins || !far.is_empty();
    };
    let moves = |term: &AffinityTerm| value(old, term) != value(new, term);
    let enters = |term: &AffinityTerm| moves(term) && value(new, term).is_some();
    let leaves = |term: &AffinityTerm| moves(term) && value(old, term).is_some();
    near.iter().any(enters) || far.iter().any(leaves)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{
        added, assigned, but, deleted, labels, node_added, node_update, pod_named, updated,
    };
    use super::*;
    use crate::object::node::NodeView;
    use crate::object::selector::LabelSelector;

    fn term(key: &str, pairs: &[(&str, &str)]) -> AffinityTerm {
        AffinityTerm {
            topology_key: key.to_owned(),
            namespaces: ["default".to_owned()].into(),
            namespace_selector: LabelSelector::nothing(),
            selector: LabelSelector::from_set(&labels(pairs)),
        }
    }

    fn attracted() -> PodFacts {
        but(pod_named("a"), |pod| {
            pod.affinity.required = vec![term("zone", &[("app", "db")])];
        })
    }

    fn repelled() -> PodFacts {
        but(pod_named("a"), |pod| {
            pod.affinity.required_anti = vec![term("zone", &[("app", "db")])];
        })
    }

    fn db() -> PodFacts {
        assigned("db", |pod| pod.labels = labels(&[("app", "db")]))
    }

    fn other() -> PodFacts {
        assigned("db", |_| ())
    }

    fn asks(pod: &PodFacts, change: Change<PodFacts>) -> Hint {
        hint(pod, &Object::Pod(change))
    }

    #[test]
    fn affinity_requeues_for_pod_that_appears_or_starts_to_match() {
        assert_eq!(asks(&attracted(), added(db())), Hint::Queue);
        assert_eq!(asks(&attracted(), added(other())), Hint::Skip);
        assert_eq!(asks(&attracted(), updated(other(), db())), Hint::Queue);
        assert_eq!(asks(&attracted(), updated(db(), other())), Hint::Skip);
        assert_eq!(asks(&attracted(), deleted(db())), Hint::Skip);
        let foreign = but(db(), |pod| pod.pod_ref.namespace = "elsewhere".to_owned());
        assert_eq!(asks(&attracted(), added(foreign)), Hint::Skip);
        let pending = but(db(), |pod| pod.node_name = None);
        assert_eq!(asks(&attracted(), added(pending)), Hint::Skip);
    }

    #[test]
    fn all_affinity_terms_must_select_the_same_pod() {
        let pod = but(attracted(), |pod| {
            let another = term("zone", &[("tier", "1")]);
            pod.affinity.required.push(another);
        });
        assert_eq!(asks(&pod, added(db())), Hint::Skip);
    }

    #[test]
    fn anti_affinity_requeues_for_deleted_or_no_longer_matching_pods() {
        assert_eq!(asks(&repelled(), deleted(db())), Hint::Queue);
        assert_eq!(asks(&repelled(), deleted(other())), Hint::Skip);
        assert_eq!(asks(&repelled(), updated(db(), other())), Hint::Queue);
        assert_eq!(asks(&repelled(), updated(other(), db())), Hint::Skip);
        assert_eq!(asks(&repelled(), added(db())), Hint::Skip);
        let pod = but(pod_named("a"), |pod| pod.labels = labels(&[("app", "db")]));
        let hostile = assigned("b", |other| other.affinity = repelled().affinity.clone());
        assert_eq!(asks(&pod, deleted(hostile)), Hint::Queue);
    }

    #[test]
    fn change_of_own_labels_requeues_pod() {
        let own = updated(pod_named("a"), pod_named("a"));
        assert_eq!(asks(&pod_named("a"), own), Hint::Queue);
    }

    #[test]
    fn namespace_selector_that_matches_all_applies() {
        let selecting = |namespace_selector: LabelSelector| {
            but(attracted(), |pod| {
                let term = &mut pod.affinity.required[0];
                term.namespaces.clear();
                term.namespace_selector = namespace_selector;
            })
        };
        let pod = selecting(LabelSelector::everything());
        assert_eq!(asks(&pod, added(db())), Hint::Queue);
        let pod = selecting(LabelSelector::from_set(&labels(&[("team", "a")])));
        assert_eq!(asks(&pod, added(db())), Hint::Skip);
    }

    #[test]
    fn nodes_count_where_they_enter_or_leave_a_domain_of_a_term() {
        fn zone(value: &'static str) -> impl Fn(&mut NodeView) {
            move |node| node.labels = labels(&[("zone", value)])
        }
        fn none(node: &mut NodeView) {
            node.labels.clear();
        }
        assert_eq!(hint(&attracted(), &node_added(zone("a"))), Hint::Queue);
        assert_eq!(hint(&attracted(), &node_added(none)), Hint::Skip);
        assert_eq!(hint(&repelled(), &node_added(none)), Hint::Queue);
        assert_eq!(hint(&pod_named("a"), &node_added(zone("a"))), Hint::Skip);
        for (object, for_attracted, for_repelled) in [
            (node_update(none, zone("a")), Hint::Queue, Hint::Skip),
            (node_update(zone("a"), zone("b")), Hint::Queue, Hint::Queue),
            (node_update(zone("a"), none), Hint::Skip, Hint::Queue),
            (node_update(zone("a"), zone("a")), Hint::Skip, Hint::Skip),
        ] {
            assert_eq!(hint(&attracted(), &object), for_attracted);
            assert_eq!(hint(&repelled(), &object), for_repelled);
        }
    }
}
