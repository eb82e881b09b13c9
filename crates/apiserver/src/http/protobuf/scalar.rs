//! Types that are messages on the wire and something simpler in JSON.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::jiff::Timestamp;
use plimsoll_core::quantity::Quantity;
use serde_json::{Value, json};

use super::DecodeError;
use super::wire::{Payload, Reader};

/// A text; Go's strings may hold anything, JSON's may not.
pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub(super) fn base64(bytes: &[u8]) -> Value {
    STANDARD.encode(bytes).into()
}

/// `{string = 1}`, printed in its canonical form.
pub(super) fn quantity(bytes: &[u8], field: &str) -> Result<Value, DecodeError> {
    let mut quantity = Quantity::default();
    let mut fields = Reader::new(bytes);
    while let Some((number, payload)) = fields.next()? {
        if let (1, Payload::Bytes(bytes)) = (number, payload) {
            let parsed = text(bytes).parse();
            quantity = parsed.map_err(|error| bad_value(field, &error))?;
        }
    }
    Ok(quantity.canonical().into())
}

/// `{type = 1, intVal = 2, strVal = 3}`; type 0 is a number.
pub(super) fn int_or_string(bytes: &[u8]) -> Result<Value, DecodeError> {
    let (mut is_text, mut number_value, mut text_value) = (false, 0, String::new());
    let mut fields = Reader::new(bytes);
    while let Some((number, payload)) = fields.next()? {
        match (number, payload) {
            (1, Payload::Varint(ty)) => is_text = ty != 0,
            (2, Payload::Varint(value)) => number_value = int32(value),
            (3, Payload::Bytes(bytes)) => text_value = text(bytes),
            _ => {}
        }
    }
    Ok(if is_text {
        text_value.into()
    } else {
        number_value.into()
    })
}

/// The precision of a printed time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Precision {
    Seconds,
    Microseconds,
}

/// `{seconds = 1, nanos = 2}`; if both are missing, there is no time.
pub(super) fn time(
    bytes: &[u8],
    precision: Precision,
    field: &str,
) -> Result<Option<Value>, DecodeError> {
    let (mut seconds, mut nanos) = (0_i64, 0_i32);
    let mut fields = Reader::new(bytes);
    while let Some((number, payload)) = fields.next()? {
        match (number, payload) {
            (1, Payload::Varint(value)) => seconds = value.cast_signed(),
            (2, Payload::Varint(value)) => nanos = int32(value),
            _ => {}
        }
    }
    if seconds == 0 && nanos == 0 {
        return Ok(None);
    }
    let time = Timestamp::new(seconds, nanos).map_err(|error| bad_value(field, &error))?;
    let format = match precision {
        Precision::Seconds => "%Y-%m-%dT%H:%M:%SZ",
        Precision::Microseconds => "%Y-%m-%dT%H:%M:%S%.6fZ",
    };
    Ok(Some(time.strftime(format).to_string().into()))
}

/// `{raw = 1}`: a JSON document.
pub(super) fn raw(bytes: &[u8], field: &str) -> Result<Option<Value>, DecodeError> {
    let mut document = None;
    let mut fields = Reader::new(bytes);
    while let Some((number, payload)) = fields.next()? {
        match (number, payload) {
            (1, Payload::Bytes([])) => {}
            (1, Payload::Bytes(bytes)) => {
                let parsed = serde_json::from_slice(bytes);
                document = Some(parsed.map_err(|error| bad_value(field, &error))?);
            }
            _ => {}
        }
    }
    Ok(document)
}

/// Infinities and the like have no form in JSON.
pub(super) fn float(bits: u64) -> Value {
    json!(f64::from_bits(bits))
}

/// Negative numbers are written with all 64 bits.
#[expect(
    clippy::cast_possible_truncation,
    reason = "protobuf takes the lower half of a number that is too long"
)]
pub(super) fn int32(value: u64) -> i32 {
    value.cast_signed() as i32
}

fn bad_value(field: &str, reason: &impl std::fmt::Display) -> DecodeError {
    DecodeError::BadValue {
        field: field.to_owned(),
        reason: reason.to_string(),
    }
}
