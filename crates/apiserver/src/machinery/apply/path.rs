//! The path of a field: names, list items by key or value.

use std::cmp::Ordering;
use std::fmt;

use plimsoll_core::problem::quoted;
use serde_json::{Map, Value};

use crate::machinery::go::print;

/// One element of a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PathElement {
    /// A member of an object.
    Field(String),
    /// The list item whose key fields have these values; sorted by name.
    Key(Vec<(String, Scalar)>),
    /// The list item of this value.
    Value(Scalar),
    /// The list item at this index.
    Index(i64),
}

/// A JSON value with an order: numbers, texts, booleans, lists, objects, null.
#[derive(Clone, Debug)]
pub struct Scalar(pub Value);

impl PartialEq for Scalar {
    fn eq(&self, other: &Scalar) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Scalar {}

impl PartialOrd for Scalar {
    fn partial_cmp(&self, other: &Scalar) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Scalar {
    fn cmp(&self, other: &Scalar) -> Ordering {
        compare(&self.0, &other.0)
    }
}

/// Orders values of all types. Numbers compare as numbers, however they are written.
pub(super) fn compare(left: &Value, right: &Value) -> Ordering {
    let rank = |value: &Value| match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    };
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => match (left.as_i64(), right.as_i64()) {
            (Some(left), Some(right)) => left.cmp(&right),
            _ => {
                let float = |n: &serde_json::Number| n.as_f64().unwrap_or(f64::INFINITY);
                float(left).total_cmp(&float(right))
            }
        },
        (Value::String(left), Value::String(right)) => left.cmp(right),
        (Value::Bool(left), Value::Bool(right)) => left.cmp(right),
        (Value::Array(left), Value::Array(right)) => {
            let items = left.iter().zip(right).map(|(l, r)| compare(l, r));
            first_difference(items).then(left.len().cmp(&right.len()))
        }
        (Value::Object(left), Value::Object(right)) => {
            let members = left
                .iter()
                .zip(right)
                .map(|((lk, lv), (rk, rv))| lk.cmp(rk).then_with(|| compare(lv, rv)));
            first_difference(members).then(left.len().cmp(&right.len()))
        }
        _ => rank(left).cmp(&rank(right)),
    }
}

fn first_difference(mut orders: impl Iterator<Item = Ordering>) -> Ordering {
    orders
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}

/// Whether two values are equal for server-side apply.
pub(super) fn is_equal(left: &Value, right: &Value) -> bool {
    compare(left, right).is_eq()
}

impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PathElement::Field(name) => write!(f, ".{name}"),
            PathElement::Key(fields) => {
                f.write_str("[")?;
                for (index, (name, value)) in fields.iter().enumerate() {
                    let comma = if index > 0 { "," } else { "" };
                    write!(f, "{comma}{name}={}", show(&value.0))?;
                }
                f.write_str("]")
            }
            PathElement::Value(value) => write!(f, "[={}]", show(&value.0)),
            PathElement::Index(index) => write!(f, "[{index}]"),
        }
    }
}

fn show(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::String(text) => quoted(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(show).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(members) => members
            .iter()
            .map(|(key, value)| format!("{key}={}", show(value)))
            .collect(),
        scalar => print::sprint(scalar),
    }
}

/// The path in readable form: `.spec.containers[name="a"].image`.
pub(super) fn show_path(path: &[PathElement]) -> String {
    path.iter().map(PathElement::to_string).collect()
}

impl PathElement {
    /// The element as a key of FieldsV1: `f:spec`, `k:{"name":"a"}`, `v:"x"`, `i:0`.
    pub(super) fn render(&self) -> String {
        match self {
            PathElement::Field(name) => format!("f:{name}"),
            PathElement::Key(fields) => {
                let fields: Map<String, Value> = fields
                    .iter()
                    .map(|(name, value)| (name.clone(), value.0.clone()))
                    .collect();
                format!("k:{}", print::json(&Value::Object(fields)))
            }
            PathElement::Value(value) => format!("v:{}", print::json(&value.0)),
            PathElement::Index(index) => format!("i:{index}"),
        }
    }

    /// Parses a key of FieldsV1. `Ok(None)` is a type of element that this version does not know.
    pub(super) fn parse(text: &str) -> Result<Option<PathElement>, String> {
        let Some((sort, rest)) = text.split_at_checked(2) else {
            return Err("key must be 2 characters long:".to_owned());
        };
        if !sort.ends_with(':') {
            return Err(format!("missing colon: {text}"));
        }
        let read = |json: &str| serde_json::from_str(json).map_err(|error| error.to_string());
        Ok(Some(match sort {
            "f:" => PathElement::Field(rest.to_owned()),
            "v:" => PathElement::Value(Scalar(read(rest)?)),
            "k:" => match read(rest)? {
                Value::Object(fields) => PathElement::Key(
                    fields
                        .into_iter()
                        .map(|(name, value)| (name, Scalar(value)))
                        .collect(),
                ),
                _ => return Err(format!("no object: {rest}")),
            },
            "i:" => PathElement::Index(rest.parse().map_err(|_| format!("no number: {rest}"))?),
            _ => return Ok(None),
        }))
    }
}
