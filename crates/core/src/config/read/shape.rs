//! Which type of value a field takes.

use crate::duration::Duration;
use crate::problem::{Problem, quoted};
use crate::quantity::Quantity;

use super::super::document::{Content, Node, ScalarValue, child_path, item_path};
use super::super::effect::Effect;
use super::suggest::did_you_mean;

/// A field and the type of its value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    pub(crate) path: &'static str,
    pub(crate) shape: Shape,
    pub(crate) effect: Effect,
    /// The value that holds where the field is not set, for the reference; empty for none.
    pub(crate) default: &'static str,
}

/// The type of a value. Null is taken by every type and means that nothing is set.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape {
    Bool,
    Int32,
    Int64,
    Float,
    Text,
    Duration,
    /// A duration, or a number of nanoseconds.
    DurationOrNanos,
    Quantity,
    TextList,
    IntList,
    TextMap,
    BoolMap,
    QuantityMap,
    TextListMap,
    /// An object with these fields.
    Record(&'static [Field]),
    /// A list of such objects.
    Records(&'static [Field]),
    /// Any value; another reader checks it.
    Any,
}

impl Field {
    /// A field that is applied.
    pub(crate) const fn new(path: &'static str, shape: Shape) -> Field {
        Field {
            path,
            shape,
            effect: Effect::Applied,
            default: "",
        }
    }

    /// The same with a default.
    pub(crate) const fn or(self, default: &'static str) -> Field {
        Field { default, ..self }
    }

    /// The same, decided by a flag of `plimsoll node`.
    pub(crate) const fn as_flag(self, flag: &'static str) -> Field {
        let effect = Effect::Flag(flag);
        Field { effect, ..self }
    }

    /// The same, with no other values than these.
    pub(crate) const fn only(
        self,
        accepted: &'static [&'static str],
        reason: &'static str,
    ) -> Field {
        let effect = Effect::Only { accepted, reason };
        Field { effect, ..self }
    }

    /// The same, without an effect.
    pub(crate) const fn without_effect(self, reason: &'static str) -> Field {
        let effect = Effect::None { reason };
        Field { effect, ..self }
    }
}

impl Shape {
    /// The type and unit of the values, for the reference.
    pub(crate) fn unit(self) -> &'static str {
        match self {
            Shape::Bool => "true or false",
            Shape::Int32 | Shape::Int64 => "whole number",
            Shape::Float => "number",
            Shape::Text => "text",
            Shape::Duration => "duration",
            Shape::DurationOrNanos => "duration, or nanoseconds",
            Shape::Quantity => "quantity",
            Shape::TextList => "list of texts",
            Shape::IntList => "list of numbers",
            Shape::TextMap => "map of texts",
            Shape::BoolMap => "map of true or false",
            Shape::QuantityMap => "map of quantities",
            Shape::TextListMap => "map of lists of texts",
            Shape::Record(_) => "object",
            Shape::Records(_) => "list of objects",
            Shape::Any => "any",
        }
    }

    /// Reports where the value is not of the type, and returns whether it is.
    pub(crate) fn check(self, node: &Node, path: &str, problems: &mut Vec<Problem>) -> bool {
        let before = problems.len();
        self.check_into(node, path, problems);
        problems.len() == before
    }

    fn check_into(self, node: &Node, path: &str, problems: &mut Vec<Problem>) {
        if node.is_null() {
            return;
        }
        match self {
            Shape::TextList => check_items(node, Shape::Text, path, problems),
            Shape::IntList => check_items(node, Shape::Int32, path, problems),
            Shape::TextMap => check_values(node, Shape::Text, path, problems),
            Shape::BoolMap => check_values(node, Shape::Bool, path, problems),
            Shape::QuantityMap => check_values(node, Shape::Quantity, path, problems),
            Shape::TextListMap => check_values(node, Shape::TextList, path, problems),
            Shape::Record(fields) => check_record(node, fields, path, problems),
            Shape::Records(fields) => check_records(node, fields, path, problems),
            scalar => {
                if let Err(problem) = scalar.check_scalar(node, path) {
                    problems.push(problem.at(Some(node.position)));
                }
            }
        }
    }

    fn check_scalar(self, node: &Node, path: &str) -> Result<(), Problem> {
        let value = node.as_scalar();
        let integer = value.and_then(ScalarValue::as_integer);
        let fits = match self {
            Shape::Bool => matches!(value, Some(ScalarValue::Bool(_))),
            Shape::Int32 => integer.is_some_and(|number| i32::try_from(number).is_ok()),
            Shape::Int64 => integer.is_some(),
            Shape::Float => value.and_then(ScalarValue::as_float).is_some(),
            Shape::Text => node.as_text().is_some(),
            Shape::DurationOrNanos if integer.is_some() => true,
            Shape::Duration | Shape::DurationOrNanos => return check_duration(node, path),
            Shape::Quantity => return check_quantity(node, path),
            _ => true,
        };
        if fits {
            return Ok(());
        }
        Err(wrong_type(node, path, self.expectation()))
    }

    fn expectation(self) -> &'static str {
        match self {
            Shape::Bool => "must be true or false",
            Shape::Int32 => "must be a whole number of 32 bits",
            Shape::Int64 => "must be a whole number of 64 bits",
            Shape::Float => "must be a number",
            Shape::Text => "must be a text; put it in quotes",
            Shape::Duration | Shape::DurationOrNanos => "must be a duration such as \"5m\"",
            Shape::Quantity => "must be a quantity such as \"500Mi\"",
            Shape::TextList | Shape::IntList | Shape::Records(_) => "must be a list",
            _ => "must be a mapping",
        }
    }
}

