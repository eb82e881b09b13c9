//! Walking objects by their type: which fields they have, merging, comparing, removing.
//!
//! Matches v1.36 vendor/sigs.k8s.io/structured-merge-diff/v6/typed. The objects have been validated,
//! so nothing here fails.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::atom::Atom;
use super::path::{PathElement, is_equal};
use super::set::FieldSet;

/// The leaves and items that an object mentions.
pub(super) fn fields_of(atom: Atom, value: &Value) -> FieldSet {
    let mut set = FieldSet::default();
    collect(atom, value, &mut Vec::new(), &mut set);
    set
}

fn collect(atom: Atom, value: &Value, path: &mut Vec<PathElement>, set: &mut FieldSet) {
    if atom.is_leaf() {
        set.insert(path);
        return;
    }
    match value {
        Value::Array(items) => collect_items(atom, items, path, set),
        Value::Object(members) => {
            for (name, member) in members {
                let Some(inner) = atom.member(name) else {
                    continue;
                };
                path.push(PathElement::Field(name.clone()));
                collect(inner, member, path, set);
                let is_empty = match member {
                    Value::Null => true,
                    Value::Object(map) => map.is_empty(),
                    _ => false,
                };
                if is_empty || !atom.has_field(name) {
                    set.insert(path);
                }
                path.pop();
            }
        }
        _ => {}
    }
}

fn collect_items(atom: Atom, items: &[Value], path: &mut Vec<PathElement>, set: &mut FieldSet) {
    let Some(inner) = atom.item() else { return };
    for (element, same) in &group(atom, items).1 {
        path.push(element.clone());
        // Items that share a key are owned as one.
        if let [only] = same.as_slice() {
            collect(inner, only, path, set);
        }
        set.insert(path);
        path.pop();
    }
}

/// The items of a list by name, and the names in order of appearance (once per item).
fn group(atom: Atom, items: &[Value]) -> (Vec<PathElement>, BTreeMap<PathElement, Vec<&Value>>) {
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

/// What changes from one object to another.
#[derive(Clone, Debug, Default)]
pub(super) struct Comparison {
    pub(super) removed: FieldSet,
    pub(super) modified: FieldSet,
    pub(super) added: FieldSet,
}

/// Compares two objects of one type.
pub(super) fn compare(atom: Atom, left: &Value, right: &Value) -> Comparison {
    let mut comparison = Comparison::default();
    compare_at(
        atom,
        Some(left),
        Some(right),
        &mut Vec::new(),
        &mut comparison,
    );
    comparison
}

fn compare_at(
    atom: Atom,
    left: Option<&Value>,
    right: Option<&Value>,
    path: &mut Vec<PathElement>,
    out: &mut Comparison,
) {
    let is_leaf = atom.is_leaf() || (is_hollow(left) && is_hollow(right));
    if is_leaf {
        if let (Some(left), Some(right)) = (left, right) {
            if !is_equal(left, right) {
                out.modified.insert(path);
            }
            return;
        }
    } else if matches!(atom, Atom::List { .. }) {
        compare_items(atom, items_of(left), items_of(right), path, out);
    } else {
        for name in names_of(left, right) {
            let Some(inner) = atom.member(name) else {
                continue;
            };
            path.push(PathElement::Field(name.clone()));
            let member = |side: Option<&'_ Value>| side.and_then(|value| value.get(name)).cloned();
            let (left, right) = (member(left), member(right));
            compare_at(inner, left.as_ref(), right.as_ref(), path, out);
            path.pop();
        }
    }
    match (left, right) {
        (None, Some(_)) => out.added.insert(path),
        (Some(_), None) => out.removed.insert(path),
        _ => {}
    }
}

fn compare_items(
    atom: Atom,
    left: &[Value],
    right: &[Value],
    path: &mut Vec<PathElement>,
    out: &mut Comparison,
) {
    let Some(inner) = atom.item() else { return };
    let (_, left) = group(atom, left);
    let (_, right) = group(atom, right);
    let elements: BTreeSet<&PathElement> = left.keys().chain(right.keys()).collect();
    for element in elements {
        let left = left.get(element).map(Vec::as_slice).unwrap_or_default();
        let right = right.get(element).map(Vec::as_slice).unwrap_or_default();
        path.push(element.clone());
        match (left, right) {
            (left @ ([] | [_]), right @ ([] | [_])) => {
                compare_at(
                    inner,
                    left.first().copied(),
                    right.first().copied(),
                    path,
                    out,
                );
            }
            ([] | [_], _) => {
                if let Some(left) = left.first() {
                    compare_at(inner, Some(left), None, path, out);
                }
                out.added.insert(path);
            }
            (_, [] | [_]) => {
                if let Some(right) = right.first() {
                    compare_at(inner, None, Some(right), path, out);
                }
                out.removed.insert(path);
            }
            (left, right) => {
                let is_same = left.len() == right.len()
                    && left
                        .iter()
                        .zip(right)
                        .all(|(left, right)| is_equal(left, right));
                if !is_same {
                    out.modified.insert(path);
                }
            }
        }
        path.pop();
    }
}

/// Nothing, null, or a list or object that is empty.
fn is_hollow(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::Array(items)) => items.is_empty(),
        Some(Value::Object(members)) => members.is_empty(),
        Some(_) => true,
    }
}

