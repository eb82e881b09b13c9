//! Mistakes of decoding, and causes of a rejection, as problems.

use plimsoll_core::config::document::{Node, ScalarValue};
use plimsoll_core::config::{closest, did_you_mean};
use plimsoll_core::problem::{Kind, Problem, quoted};
use plimsoll_core::quantity::Quantity;
use serde_json::Value;

use crate::machinery::decoding::{Mistake, MistakeKind};
use crate::machinery::schema::{Shape, Struct, Type, schema};
use crate::status::Cause;

/// The mistake with its place in the document.
pub(super) fn problem(tree: &Node, mistake: &Mistake) -> Problem {
    let path = mistake.path.as_str();
    let place = tree.locate(path);
    let at_value = Some(place.position());
    let at_key = Some(place.key_position());
    match mistake.kind {
        MistakeKind::WrongType(ty) => {
            Problem::wrong_type(path, shown(place.node), expectation(ty)).at(at_value)
        }
        MistakeKind::Malformed(ty) => malformed(path, place.node, ty).at(at_value),
        MistakeKind::Unknown(fields) => {
            Problem::unknown(path, suggestion(last_name(path), fields)).at(at_key)
        }
        MistakeKind::Duplicate => {
            let first = tree.locate_first(path).key_position().line;
            Problem::duplicate(path, last_name(path))
                .with_detail(format!("the key is already set in line {first}"))
                .at(at_key)
        }
    }
}

/// The path whose value validation misses because of the mistake.
pub(super) fn absent_path(tree: &Node, mistake: &Mistake) -> Option<String> {
    match mistake.kind {
        MistakeKind::WrongType(_) | MistakeKind::Malformed(_) => Some(mistake.path.clone()),
        MistakeKind::Unknown(fields) => {
            let name = last_name(&mistake.path);
            let meant = closest_field(name, fields)?;
            let parent = mistake.path.strip_suffix(name)?;
            let meant = format!("{parent}{meant}");
            (!tree.locate(&meant).is_exact).then_some(meant)
        }
        MistakeKind::Duplicate => None,
    }
}

/// The name of the field at the end of a path. Fields have no dots, but unknown ones may.
fn last_name(path: &str) -> &str {
    let name = path.rsplit('.').next().unwrap_or(path);
    match name.rfind('[') {
        Some(start) if name.ends_with(']') => &name[start + 1..name.len() - 1],
        _ => name,
    }
}

fn closest_field(name: &str, fields: &Struct) -> Option<&'static str> {
    let names = fields.fields.iter().map(|field| field.name);
    closest(name, names)
}

/// A field of a similar name; else where a field of that name belongs.
fn suggestion(name: &str, fields: &'static Struct) -> String {
    let names = fields.fields.iter().map(|field| field.name);
    let similar = did_you_mean(name, names);
    if !similar.is_empty() {
        return similar;
    }
    match nested_field(name, fields) {
        Some(inside) => format!(
            "{} has no such field; did you mean {inside:?}?",
            fields.name
        ),
        None => format!("{} has no such field", fields.name),
    }
}

/// The field of that name one level below, as `limits` is in `resources`.
fn nested_field(name: &str, fields: &'static Struct) -> Option<String> {
    let mut inside = fields.fields.iter().filter_map(|field| {
        let Shape::Struct(id) = field.ty.pointee().shape else {
            return None;
        };
        let below = schema().get(id);
        below.field(name).map(|_| format!("{}.{name}", field.name))
    });
    let first = inside.next()?;
    // Which one is meant is not known if there are several.
    inside.next().is_none().then_some(first)
}

fn shown(node: &Node) -> String {
    match (node.as_text(), node.as_scalar()) {
        (Some(text), _) => quoted(text),
        (None, Some(ScalarValue::Null)) => "null".to_owned(),
        (None, Some(_)) => node.scalar_text().unwrap_or_default().to_owned(),
        (None, None) => node.describe(),
    }
}

