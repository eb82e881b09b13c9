//! Decoding documents into objects of a type.
//!
//! Matches v1.36 vendor/sigs.k8s.io/json, decode.go: after a wrong type the rest is still decoded,
//! and only the first one is reported; an error of a type with its own decoder, such as a quantity,
//! ends decoding at once.

use std::borrow::Cow;

use plimsoll_core::problem::quoted;
use plimsoll_core::quantity::Quantity;
use serde_json::{Map, Number, Value};

use crate::machinery::go::base64;
use crate::machinery::go::time::{self, Precision};
use crate::machinery::schema::{Field, Shape, Struct, StructId, Type, schema};

use super::document::Document;

/// The maximum of reported unknown and duplicate fields.
const MAX_STRICT: usize = 100;

/// The maximum of reported mistakes.
const MAX_MISTAKES: usize = 1000;

/// An object, and the errors of strict decoding.
pub(super) struct Read {
    pub(super) object: Value,
    pub(super) strict: Vec<String>,
}

/// A value that its field cannot have, or a field that its struct does not have.
#[derive(Clone, Debug)]
pub struct Mistake {
    /// The path of the value: `spec.containers[0].resources.limits[memory]`.
    pub path: String,
    /// What is wrong.
    pub kind: MistakeKind,
}

/// The kinds of mistakes.
#[derive(Clone, Copy, Debug)]
pub enum MistakeKind {
    /// A value of another type.
    WrongType(&'static Type),
    /// A text that its type cannot be read from.
    Malformed(&'static Type),
    /// A field that the struct does not have.
    Unknown(&'static Struct),
    /// A field that is set again.
    Duplicate,
}

/// Decodes a document by its type.
pub(super) fn read(document: &Document<'_>, id: StructId) -> Result<Read, String> {
    let mut reader = Reader::default();
    let object = reader.root(document, id)?;
    match reader.first_error {
        Some(error) => Err(error),
        None => Ok(Read {
            object,
            strict: reader.strict,
        }),
    }
}

/// Decodes a document as far as possible, without the values that are wrong, and reports all of
/// them.
pub(super) fn read_all(document: &Document<'_>, id: StructId) -> (Value, Vec<Mistake>) {
    let mut reader = Reader {
        mistakes: Some(Vec::new()),
        ..Reader::default()
    };
    // With a list of mistakes no error ends decoding.
    let object = reader.root(document, id).unwrap_or_default();
    (object, reader.mistakes.unwrap_or_default())
}

/// The text of an error that ends decoding.
type Fatal = String;

#[derive(Default)]
struct Reader<'a> {
    /// The struct whose field is decoded, and the fields down to it, as errors name them.
    owner: &'static str,
    fields: Vec<&'static str>,
    /// The path down to the value, as strict errors name it.
    path: Vec<Step<'a>>,
    first_error: Option<String>,
    strict: Vec<String>,
    /// All mistakes, if the reader continues after an error that ends decoding elsewhere.
    mistakes: Option<Vec<Mistake>>,
}

/// A step of a path, which becomes text for an error only.
enum Step<'a> {
    Member(&'a str),
    Item(usize),
}

impl<'a> Reader<'a> {
    fn root(&mut self, document: &'a Document<'_>, id: StructId) -> Result<Value, Fatal> {
        let definition = schema().get(id);
        match document {
            Document::Object(members) => self.object(members, definition),
            Document::Null => Ok(Value::Null),
            other => {
                self.save_type_error(other.go_kind(), &format!("v1.{}", definition.name));
                Ok(Value::Null)
            }
        }
    }

    fn value(&mut self, document: &'a Document<'_>, ty: &'static Type) -> Result<Value, Fatal> {
        let found = match document {
            Document::Null => ty,
            _ => ty.pointee(),
        };
        let read = match (&found.shape, document) {
            (Shape::Quantity, _) => {
                let read = quantity(document);
                return self.unless_collected(found, read);
            }
            (
                Shape::Pointer(_) | Shape::List(_) | Shape::Map(_) | Shape::Struct(_),
                Document::Null,
            ) => Some(Value::Null),
            (Shape::Time | Shape::MicroTime | Shape::IntOrString, _) => {
                let read = self.self_reading(document, &found.shape);
                return self.unless_collected(found, read);
            }
            (Shape::Raw, _) => Some(untyped(document)),
            (_, Document::Null) => Some(Value::Null),
            (Shape::Struct(id), Document::Object(members)) => {
                Some(self.object(members, schema().get(*id))?)
            }
            (Shape::Map(of), Document::Object(members)) => Some(self.map(members, of)?),
            (Shape::List(item), Document::Array(items)) => Some(self.list(items, item)?),
            (Shape::Bytes, Document::String(text)) => match base64::normalize(text) {
                Ok(text) => Some(Value::from(text)),
                Err(at) => {
                    let error = format!("illegal base64 data at input byte {at}");
                    self.first_error.get_or_insert(error);
                    self.collect(MistakeKind::Malformed(found));
                    Some(Value::Null)
                }
            },
            (Shape::String, Document::String(text)) => Some(Value::from(&**text)),
            (Shape::Bool, Document::Bool(value)) => Some(Value::from(*value)),
            (Shape::Int(bits), Document::Number(text)) => integer(text, *bits),
            (Shape::Float, Document::Number(text)) => float(text),
            _ => None,
        };
        Ok(read.unwrap_or_else(|| {
            self.save_type_error(&value_name(document, &found.shape), &found.go_name());
            self.collect(MistakeKind::WrongType(found));
            Value::Null
        }))
    }

    fn collect(&mut self, kind: MistakeKind) {
        self.collect_at(None, kind);
    }

    /// Collects a mistake at a member of the present value.
    fn collect_member(&mut self, key: &str, kind: MistakeKind) {
        self.collect_at(Some(key), kind);
    }

    fn collect_at(&mut self, member: Option<&str>, kind: MistakeKind) {
        if self
            .mistakes
            .as_ref()
            .is_none_or(|known| known.len() >= MAX_MISTAKES)
        {
            return;
        }
        let path = self.path_text(member);
        if let Some(mistakes) = &mut self.mistakes {
            mistakes.push(Mistake { path, kind });
        }
    }

    /// The path of the present value, or of a member of it.
    fn path_text(&self, member: Option<&str>) -> String {
        let member = member.map(Step::Member);
        let mut path = String::new();
        for step in self.path.iter().chain(&member) {
            match step {
                Step::Member(name) if path.is_empty() => path.push_str(name),
                Step::Member(name) => path.extend([".", name]),
                Step::Item(index) => path.push_str(&format!("[{index}]")),
            }
        }
        path
    }

    /// The value, or the error unless mistakes are collected.
    fn unless_collected(
        &mut self,
        ty: &'static Type,
        read: Result<Value, Fatal>,
    ) -> Result<Value, Fatal> {
        if read.is_err() && self.mistakes.is_some() {
            self.collect(MistakeKind::Malformed(ty));
            return Ok(Value::Null);
        }
        read
    }

    fn object(
        &mut self,
        members: &'a [(Cow<'_, str>, Document<'_>)],
        fields: &'static Struct,
    ) -> Result<Value, Fatal> {
        let mut object = Map::new();
        let (owner, depth, path) = (self.owner, self.fields.len(), self.path.len());
        let mut seen: Vec<&str> = Vec::new();
        for (key, value) in members {
            let Some(field) = fields.field(key) else {
                self.save_strict("unknown field", key);
                self.collect_member(key, MistakeKind::Unknown(fields));
                continue;
            };
            let is_duplicate = seen.contains(&field.name);
            if is_duplicate {
                self.save_strict("duplicate field", key);
                self.collect_member(key, MistakeKind::Duplicate);
            } else {
                seen.push(field.name);
            }
            self.enter(fields, field);
            let value = self.value(value, &field.ty)?;
            if is_duplicate {
                merge(&mut object, field.name, value);
            } else if !value.is_null() {
                object.insert(field.name.to_owned(), value);
            }
            self.owner = owner;
            self.fields.truncate(depth);
            self.path.truncate(path);
        }
        Ok(Value::Object(object))
    }

    fn enter(&mut self, fields: &'static Struct, field: &'static Field) {
        self.fields.extend(&field.embedded_in);
        self.owner = fields.name;
        self.fields.push(field.name);
        self.path.push(Step::Member(field.name));
    }

    fn map(
        &mut self,
        members: &'a [(Cow<'_, str>, Document<'_>)],
        of: &'static Type,
    ) -> Result<Value, Fatal> {
        let mut object = Map::new();
        let path = self.path.len();
        for (key, value) in members {
            if object.contains_key(&**key) {
                self.save_strict("duplicate field", key);
                self.collect_member(key, MistakeKind::Duplicate);
            }
            self.path.push(Step::Member(key));
            let value = self.value(value, of)?;
            // Null is what is left of a wrong value.
            if self.mistakes.is_none() || !value.is_null() {
                object.insert(key.clone().into_owned(), value);
            }
            self.path.truncate(path);
        }
        Ok(Value::Object(object))
    }

    fn list(&mut self, items: &'a [Document<'_>], of: &'static Type) -> Result<Value, Fatal> {
        let mut list = Vec::with_capacity(items.len());
        let path = self.path.len();
        for (index, item) in items.iter().enumerate() {
            self.path.push(Step::Item(index));
            list.push(self.value(item, of)?);
            self.path.truncate(path);
        }
        Ok(Value::Array(list))
    }

    /// Types with their own decoder from a number or a string. Their errors end the decoding.
    fn self_reading(&mut self, document: &Document<'_>, shape: &Shape) -> Result<Value, Fatal> {
        let wrong = |document: &Document<'_>, go_name: &str| {
            let (value, place) = (document.go_kind(), self.place());
            let value = match document {
                Document::Number(text) if go_name == "int32" => format!("number {text}"),
                _ => value.to_owned(),
            };
            format!("json: cannot unmarshal {value} into {place} of type {go_name}")
        };
        match (shape, document) {
            (_, Document::Null) => Ok(Value::Null),
            (Shape::IntOrString, Document::String(text)) => Ok(Value::from(&**text)),
            (Shape::IntOrString, Document::Number(text)) => {
                integer(text, 32).ok_or_else(|| wrong(document, "int32"))
            }
            (Shape::IntOrString, _) => Err(wrong(document, "int32")),
            (Shape::Time, Document::String(text)) => {
                time::normalize(text, Precision::Seconds).map(Value::from)
            }
            (Shape::MicroTime, Document::String(text)) => {
                time::normalize(text, Precision::Micros).map(Value::from)
            }
            (_, Document::String(text)) => Ok(Value::from(&**text)),
            _ => Err(wrong(document, "string")),
        }
    }

