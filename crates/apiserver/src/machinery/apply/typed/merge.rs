//! Merging one object into another.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::super::atom::Atom;
use super::super::path::PathElement;
use super::{group, is_hollow, items_of, member_of, names_of};

/// Merges `right` into `left`; nothing is removed. `None` if the result is empty.
pub(in super::super) fn merge(
    atom: Atom,
    left: Option<&Value>,
    right: Option<&Value>,
) -> Option<Value> {
    if atom.is_leaf() || (is_hollow(left) && is_hollow(right)) {
        return right.or(left).cloned();
    }
    if matches!(atom, Atom::List { .. }) {
        return merge_items(atom, items_of(left), items_of(right));
    }
    let mut out = Map::new();
    for name in names_of(left, right) {
        let (left, right) = (member_of(left, name), member_of(right, name));
        let merged = match atom.member(name) {
            Some(inner) => merge(inner, left, right),
            None => right.or(left).cloned(),
        };
        if let Some(merged) = merged {
            out.insert(name.clone(), merged);
        }
    }
    (!out.is_empty()).then_some(Value::Object(out))
}

/// Shared items are in the right list's order; those only in the left one keep their place among
/// them.
fn merge_items(atom: Atom, left: &[Value], right: &[Value]) -> Option<Value> {
    let inner = atom.item()?;
    let (left_order, left_groups) = group(atom, left);
    let (right_order, right_groups) = group(atom, right);
    let left_item = |element: &PathElement| match left_groups.get(element).map(Vec::as_slice) {
        None => None,
        Some([only]) => Some(*only),
        // Items that share a key are not merged with the one that replaces them.
        Some(_) => Some(&Value::Null),
    };
    let right_item = |element: &PathElement| right_groups.get(element)?.first().copied();
    let mut shared = right_order
        .iter()
        .filter(|element| left_groups.contains_key(element));
    let mut next_shared = shared.next();
    let mut merged: BTreeSet<&PathElement> = BTreeSet::new();
    let mut out = Vec::new();
    let (mut l, mut r) = (0, 0);
    while l < left_order.len() || r < right_order.len() {
        if let (Some(element), Some(other)) = (left_order.get(l), right_order.get(r)) {
            if element == other {
                merged.insert(element);
                out.extend(merge(inner, left_item(element), right_item(element)));
                (l, r) = (l + 1, r + 1);
                next_shared = shared.next();
                continue;
            }
            let waits = right_groups.contains_key(element)
                && next_shared.is_some_and(|next| next != element);
            if waits {
                l += 1;
                continue;
            }
        }
        if let Some(element) = left_order.get(l) {
            if !right_groups.contains_key(element) {
                out.extend(merge(inner, left.get(l), None));
                l += 1;
                continue;
            }
            if merged.contains(element) {
                l += 1;
            }
        }
        if let Some(element) = right_order.get(r) {
            merged.insert(element);
            out.extend(merge(inner, left_item(element), right_item(element)));
            r += 1;
            if next_shared == Some(element) {
                next_shared = shared.next();
            }
        }
    }
    (!out.is_empty()).then_some(Value::Array(out))
}