fn malformed(path: &str, node: &Node, ty: &Type) -> Problem {
    let text = node.scalar_text().unwrap_or_default();
    match ty.shape {
        Shape::Quantity => match text.parse::<Quantity>() {
            Err(error) if node.as_scalar().is_some() => {
                Problem::invalid(path, text, error.to_string())
            }
            _ => Problem::wrong_type(path, shown(node), expectation(ty)),
        },
        _ => Problem::wrong_type(path, shown(node), expectation(ty)),
    }
}

/// What a value of the type is.
fn expectation(ty: &Type) -> String {
    match &ty.pointee().shape {
        Shape::Bool => "must be true or false".to_owned(),
        Shape::Int(bits) => format!("must be a whole number of {bits} bits"),
        Shape::Float => "must be a number".to_owned(),
        Shape::String => "must be a string; put it in quotes".to_owned(),
        Shape::Bytes => "must be base64-encoded text".to_owned(),
        Shape::Quantity => "must be a quantity such as \"500Mi\" or \"250m\"".to_owned(),
        Shape::IntOrString => "must be a whole number or a string".to_owned(),
        Shape::Time | Shape::MicroTime => {
            "must be a time such as \"2006-01-02T15:04:05Z\"".to_owned()
        }
        Shape::List(item) => format!("must be a list of {}", plural(item)),
        Shape::Map(of) => format!("must be a mapping of names to {}", plural(of)),
        Shape::Struct(id) => format!("must be a mapping: {}", schema().get(*id).name),
        Shape::Raw | Shape::Pointer(_) => "must be a value".to_owned(),
    }
}

fn plural(ty: &Type) -> String {
    match &ty.pointee().shape {
        Shape::Bool => "booleans".to_owned(),
        Shape::Int(_) | Shape::Float => "numbers".to_owned(),
        Shape::String | Shape::IntOrString => "strings".to_owned(),
        Shape::Bytes => "base64-encoded texts".to_owned(),
        Shape::Quantity => "quantities".to_owned(),
        Shape::Time | Shape::MicroTime => "times".to_owned(),
        Shape::List(_) => "lists".to_owned(),
        Shape::Map(_) => "mappings".to_owned(),
        Shape::Struct(id) => format!("mappings: {}", schema().get(*id).name),
        Shape::Raw | Shape::Pointer(_) => "values".to_owned(),
    }
}

/// The cause of a rejection, with its value apart from its detail.
pub(super) fn problem_of_cause(cause: &Cause) -> Problem {
    let kinds = [
        Kind::Invalid,
        Kind::TypeInvalid,
        Kind::NotSupported,
        Kind::Duplicate,
        Kind::Required,
        Kind::Forbidden,
        Kind::TooLong,
        Kind::TooMany,
        Kind::NotFound,
        Kind::Internal,
    ];
    let found = kinds.into_iter().find_map(|kind| {
        let rest = cause.message.strip_prefix(kind.title())?;
        (kind.reason() == cause.reason).then_some((kind, rest.strip_prefix(": ").unwrap_or(rest)))
    });
    let Some((kind, rest)) = found else {
        return Problem::refused(&cause.field, &cause.message);
    };
    let has_value = !matches!(
        kind,
        Kind::Required | Kind::Forbidden | Kind::TooLong | Kind::Internal
    );
    let (value, detail) = match has_value {
        true => split_value(rest),
        false => ("", rest),
    };
    Problem {
        path: cause.field.clone(),
        kind,
        value: value.to_owned(),
        detail: detail.to_owned(),
        position: None,
    }
}

/// The JSON value at the beginning of a text and what follows it.
fn split_value(text: &str) -> (&str, &str) {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    if !matches!(values.next(), Some(Ok(_))) {
        return ("", text);
    }
    let (value, rest) = text.split_at(values.byte_offset());
    match rest.strip_prefix(": ") {
        Some(detail) => (value, detail),
        None if rest.is_empty() => (value, ""),
        None => ("", text),
    }
}
