//! Whether an object fits its type.
//!
//! Matches v1.36 vendor/sigs.k8s.io/structured-merge-diff/v6/typed/validate.go.

use std::collections::BTreeSet;

use serde_json::Value;

use super::atom::{Atom, Primitive};
use super::path::PathElement;
use crate::machinery::go::print;

/// Whether items with the same key may stand in one list. Objects that are stored may have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Duplicates {
    Allow,
    Refuse,
}

/// All that is wrong, in one text.
pub(super) fn validate(atom: Atom, value: &Value, duplicates: Duplicates) -> Result<(), String> {
    let mut errors = Vec::new();
    walk(atom, value, duplicates, "", &mut errors);
    match errors.as_slice() {
        [] => Ok(()),
        [one] => Err(one.clone()),
        many => Err(format!("errors:\n  {}", many.join("\n  "))),
    }
}

fn walk(atom: Atom, value: &Value, duplicates: Duplicates, path: &str, errors: &mut Vec<String>) {
    let mut refuse = |problem: String| errors.push(at(path, &problem));
    match (atom, value) {
        (Atom::Any, _) | (_, Value::Null) => {}
        (Atom::Scalar(primitive), _) => {
            if let Some(problem) = check_scalar(primitive, value) {
                refuse(problem);
            }
        }
        (Atom::List { .. }, Value::Array(items)) => {
            walk_list(atom, items, duplicates, path, errors);
        }
        (Atom::List { .. }, _) => refuse(format!("expected list, got {}", shown(value))),
        (_, Value::Object(members)) => {
            for (name, member) in members {
                let inner = format!("{path}{}", PathElement::Field(name.clone()));
                match atom.member(name) {
                    Some(atom) => walk(atom, member, duplicates, &inner, errors),
                    None => {
                        errors.push(at(&inner, "field not declared in schema"));
                        break;
                    }
                }
            }
        }
        _ => refuse(format!("expected map, got {}", shown(value))),
    }
}

fn walk_list(
    atom: Atom,
    items: &[Value],
    duplicates: Duplicates,
    path: &str,
    errors: &mut Vec<String>,
) {
    let Some(inner) = atom.item() else { return };
    let mut seen = BTreeSet::new();
    for (index, item) in (0_i64..).zip(items) {
        let element = if atom.is_leaf() {
            PathElement::Index(index)
        } else {
            match atom.element(item) {
                Ok(element) => element,
                Err(problem) => {
                    errors.push(at(path, &format!("element {index}: {problem}")));
                    return;
                }
            }
        };
        let is_new = seen.insert(element.clone());
        if !is_new && duplicates == Duplicates::Refuse {
            errors.push(at(path, &format!("duplicate entries for key {element}")));
        }
        walk(inner, item, duplicates, &format!("{path}{element}"), errors);
    }
}

fn at(path: &str, problem: &str) -> String {
    if path.is_empty() {
        problem.to_owned()
    } else {
        format!("{path}: {problem}")
    }
}

fn check_scalar(primitive: Primitive, value: &Value) -> Option<String> {
    let is_right = match primitive {
        Primitive::Numeric => value.is_number(),
        Primitive::String => value.is_string(),
        Primitive::Boolean => value.is_boolean(),
        Primitive::Untyped => !value.is_array() && !value.is_object(),
    };
    if is_right {
        return None;
    }
    Some(match primitive {
        Primitive::Numeric => format!(
            "expected numeric (int or float), got {}",
            print::type_of(value)
        ),
        Primitive::String => format!(
            "expected string, got &value.valueUnstructured{{Value:{}}}",
            print::go_syntax(value)
        ),
        Primitive::Boolean => format!("expected boolean, got {}", shown(value)),
        Primitive::Untyped => format!("expected any scalar, got {}", shown(value)),
    })
}

/// Go prints the value through a pointer to the struct that wraps it.
fn shown(value: &Value) -> String {
    format!("&{{{}}}", print::sprint(value))
}