/// The problem that a value is of another type than it should be.
pub(crate) fn wrong_type(node: &Node, path: &str, expectation: &str) -> Problem {
    let shown = match &node.content {
        Content::Scalar {
            text,
            value: ScalarValue::Text,
        } => quoted(text),
        Content::Scalar { text, .. } => text.clone(),
        _ => node.describe(),
    };
    Problem::wrong_type(path, shown, expectation).at(Some(node.position))
}

fn check_duration(node: &Node, path: &str) -> Result<(), Problem> {
    let Some(text) = node.as_text() else {
        return Err(wrong_type(node, path, Shape::Duration.expectation()));
    };
    match text.parse::<Duration>() {
        Ok(_) => Ok(()),
        Err(error) => Err(Problem::invalid(path, text, error.to_string())),
    }
}

/// A quantity may be written as a bare number.
fn check_quantity(node: &Node, path: &str) -> Result<(), Problem> {
    let text = match &node.content {
        Content::Scalar {
            value: ScalarValue::Bool(_),
            ..
        } => None,
        Content::Scalar { text, .. } => Some(text),
        _ => None,
    };
    let Some(text) = text else {
        return Err(wrong_type(node, path, Shape::Quantity.expectation()));
    };
    match text.parse::<Quantity>() {
        Ok(_) => Ok(()),
        Err(error) => Err(Problem::invalid(path, text, error.to_string())),
    }
}

fn check_items(node: &Node, shape: Shape, path: &str, problems: &mut Vec<Problem>) {
    let Some(items) = node.as_sequence() else {
        problems.push(wrong_type(node, path, Shape::TextList.expectation()));
        return;
    };
    for (index, item) in items.iter().enumerate() {
        shape.check_into(item, &item_path(path, index), problems);
    }
}

fn check_values(node: &Node, shape: Shape, path: &str, problems: &mut Vec<Problem>) {
    let Some(entries) = node.as_mapping() else {
        problems.push(wrong_type(node, path, Shape::TextMap.expectation()));
        return;
    };
    node.report_duplicate_keys(path, problems);
    for entry in entries {
        shape.check_into(&entry.value, &child_path(path, &entry.key), problems);
    }
}

fn check_records(node: &Node, fields: &[Field], path: &str, problems: &mut Vec<Problem>) {
    let Some(items) = node.as_sequence() else {
        problems.push(wrong_type(node, path, Shape::TextList.expectation()));
        return;
    };
    for (index, item) in items.iter().enumerate() {
        check_record(item, fields, &item_path(path, index), problems);
    }
}

fn check_record(node: &Node, fields: &[Field], path: &str, problems: &mut Vec<Problem>) {
    let Some(entries) = node.as_mapping() else {
        problems.push(wrong_type(node, path, "must be a mapping"));
        return;
    };
    node.report_duplicate_keys(path, problems);
    for entry in entries {
        let path = child_path(path, &entry.key);
        match fields.iter().find(|field| field.path == entry.key) {
            Some(field) => field.shape.check_into(&entry.value, &path, problems),
            None => {
                let names = fields.iter().map(|field| field.path);
                let problem = Problem::unknown(path, did_you_mean(&entry.key, names));
                problems.push(problem.at(Some(entry.key_position)));
            }
        }
    }
}
