//! Decodes the fields of a message into the members of a JSON object.
//!
//! Go writes fields that are not pointers even when they are empty, so emptiness on the wire means
//! nothing there; for pointers it does: `replicas: 0` is not the same as no replicas given. The
//! table distinguishes them.

use serde_json::{Map, Value, json};

use super::DecodeError;
use super::scalar::{self, Precision};
use super::wire::{Payload, Reader};
use crate::machinery::schema::{Emit, Field, Shape, StructId, Type, schema};

/// Messages, list items and map entries in one object. Two bytes can make one of them, and a body
/// may have three million bytes; real objects have a few thousand.
const MAX_PARTS: usize = 256 * 1024;

pub(super) fn decode(id: StructId, bytes: &[u8]) -> Result<Map<String, Value>, DecodeError> {
    let mut object = Map::new();
    let mut decoder = Decoder { parts: MAX_PARTS };
    decoder.read_struct(id, &[], bytes, &mut object)?;
    Ok(object)
}

struct Decoder {
    /// How many parts may still follow.
    parts: usize,
}

impl Decoder {
    /// Adds the fields of a message to an object. `inlined` are the numbers that lead from the
    /// struct to the message, which JSON does not show. A message that occurs twice is merged.
    fn read_struct(
        &mut self,
        id: StructId,
        inlined: &[u32],
        bytes: &[u8],
        object: &mut Map<String, Value>,
    ) -> Result<(), DecodeError> {
        self.count_part()?;
        let ty = schema().get(id);
        let mut fields = Reader::new(bytes);
        while let Some((number, payload)) = fields.next()? {
            // Unknown numbers are those of later releases; they are skipped.
            let Ok(number) = u32::try_from(number) else {
                continue;
            };
            let depth = inlined.len() + 1;
            let mut known = ty.fields.iter().filter(|field| {
                field.numbers.starts_with(inlined) && field.numbers.get(depth - 1) == Some(&number)
            });
            match known.next() {
                Some(field) if field.numbers.len() == depth => {
                    self.read_field(field, payload, object)?;
                }
                Some(field) => {
                    let bytes = bytes_of(payload, field.name)?;
                    self.read_struct(id, &field.numbers[..depth], bytes, object)?;
                }
                None => {}
            }
        }
        Ok(())
    }

    fn read_field(
        &mut self,
        field: &Field,
        payload: Payload<'_>,
        object: &mut Map<String, Value>,
    ) -> Result<(), DecodeError> {
        let earlier = object.remove(field.name);
        let is_pointer = matches!(field.ty.shape, Shape::Pointer(_));
        let value = self.read_value(field.ty.pointee(), field.name, payload, earlier)?;
        let is_written = is_pointer || !is_empty(&value) || is_always_written(field, &value);
        if !value.is_null() && is_written {
            object.insert(field.name.to_owned(), value);
        }
        Ok(())
    }

    /// The value of a field or of a map's entry. `earlier` is what the message already held there.
    fn read_value(
        &mut self,
        ty: &Type,
        field: &str,
        payload: Payload<'_>,
        earlier: Option<Value>,
    ) -> Result<Value, DecodeError> {
        match &ty.shape {
            Shape::List(item) => self.read_item(item, field, payload, earlier),
            Shape::Map(value) => self.read_entry(value, field, payload, earlier),
            Shape::Struct(id) => {
                let mut object = match earlier {
                    Some(Value::Object(object)) => object,
                    _ => Map::new(),
                };
                self.read_struct(*id, &[], bytes_of(payload, field)?, &mut object)?;
                Ok(Value::Object(object))
            }
            shape => read_scalar(shape, field, payload),
        }
    }

    /// One item, or several numbers in a row.
    fn read_item(
        &mut self,
        item: &Type,
        field: &str,
        payload: Payload<'_>,
        earlier: Option<Value>,
    ) -> Result<Value, DecodeError> {
        let mut items = match earlier {
            Some(Value::Array(items)) => items,
            _ => Vec::new(),
        };
        match (&item.pointee().shape, payload) {
            (shape @ (Shape::Bool | Shape::Int(_)), Payload::Bytes(bytes)) => {
                let mut packed = Reader::new(bytes);
                while !packed.is_at_end() {
                    self.count_part()?;
                    items.push(read_scalar(
                        shape,
                        field,
                        Payload::Varint(packed.varint()?),
                    )?);
                }
            }
            _ => {
                self.count_part()?;
                items.push(self.read_value(item.pointee(), field, payload, None)?);
            }
        }
        Ok(Value::Array(items))
    }

