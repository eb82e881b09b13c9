//! Walking objects by their type: listing fields, comparing, merging, removing.
//!
//! Matches v1.36 vendor/sigs.k8s.io/structured-merge-diff/v6/typed. The objects have been
//! validated, so nothing here fails.

mod compare;
mod merge;
mod remove;

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::atom::Atom;
use super::path::PathElement;
use super::set::FieldSet;

pub(super) use compare::{Comparison, compare};
pub(super) use merge::merge;
pub(super) use remove::remove;

/// The leaves and items of an object.
pub(super) fn fields_of(atom: Atom, value: &Value) -> FieldSet {
    let mut set = FieldSet::default();
    if atom.is_leaf() {
        return set;
    }
    match value {
        Value::Array(items) => {
            let Some(inner) = atom.item() else { return set };
            for (element, same) in group(atom, items).1 {
                // Items that share a key are owned as one.
                if let [only] = same.as_slice() {
                    set.put_within(&element, fields_of(inner, only));
                }
                set.members.insert(element);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                let Some(inner) = atom.member(name) else {
                    continue;
                };
                let element = PathElement::Field(name.clone());
                set.put_within(&element, fields_of(inner, member));
                let is_empty = match member {
                    Value::Null => true,
                    Value::Object(map) => map.is_empty(),
                    _ => false,
                };
                if inner.is_leaf() || is_empty || !atom.has_field(name) {
                    set.members.insert(element);
                }
            }
        }
        _ => {}
    }
    set
}

/// The items of a list by name, and the names in order of appearance (once per item).
pub(super) fn group(
    atom: Atom,
    items: &[Value],
) -> (Vec<PathElement>, BTreeMap<PathElement, Vec<&Value>>) {
    let mut order = Vec::with_capacity(items.len());
    let mut groups: BTreeMap<PathElement, Vec<&Value>> = BTreeMap::new();
    for item in items {
        if let Ok(element) = atom.element(item) {
            order.push(element.clone());
            groups.entry(element).or_default().push(item);
        }
    }
    (order, groups)
}

/// Absent, null, or an empty list or object.
pub(super) fn is_hollow(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::Array(items)) => items.is_empty(),
        Some(Value::Object(members)) => members.is_empty(),
        Some(_) => true,
    }
}

pub(super) fn items_of(value: Option<&Value>) -> &[Value] {
    value
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
}

pub(super) fn member_of<'a>(value: Option<&'a Value>, name: &str) -> Option<&'a Value> {
    value.and_then(|value| value.get(name))
}

/// The names of both, each once: those of the left, then those only in the right.
pub(super) fn names_of<'a>(
    left: Option<&'a Value>,
    right: Option<&'a Value>,
) -> impl Iterator<Item = &'a String> {
    let members = |value: Option<&'a Value>| value.and_then(Value::as_object);
    let (left, right) = (members(left), members(right));
    let only_right = right.into_iter().flat_map(Map::keys);
    let only_right =
        only_right.filter(move |name| !left.is_some_and(|left| left.contains_key(*name)));
    left.into_iter().flat_map(Map::keys).chain(only_right)
}

/// Adapts a set from an older table: what now has one owner is owned as a whole.
pub(super) fn reconcile(atom: Atom, set: FieldSet) -> FieldSet {
    let mut out = FieldSet {
        members: set.members,
        children: BTreeMap::new(),
    };
    for (element, within) in set.children {
        let inner = match &element {
            PathElement::Field(name) => atom.member(name),
            _ => atom.item(),
        };
        match inner {
            Some(inner) if !matches!(inner, Atom::Scalar(_) | Atom::Any) && inner.is_leaf() => {
                out.members.insert(element);
            }
            Some(inner) => {
                out.children.insert(element, reconcile(inner, within));
            }
            None => {
                out.children.insert(element, within);
            }
        }
    }
    out
}
