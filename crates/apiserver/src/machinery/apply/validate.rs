//! Validation of an object against its type.
//!
//! Matches v1.36 vendor/sigs.k8s.io/structured-merge-diff/v6/typed/validate.go.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::atom::{Atom, Primitive};
use super::path::PathElement;
use crate::machinery::go::print;

/// Whether items with the same key may be in one list. Stored objects may have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Duplicates {
    Allow,
    Refuse,
}

/// A problem and its path, written from the inside out: most objects have none.
struct Wrong {
    path: String,
    problem: String,
}

impl Wrong {
    fn here(problem: String) -> Wrong {
        Wrong {
            path: String::new(),
            problem,
        }
    }

    fn show(&self) -> String {
        if self.path.is_empty() {
            self.problem.clone()
        } else {
            format!("{}: {}", self.path, self.problem)
        }
    }
}

/// All problems, in one text.
pub(super) fn validate(atom: Atom, value: &Value, duplicates: Duplicates) -> Result<(), String> {
    let wrong: Vec<String> = walk(atom, value, duplicates)
        .iter()
        .map(Wrong::show)
        .collect();
    match wrong.as_slice() {
        [] => Ok(()),
        [one] => Err(one.clone()),
        many => Err(format!("errors:\n  {}", many.join("\n  "))),
    }
}

fn walk(atom: Atom, value: &Value, duplicates: Duplicates) -> Vec<Wrong> {
    let problem = match (atom, value) {
        (Atom::Any, _) | (_, Value::Null) => None,
        (Atom::Scalar(primitive), _) => check_scalar(primitive, value),
        (Atom::List { .. }, Value::Array(items)) => return walk_list(atom, items, duplicates),
        (Atom::List { .. }, _) => Some(format!("expected list, got {}", shown(value))),
        (_, Value::Object(members)) => return walk_members(atom, members, duplicates),
        _ => Some(format!("expected map, got {}", shown(value))),
    };
    problem.map(Wrong::here).into_iter().collect()
}

fn walk_members(atom: Atom, members: &Map<String, Value>, duplicates: Duplicates) -> Vec<Wrong> {
    let mut wrong = Vec::new();
    for (name, member) in members {
        let Some(inner) = atom.member(name) else {
            wrong.push(Wrong {
                path: format!(".{name}"),
                problem: "field not declared in schema".to_owned(),
            });
            // Upstream looks no further in this object.
            break;
        };
        for mut problem in walk(inner, member, duplicates) {
            problem.path = format!(".{name}{}", problem.path);
            wrong.push(problem);
        }
    }
    wrong
}

fn walk_list(atom: Atom, items: &[Value], duplicates: Duplicates) -> Vec<Wrong> {
    let mut wrong = Vec::new();
    let Some(inner) = atom.item() else {
        return wrong;
    };
    let mut seen = BTreeSet::new();
    for (index, item) in (0_i64..).zip(items) {
        let element = if atom.is_leaf() {
            PathElement::Index(index)
        } else {
            match atom.element(item) {
                Ok(element) => element,
                Err(problem) => {
                    wrong.push(Wrong::here(format!("element {index}: {problem}")));
                    return wrong;
                }
            }
        };
        if duplicates == Duplicates::Refuse && !seen.insert(element.clone()) {
            wrong.push(Wrong::here(format!("duplicate entries for key {element}")));
        }
        for mut problem in walk(inner, item, duplicates) {
            problem.path = format!("{element}{}", problem.path);
            wrong.push(problem);
        }
    }
    wrong
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
