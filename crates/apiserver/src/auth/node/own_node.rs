//! What a kubelet may change in its own Node object: nothing that attracts pods to it.

use std::collections::BTreeSet;

use plimsoll_core::config::may_label_itself;
use plimsoll_core::problem::quoted;
use serde_json::Value;

use super::restriction::{Denial, Operation, Write, deny, same};

/// Whether the kubelet of the node called `name` may write this node.
pub(super) fn check_own_node(name: &str, write: &Write<'_>) -> Result<(), Denial> {
    let node = quoted(name);
    if write.name != name {
        let other = quoted(write.name);
        return deny(format!("node {node} is not allowed to modify node {other}"));
    }
    let (old, new) = (write.old, write.object);
    let has_source = !new["spec"]["configSource"].is_null();
    let labels = forbidden_labels(old, new).join(", ");
    match write.operation {
        Operation::Create if has_source => deny(format!(
            "node {node} is not allowed to create pods with a non-nil configSource"
        )),
        Operation::Create if !labels.is_empty() => deny(format!(
            "node {node} is not allowed to set the following labels: {labels}"
        )),
        Operation::Update if has_source && !same(old, new, "/spec/configSource") => deny(format!(
            "node {node} is not allowed to update configSource to a new non-nil configSource"
        )),
        Operation::Update if !same(old, new, "/spec/taints") => {
            deny(format!("node {node} is not allowed to modify taints"))
        }
        Operation::Update if !same(old, new, "/metadata/ownerReferences") => deny(format!(
            "node {node} is not allowed to modify ownerReferences"
        )),
        Operation::Update if !labels.is_empty() => {
            deny(format!("is not allowed to modify labels: {labels}"))
        }
        _ => Ok(()),
    }
}

/// The labels that differ and that a kubelet must not set.
fn forbidden_labels<'a>(old: &'a Value, new: &'a Value) -> Vec<&'a str> {
    let labels = |object: &'a Value| {
        object
            .pointer("/metadata/labels")
            .and_then(Value::as_object)
    };
    let (old, new) = (labels(old), labels(new));
    let keys = old.into_iter().chain(new).flat_map(|labels| labels.keys());
    let keys: BTreeSet<&String> = keys.collect();
    let differs = |key: &str| old.and_then(|l| l.get(key)) != new.and_then(|l| l.get(key));
    let changed = keys.into_iter().filter(|key| differs(key));
    changed
        .map(String::as_str)
        .filter(|key| is_forbidden(key))
        .collect()
}

fn is_forbidden(label: &str) -> bool {
    let prefix = label.split_once('/').map_or("", |(prefix, _)| prefix);
    let rest = prefix.strip_suffix("node-restriction.kubernetes.io");
    let is_restricted = rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    is_restricted || !may_label_itself(label)
}
