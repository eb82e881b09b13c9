//! The effects of a round trip through Go's structs.
//!
//! Upstream decodes every body into structs and encodes those again. This drops unknown fields,
//! turns nulls into zero values, normalizes quantities and times, drops empty fields, and adds
//! fields without `omitempty`. Ownership of fields (server-side apply) and validation see the
//! object after that, so the same is done here, driven by the table.

use plimsoll_core::quantity::Quantity;
use serde_json::{Map, Number, Value};
use thiserror::Error;

use super::canonical::{is_left_out, zero, zero_field};
use super::structs::{Field, Shape, StructId, Type, schema};
use crate::machinery::go::time::{self, Precision};
use crate::machinery::go::{base64, print};

/// An object as Go's structs represent it.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    /// The object.
    pub value: Value,
    /// The paths of unknown fields, such as `spec.taints[0].colour`.
    pub unknown: Vec<String>,
}

/// The source of the JSON; upstream's decoders for the two have different messages and rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A text, for encoding/json.
    Text,
    /// Maps in memory, as a strategic merge patch leaves them, for the unstructured converter.
    /// It accepts floats without fraction as integers and wraps those that are too large.
    Maps,
}

/// A value that does not fit its field, in Go's words.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct DecodeError(String);

/// Decodes `value` as the struct `id`.
pub fn decode(id: StructId, value: &Value, source: Source) -> Result<Decoded, DecodeError> {
    let mut decoder = Decoder {
        source,
        structs: Vec::new(),
        fields: Vec::new(),
        path: String::new(),
        unknown: Vec::new(),
    };
    let value = match value {
        Value::Object(map) => decoder.read_struct(id, map)?,
        other => return Err(decoder.mismatch(other, &root_type(id))),
    };
    decoder.unknown.sort();
    Ok(Decoded {
        value,
        unknown: decoder.unknown,
    })
}

fn root_type(id: StructId) -> Type {
    Type {
        shape: Shape::Struct(id),
        go_name: format!("v1.{}", schema().get(id).name),
    }
}

struct Decoder {
    source: Source,
    /// The structs around the value, outermost first; errors name the innermost.
    structs: Vec<&'static str>,
    /// The names of the struct fields on the path; errors join them with dots.
    fields: Vec<&'static str>,
    /// The path with list indexes and map keys, for unknown fields.
    path: String,
    unknown: Vec<String>,
}

impl Decoder {
    fn read(&mut self, ty: &Type, value: &Value) -> Result<Value, DecodeError> {
        if value.is_null() {
            return Ok(zero(ty));
        }
        match (&ty.shape, value) {
            (Shape::Pointer(inner), _) => self.read(inner, value),
            (Shape::Struct(id), Value::Object(map)) => self.read_struct(*id, map),
            (Shape::Map(inner), Value::Object(map)) => self.read_map(inner, map),
            (Shape::List(inner), Value::Array(items)) => self.read_list(inner, items),
            (Shape::Bool, Value::Bool(_)) | (Shape::String, Value::String(_)) | (Shape::Raw, _) => {
                Ok(value.clone())
            }
            (Shape::Int(bits), Value::Number(number)) => self.read_int(*bits, number, ty),
            (Shape::Float, Value::Number(number)) => Ok(whole_where_possible(number)),
            (Shape::Bytes, Value::String(text)) => base64::normalize(text)
                .map(Value::String)
                .map_err(|at| self.refuse_bytes(at)),
            (Shape::Quantity, _) => read_quantity(value),
            (Shape::IntOrString, _) => read_int_or_string(value),
            (Shape::Time, _) => read_time(value, Precision::Seconds),
            (Shape::MicroTime, _) => read_time(value, Precision::Micros),
            _ => Err(self.mismatch(value, ty)),
        }
    }

    fn read_struct(
        &mut self,
        id: StructId,
        map: &Map<String, Value>,
    ) -> Result<Value, DecodeError> {
        let definition = schema().get(id);
        self.structs.push(definition.name);
        let mut out = Map::new();
        for (key, value) in map {
            let length = self.push_key(key);
            match definition.field(key) {
                None => self.unknown.push(self.path.clone()),
                Some(field) => {
                    self.fields.push(field.name);
                    let value = self.read(&field.ty, value)?;
                    self.fields.pop();
                    emit(&mut out, field, value);
                }
            }
            self.path.truncate(length);
        }
        for field in definition.printed_fields() {
            if !map.contains_key(field.name)
                && let Some(zero) = zero_field(field)
            {
                out.insert(field.name.to_owned(), zero);
            }
        }
        self.structs.pop();
        Ok(Value::Object(out))
    }

    fn read_map(&mut self, inner: &Type, map: &Map<String, Value>) -> Result<Value, DecodeError> {
        let mut out = Map::new();
        for (key, value) in map {
            // The converter from maps leaves map keys out of its paths.
            let length = match self.source {
                Source::Text => self.push_key(key),
                Source::Maps => self.path.len(),
            };
            out.insert(key.clone(), self.read(inner, value)?);
            self.path.truncate(length);
        }
        Ok(Value::Object(out))
    }

