//! A type in server-side apply: one owner, or owners per member or item.

use serde_json::Value;

use super::path::{PathElement, Scalar};
use crate::machinery::schema::{Field, ListType, Shape, StructId, Type, schema};

/// The table's entry for a value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Atom {
    Scalar(Primitive),
    List {
        item: &'static Type,
        kind: &'static ListType,
    },
    Struct {
        id: StructId,
        is_atomic: bool,
    },
    Map {
        value: &'static Type,
        is_atomic: bool,
    },
    /// Any JSON, one owner.
    Any,
}

/// The types of scalars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Primitive {
    Numeric,
    String,
    Boolean,
    /// A number or a text.
    Untyped,
}

impl Atom {
    pub(super) fn of_kind(id: StructId) -> Atom {
        Atom::Struct {
            id,
            is_atomic: false,
        }
    }

    fn of_field(field: &'static Field) -> Atom {
        Atom::of_type(&field.ty, &field.list, field.is_atomic)
    }

    fn of_type(ty: &'static Type, kind: &'static ListType, is_atomic: bool) -> Atom {
        match &ty.shape {
            Shape::Pointer(inner) => Atom::of_type(inner, kind, is_atomic),
            Shape::Bool => Atom::Scalar(Primitive::Boolean),
            Shape::Int(_) | Shape::Float => Atom::Scalar(Primitive::Numeric),
            Shape::String | Shape::Bytes | Shape::Time | Shape::MicroTime => {
                Atom::Scalar(Primitive::String)
            }
            Shape::Quantity | Shape::IntOrString => Atom::Scalar(Primitive::Untyped),
            Shape::Raw => Atom::Any,
            Shape::List(item) => Atom::List { item, kind },
            Shape::Map(value) => Atom::Map { value, is_atomic },
            Shape::Struct(id) => Atom::Struct {
                id: *id,
                is_atomic: is_atomic || schema().get(*id).is_atomic,
            },
        }
    }

    /// Whether the value has one owner, whatever it contains.
    pub(super) fn is_leaf(self) -> bool {
        match self {
            Atom::Scalar(_) | Atom::Any => true,
            Atom::List { kind, .. } => *kind == ListType::Atomic,
            Atom::Struct { is_atomic, .. } | Atom::Map { is_atomic, .. } => is_atomic,
        }
    }

    /// Whether this is a struct with such a field.
    pub(super) fn has_field(self, name: &str) -> bool {
        matches!(self, Atom::Struct { id, .. } if schema().get(id).field(name).is_some())
    }

    /// The type of the member `name`; `None` if there cannot be such a member.
    pub(super) fn member(self, name: &str) -> Option<Atom> {
        match self {
            Atom::Struct { id, .. } => schema().get(id).field(name).map(Atom::of_field),
            Atom::Map { value, .. } => Some(Atom::of_type(value, &ListType::Atomic, false)),
            _ => None,
        }
    }

    /// The type of a list's items.
    pub(super) fn item(self) -> Option<Atom> {
        match self {
            Atom::List { item, .. } => Some(Atom::of_type(item, &ListType::Atomic, false)),
            _ => None,
        }
    }

    /// How an item of a list with owners per item is identified.
    pub(super) fn element(self, item: &Value) -> Result<PathElement, String> {
        match self {
            Atom::List {
                kind: ListType::Map(keys),
                ..
            } => self.keyed_element(keys, item),
            Atom::List {
                kind: ListType::Set,
                ..
            } => set_element(item),
            _ => Err("invalid indexing of non-associative list".to_owned()),
        }
    }

    fn keyed_element(self, keys: &[&'static str], item: &Value) -> Result<PathElement, String> {
        let map = match item {
            Value::Object(map) => map,
            Value::Null => {
                return Err("associative list with keys may not have a null element".to_owned());
            }
            _ => {
                return Err("associative list with keys may not have non-map elements".to_owned());
            }
        };
        let mut fields: Vec<(String, Scalar)> = keys
            .iter()
            .filter_map(|key| {
                let value = map.get(*key).cloned().or_else(|| self.key_default(key))?;
                Some(((*key).to_owned(), Scalar(value)))
            })
            .collect();
        if fields.is_empty() {
            let keys: Vec<String> = keys.iter().map(|key| format!("{key:?}")).collect();
            return Err(format!(
                "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values for any key fields)",
                keys.join(" ")
            ));
        }
        fields.sort();
        Ok(PathElement::Key(fields))
    }

    fn key_default(self, key: &str) -> Option<Value> {
        match self.item()? {
            Atom::Struct { id, .. } => schema().get(id).field(key)?.key_default.clone(),
            _ => None,
        }
    }
}

fn set_element(item: &Value) -> Result<PathElement, String> {
    let problem = match item {
        Value::Object(_) => "associative list without keys has an element that's a map type",
        Value::Array(_) => "not supported: associative list with lists as elements",
        Value::Null => "associative list without keys has an element that's an explicit null",
        scalar => return Ok(PathElement::Value(Scalar(scalar.clone()))),
    };
    Err(problem.to_owned())
}
