//! Objects for the tests of hints.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::object::identity::NodeName;
use crate::object::node::NodeView;

use super::super::event::{Change, Object};
use super::super::facts::{NodeFacts, PodFacts};

/// A pending pod.
pub(super) fn pod_named(name: &str) -> PodFacts {
    PodFacts::from_view(&crate::testing::pod(name).view())
}

/// An assigned pod.
pub(super) fn assigned(name: &str, adapt: impl FnOnce(&mut PodFacts)) -> PodFacts {
    let mut pod = pod_named(name);
    pod.node_name = Some(NodeName::from("node"));
    adapt(&mut pod);
    pod
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
    let mut node = NodeFacts::default();
    adapt(&mut node.view);
    node
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
