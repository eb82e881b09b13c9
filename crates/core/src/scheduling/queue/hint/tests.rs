//! Objects for the tests of hints, and what all hints have in common.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::object::identity::NodeName;
use crate::object::node::NodeView;
use crate::object::taint::{Effect, Taint};
use crate::scheduling::pod::SchedulingPod;

use super::super::facts::NodeFacts;
use super::{Change, ClusterEvent, Hint, Object, Plugin, PodFacts};

/// A pending pod.
pub(super) fn pod_named(name: &str) -> PodFacts {
    pod_with(name, json!({}))
}

/// A pending pod with that in its spec.
pub(super) fn pod_with(name: &str, spec: Value) -> PodFacts {
    let mut whole = json!({"containers": [{"name": "c"}]});
    for (field, value) in spec.as_object().expect("a spec is an object") {
        whole[field] = value.clone();
    }
    let mut pod = crate::testing::pod(name).build();
    pod.spec = serde_json::from_value(whole).expect("tests give well-formed specs");
    PodFacts::from_api(&pod).expect("tests give well-formed pods")
}

/// The pod with a change.
pub(super) fn but(mut pod: PodFacts, change: impl FnOnce(&mut SchedulingPod)) -> PodFacts {
    change(Arc::make_mut(&mut pod.view));
    pod
}

/// The pod on a node.
pub(super) fn placed(pod: PodFacts) -> PodFacts {
    but(pod, |pod| pod.node_name = Some(NodeName::from("node")))
}

/// An assigned pod.
pub(super) fn assigned(name: &str, adapt: impl FnOnce(&mut SchedulingPod)) -> PodFacts {
    but(placed(pod_named(name)), adapt)
}

pub(super) fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = |(k, v): &(&str, &str)| ((*k).to_owned(), (*v).to_owned());
    pairs.iter().map(owned).collect()
}

pub(super) fn added<T>(new: T) -> Change<T> {
    Change::Added(Arc::new(new))
}

pub(super) fn deleted<T>(old: T) -> Change<T> {
    Change::Deleted(Arc::new(old))
}

pub(super) fn updated<T>(old: T, new: T) -> Change<T> {
    Change::Updated {
        old: Arc::new(old),
        new: Arc::new(new),
    }
}

fn node(adapt: impl FnOnce(&mut NodeView)) -> NodeFacts {
    let mut view = NodeView::default();
    adapt(&mut view);
    NodeFacts::new(Arc::new(view))
}

pub(super) fn node_added(adapt: impl FnOnce(&mut NodeView)) -> Object {
    Object::Node(added(node(adapt)))
}

pub(super) fn node_deleted(adapt: impl FnOnce(&mut NodeView)) -> Object {
    Object::Node(deleted(node(adapt)))
}

/// An update of a node; the second change is made on top of the first.
pub(super) fn node_update(
    before: impl Fn(&mut NodeView),
    change: impl FnOnce(&mut NodeView),
) -> Object {
    let new = |view: &mut NodeView| {
        before(view);
        change(view);
    };
    Object::Node(updated(node(&before), node(new)))
}

#[test]
fn taint_event_wakes_plugins_registered_for_new_nodes_without_hint() {
    let event = node_update(
        |_| (),
        |node| {
            node.taints.push(Taint {
                key: "a".to_owned(),
                value: String::new(),
                effect: Effect::NoSchedule,
            });
        },
    );
    let [event] = &ClusterEvent::all_of(&event)[..] else {
        panic!("one event");
    };
    let registered: Vec<Plugin> = Plugin::ALL
        .into_iter()
        .filter(|plugin| plugin.registers(event))
        .collect();
    let not_registered = [
        Plugin::SchedulingGates,
        Plugin::DefaultPreemption,
        Plugin::NodeVolumeLimits,
    ];
    assert_eq!(registered.len(), Plugin::ALL.len() - not_registered.len());
    assert!(
        !not_registered
            .iter()
            .any(|plugin| registered.contains(plugin))
    );
    let pod = pod_named("a");
    assert_eq!(Plugin::NodeResourcesFit.hint(&pod, event), Hint::Queue);
    assert_eq!(Plugin::TaintToleration.hint(&pod, event), Hint::Skip);
}

#[test]
fn names_of_plugins_are_found_again() {
    for plugin in Plugin::ALL {
        assert_eq!(Plugin::from_name(plugin.as_str()), Some(plugin));
    }
    assert_eq!(Plugin::from_name("Coscheduling"), None);
}