fn items_of(value: Option<&Value>) -> &[Value] {
    value
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
}

fn names_of<'a>(left: Option<&'a Value>, right: Option<&'a Value>) -> BTreeSet<&'a String> {
    [left, right]
        .into_iter()
        .flatten()
        .filter_map(Value::as_object)
        .flat_map(Map::keys)
        .collect()
}

/// Puts `right` over `left`; nothing is removed. `None` where nothing is left.
pub(super) fn merge(atom: Atom, left: Option<&Value>, right: Option<&Value>) -> Option<Value> {
    if atom.is_leaf() || (is_hollow(left) && is_hollow(right)) {
        return right.or(left).cloned();
    }
    if matches!(atom, Atom::List { .. }) {
        return merge_items(atom, items_of(left), items_of(right));
    }
    let mut out = Map::new();
    for name in names_of(left, right) {
        let member = |side: Option<&'_ Value>| side.and_then(|value| value.get(name)).cloned();
        let (left, right) = (member(left), member(right));
        let merged = match atom.member(name) {
            Some(inner) => merge(inner, left.as_ref(), right.as_ref()),
            None => right.or(left),
        };
        if let Some(merged) = merged {
            out.insert(name.clone(), merged);
        }
    }
    (!out.is_empty()).then_some(Value::Object(out))
}

/// Shared items stand in the right list's order; what only the left has keeps its place among them.
fn merge_items(atom: Atom, left: &[Value], right: &[Value]) -> Option<Value> {
    let inner = atom.item()?;
    let (left_order, left_groups) = group(atom, left);
    let (right_order, right_groups) = group(atom, right);
    let left_item = |element: &PathElement| match left_groups.get(element).map(Vec::as_slice) {
        None => None,
        Some([only]) => Some((*only).clone()),
        // Items that share a key are not merged with the one that replaces them.
        Some(_) => Some(Value::Null),
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
                out.extend(merge(
                    inner,
                    left_item(element).as_ref(),
                    right_item(element),
                ));
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
            out.extend(merge(
                inner,
                left_item(element).as_ref(),
                right_item(element),
            ));
            r += 1;
            if next_shared == Some(element) {
                next_shared = shared.next();
            }
        }
    }
    (!out.is_empty()).then_some(Value::Array(out))
}

/// The object without these fields and items; null where nothing is left.
pub(super) fn remove(atom: Atom, value: &Value, gone: &FieldSet) -> Value {
    if let Atom::Scalar(_) = atom {
        return value.clone();
    }
    if atom.is_leaf() {
        // Only called for what has members to be removed within; a leaf goes as a whole.
        return Value::Null;
    }
    match value {
        Value::Array(items) => {
            let Some(inner) = atom.item() else {
                return Value::Null;
            };
            let kept: Vec<Value> = items
                .iter()
                .filter_map(|item| {
                    let Ok(element) = atom.element(item) else {
                        return Some(item.clone());
                    };
                    remove_one(inner, item, gone, &element)
                })
                .collect();
            if kept.is_empty() {
                Value::Null
            } else {
                Value::Array(kept)
            }
        }
        Value::Object(members) => {
            let kept: Map<String, Value> = members
                .iter()
                .filter_map(|(name, member)| {
                    let element = PathElement::Field(name.clone());
                    let kept = match atom.member(name) {
                        Some(inner) => remove_one(inner, member, gone, &element)?,
                        None => member.clone(),
                    };
                    Some((name.clone(), kept))
                })
                .collect();
            if kept.is_empty() {
                Value::Null
            } else {
                Value::Object(kept)
            }
        }
        _ => Value::Null,
    }
}

fn remove_one(atom: Atom, value: &Value, gone: &FieldSet, element: &PathElement) -> Option<Value> {
    if gone.members.contains(element) {
        return None;
    }
    match gone.within(element) {
        Some(within) if !within.is_empty() => Some(remove(atom, value, within)),
        _ => Some(value.clone()),
    }
}

/// A set made for an older table: what has become one owner's whole is owned as a whole.
pub(super) fn reconcile(atom: Atom, set: &FieldSet) -> FieldSet {
    let mut out = FieldSet {
        members: set.members.clone(),
        children: BTreeMap::new(),
    };
    for (element, within) in &set.children {
        let inner = match element {
            PathElement::Field(name) => atom.member(name),
            _ => atom.item(),
        };
        match inner {
            Some(inner) if !matches!(inner, Atom::Scalar(_) | Atom::Any) && inner.is_leaf() => {
                out.members.insert(element.clone());
            }
            Some(inner) => {
                out.children
                    .insert(element.clone(), reconcile(inner, within));
            }
            None => {
                out.children.insert(element.clone(), within.clone());
            }
        }
    }
    out
}