    /// `{key = 1, value = 2}`; a missing one is empty.
    fn read_entry(
        &mut self,
        ty: &Type,
        field: &str,
        payload: Payload<'_>,
        earlier: Option<Value>,
    ) -> Result<Value, DecodeError> {
        self.count_part()?;
        let mut entries = match earlier {
            Some(Value::Object(entries)) => entries,
            _ => Map::new(),
        };
        let (mut key, mut value) = (String::new(), None);
        let mut fields = Reader::new(bytes_of(payload, field)?);
        while let Some((number, payload)) = fields.next()? {
            match (number, payload) {
                (1, Payload::Bytes(bytes)) => key = scalar::text(bytes),
                (2, payload) => value = Some(self.read_entry_value(ty, field, payload, value)?),
                _ => {}
            }
        }
        let value = value.unwrap_or_else(|| empty_value(ty));
        entries.insert(key, value);
        Ok(Value::Object(entries))
    }

    /// A map cannot hold lists, so each list is in a message of its own: `{items = 1}`.
    fn read_entry_value(
        &mut self,
        ty: &Type,
        field: &str,
        payload: Payload<'_>,
        earlier: Option<Value>,
    ) -> Result<Value, DecodeError> {
        let Shape::List(item) = &ty.shape else {
            return self.read_value(ty.pointee(), field, payload, earlier);
        };
        let mut items = earlier.unwrap_or_else(|| json!([]));
        let mut fields = Reader::new(bytes_of(payload, field)?);
        while let Some((number, payload)) = fields.next()? {
            if number == 1 {
                items = self.read_item(item, field, payload, Some(items))?;
            }
        }
        Ok(items)
    }

    fn count_part(&mut self) -> Result<(), DecodeError> {
        let left = self.parts.checked_sub(1);
        self.parts = left.ok_or(DecodeError::TooManyParts { limit: MAX_PARTS })?;
        Ok(())
    }
}

fn read_scalar(shape: &Shape, field: &str, payload: Payload<'_>) -> Result<Value, DecodeError> {
    match (shape, payload) {
        (Shape::Bool, Payload::Varint(value)) => Ok((value != 0).into()),
        (Shape::Int(32), Payload::Varint(value)) => Ok(scalar::int32(value).into()),
        (Shape::Int(_), Payload::Varint(value)) => Ok(value.cast_signed().into()),
        (Shape::Float, Payload::Fixed64(bits)) => Ok(scalar::float(bits)),
        (Shape::String, Payload::Bytes(bytes)) => Ok(scalar::text(bytes).into()),
        (Shape::Bytes, Payload::Bytes(bytes)) => Ok(scalar::base64(bytes)),
        (Shape::Quantity, Payload::Bytes(bytes)) => scalar::quantity(bytes, field),
        (Shape::IntOrString, Payload::Bytes(bytes)) => scalar::int_or_string(bytes),
        (Shape::Time, Payload::Bytes(bytes)) => {
            Ok(scalar::time(bytes, Precision::Seconds, field)?.unwrap_or_default())
        }
        (Shape::MicroTime, Payload::Bytes(bytes)) => {
            Ok(scalar::time(bytes, Precision::Microseconds, field)?.unwrap_or_default())
        }
        (Shape::Raw, Payload::Bytes(bytes)) => Ok(scalar::raw(bytes, field)?.unwrap_or_default()),
        _ => Err(wrong_wire_type(payload, field)),
    }
}

fn bytes_of<'a>(payload: Payload<'a>, field: &str) -> Result<&'a [u8], DecodeError> {
    match payload {
        Payload::Bytes(bytes) => Ok(bytes),
        _ => Err(wrong_wire_type(payload, field)),
    }
}

/// Go names the field of its struct, which begins with a capital letter.
fn wrong_wire_type(payload: Payload<'_>, field: &str) -> DecodeError {
    let mut letters = field.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    DecodeError::WrongWireType {
        wire_type: payload.wire_type(),
        field: first.into_iter().chain(letters).collect(),
    }
}

/// What Go's `omitempty` leaves out, and structs without anything in them.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
    }
}

/// An empty struct means the same as none; an empty required string is the sender's.
fn is_always_written(field: &Field, value: &Value) -> bool {
    field.emit == Emit::Always && !value.is_object()
}

fn empty_value(ty: &Type) -> Value {
    match &ty.pointee().shape {
        Shape::Bool => false.into(),
        Shape::Int(_) | Shape::Float | Shape::IntOrString => 0.into(),
        Shape::String | Shape::Bytes => "".into(),
        Shape::Quantity => "0".into(),
        Shape::List(_) => json!([]),
        Shape::Map(_) | Shape::Struct(_) => json!({}),
        Shape::Time | Shape::MicroTime | Shape::Raw | Shape::Pointer(_) => Value::Null,
    }
}