    fn save_type_error(&mut self, value: &str, go_name: &str) {
        if self.first_error.is_none() {
            let place = self.place();
            let error = format!("json: cannot unmarshal {value} into {place} of type {go_name}");
            self.first_error = Some(error);
        }
    }

    /// The target of a wrong value.
    fn place(&self) -> String {
        if self.fields.is_empty() {
            return "Go value".to_owned();
        }
        format!("Go struct field {}.{}", self.owner, self.fields.join("."))
    }

    fn save_strict(&mut self, what: &str, key: &str) {
        if self.strict.len() >= MAX_STRICT {
            return;
        }
        let path = quoted(&self.path_text(Some(key)));
        let finding = format!("{what} {path}");
        if !self.strict.contains(&finding) {
            self.strict.push(finding);
        }
    }
}

/// Stores the value of a duplicate field; an existing struct or map keeps members that the later one
/// does not have, because Go decodes into the existing value.
fn merge(object: &mut Map<String, Value>, name: &str, value: Value) {
    match (object.get_mut(name), value) {
        (Some(Value::Object(old)), Value::Object(new)) => old.extend(new),
        // Nothing changes a list or a map to null and leaves the rest alone.
        (Some(Value::Object(_) | Value::Array(_)), Value::Null) | (None, Value::Null) => {
            object.remove(name);
        }
        (Some(_), Value::Null) => {}
        (_, value) => {
            object.insert(name.to_owned(), value);
        }
    }
}

