//! Removing fields and items from an object.

use serde_json::{Map, Value};

use super::super::atom::Atom;
use super::super::path::PathElement;
use super::super::set::FieldSet;

/// The object without these fields and items; null if the result is empty.
pub(in super::super) fn remove(atom: Atom, value: &Value, gone: &FieldSet) -> Value {
    if let Atom::Scalar(_) = atom {
        return value.clone();
    }
    if atom.is_leaf() {
        // Called only if there are members to remove within; a leaf is removed as a whole.
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