    fn read_list(&mut self, inner: &Type, items: &[Value]) -> Result<Value, DecodeError> {
        let mut out = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let length = self.path.len();
            self.path.push_str(&format!("[{index}]"));
            out.push(self.read(inner, item)?);
            self.path.truncate(length);
        }
        Ok(Value::Array(out))
    }

    /// Appends a key to the path and returns its previous length.
    fn push_key(&mut self, key: &str) -> usize {
        let length = self.path.len();
        if length > 0 {
            self.path.push('.');
        }
        self.path.push_str(key);
        length
    }

    fn read_int(&self, bits: u8, number: &Number, ty: &Type) -> Result<Value, DecodeError> {
        let fits = |whole: i64| bits == 64 || i32::try_from(whole).is_ok();
        match (number.as_i64(), self.source) {
            (Some(whole), _) if fits(whole) => Ok(Value::from(whole)),
            (Some(whole), Source::Maps) => Ok(Value::from(wrap_to_i32(whole))),
            (None, Source::Maps) if number.as_f64().is_some_and(|f| f.fract() == 0.0) => {
                let whole = truncate(number.as_f64().unwrap_or_default());
                Ok(Value::from(if bits == 64 {
                    whole
                } else {
                    i64::from(wrap_to_i32(whole))
                }))
            }
            _ => Err(self.mismatch(&Value::Number(number.clone()), ty)),
        }
    }

    fn refuse_bytes(&self, at: usize) -> DecodeError {
        let text = format!("illegal base64 data at input byte {at}");
        DecodeError(match self.source {
            Source::Text => text,
            Source::Maps => format!("error decoding from json: {text}"),
        })
    }

    fn mismatch(&self, value: &Value, ty: &Type) -> DecodeError {
        DecodeError(match self.source {
            Source::Text => self.mismatch_of_text(value, ty),
            Source::Maps => mismatch_of_maps(value, ty),
        })
    }

    fn mismatch_of_text(&self, value: &Value, ty: &Type) -> String {
        let what = match value {
            Value::Null => "null".to_owned(),
            Value::Bool(_) => "bool".to_owned(),
            Value::Number(number) if matches!(ty.shape, Shape::Int(_)) => {
                format!("number {number}")
            }
            Value::Number(_) => "number".to_owned(),
            Value::String(_) => "string".to_owned(),
            Value::Array(_) => "array".to_owned(),
            Value::Object(_) => "object".to_owned(),
        };
        let go_type = ty.go_name();
        match self.structs.last() {
            Some(name) if !self.fields.is_empty() => {
                let fields = self.fields.join(".");
                format!(
                    "json: cannot unmarshal {what} into Go struct field {name}.{fields} of type {go_type}"
                )
            }
            _ => format!("json: cannot unmarshal {what} into Go value of type {go_type}"),
        }
    }
}

fn mismatch_of_maps(value: &Value, ty: &Type) -> String {
    let kind = print::kind_of(value);
    match (&ty.shape, value) {
        (Shape::Map(_), _) => format!("cannot restore map from {kind}"),
        (Shape::List(_) | Shape::Bytes, _) => format!("cannot restore slice from {kind}"),
        (Shape::Struct(_), _) => format!("cannot restore struct from: {kind}"),
        // Go converts integers to strings (as characters) and numbers to each other; the
        // converter detects that and refuses.
        (Shape::String, Value::Number(n)) if n.is_i64() => {
            format!("cannot convert int64 to {}", ty.go_name())
        }
        (Shape::Int(_), Value::Number(_)) => format!("cannot convert float64 to {}", ty.go_name()),
        _ => format!("unrecognized type: {}", ty.go_kind()),
    }
}

/// Adds the field unless its rule leaves the value out.
fn emit(out: &mut Map<String, Value>, field: &Field, value: Value) {
    if !is_left_out(field, &value) {
        out.insert(field.name.to_owned(), value);
    }
}

fn read_quantity(value: &Value) -> Result<Value, DecodeError> {
    match Quantity::from_json_token(&value.to_string()) {
        Ok(quantity) => Ok(Value::from(quantity.unwrap_or(Quantity::ZERO).to_string())),
        Err(error) => Err(DecodeError(error.to_string())),
    }
}

fn read_int_or_string(value: &Value) -> Result<Value, DecodeError> {
    let refuse = |what: &str| {
        DecodeError(format!(
            "json: cannot unmarshal {what} into Go value of type int32"
        ))
    };
    match value {
        Value::String(_) => Ok(value.clone()),
        Value::Number(number) => match number.as_i64().map(i32::try_from) {
            Some(Ok(whole)) => Ok(Value::from(whole)),
            _ => Err(refuse(&format!("number {number}"))),
        },
        Value::Bool(_) => Err(refuse("bool")),
        Value::Array(_) => Err(refuse("array")),
        _ => Err(refuse("object")),
    }
}

fn read_time(value: &Value, precision: Precision) -> Result<Value, DecodeError> {
    let what = match value {
        Value::String(text) => {
            return time::normalize(text, precision)
                .map(Value::String)
                .map_err(DecodeError);
        }
        Value::Number(_) => "number",
        Value::Bool(_) => "bool",
        Value::Array(_) => "array",
        _ => "object",
    };
    Err(DecodeError(format!(
        "json: cannot unmarshal {what} into Go value of type string"
    )))
}

/// Go prints a float without fraction as a whole number.
fn whole_where_possible(number: &Number) -> Value {
    match number.as_f64() {
        Some(float) if float.fract() == 0.0 && float.abs() < 1e15 => Value::from(truncate(float)),
        _ => Value::Number(number.clone()),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "Go's conversion, saturating at the ends"
)]
fn truncate(float: f64) -> i64 {
    float as i64
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the converter wraps as Go's int32() does"
)]
fn wrap_to_i32(whole: i64) -> i32 {
    whole as i32
}