/// An error's name for the value: numbers that do not fit an integer are shown.
fn value_name(document: &Document<'_>, shape: &Shape) -> String {
    match (document, shape) {
        (Document::Number(text), Shape::Int(_) | Shape::Float) => format!("number {text}"),
        _ => document.go_kind().to_owned(),
    }
}

fn quantity(document: &Document<'_>) -> Result<Value, Fatal> {
    let token = match document {
        Document::Null => return Ok(Value::from("0")),
        Document::String(text) => format!("\"{text}\""),
        Document::Number(text) => text.clone().into_owned(),
        Document::Bool(value) => value.to_string(),
        Document::Array(_) => "[]".to_owned(),
        Document::Object(_) => "{}".to_owned(),
    };
    match Quantity::from_json_token(&token) {
        Ok(quantity) => Ok(Value::from(quantity.unwrap_or(Quantity::ZERO).to_string())),
        Err(error) => Err(error.to_string()),
    }
}

fn integer(text: &str, bits: u8) -> Option<Value> {
    let number: i64 = text.parse().ok()?;
    let fits = bits == 64 || i32::try_from(number).is_ok();
    fits.then(|| Value::from(number))
}

fn float(text: &str) -> Option<Value> {
    text.parse()
        .ok()
        .and_then(Number::from_f64)
        .map(Value::Number)
}

/// Untyped JSON; of duplicate keys the last one counts.
pub(super) fn untyped(document: &Document<'_>) -> Value {
    match document {
        Document::Null => Value::Null,
        Document::Bool(value) => Value::from(*value),
        Document::Number(text) => integer(text, 64)
            .or_else(|| float(text))
            .unwrap_or(Value::Null),
        Document::String(text) => Value::from(&**text),
        Document::Array(items) => items.iter().map(untyped).collect(),
        Document::Object(members) => members
            .iter()
            .map(|(key, value)| (key.clone().into_owned(), untyped(value)))
            .collect(),
    }
}
