//! Protobuf bodies, decoded into the JSON that the same object would be sent as.
//!
//! Typed clients such as `kubectl create` send protobuf and do not fall back to JSON, so it is
//! read; it is never written, since every client takes JSON as well. The numbers of the fields
//! are in the table of [`schema`](crate::machinery::schema); there is no generated code.
//!
//! A body consists of the bytes `k8s\0` and an envelope that names the kind and holds the message.
//!
//! Matches v1.36 apimachinery/pkg/runtime/serializer/protobuf.
//!
//! Reading order: `wire` (fields of a message), `message` (fields to JSON), `scalar` (the types
//! with a JSON form of their own).

mod message;
mod scalar;
mod wire;

use serde_json::Value;

use crate::machinery::schema::{StructId, schema};
use wire::{Payload, Reader};

const MAGIC: &[u8] = b"k8s\0";

/// A body cannot be decoded; the texts are Go's if it has one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The body is empty.
    #[error("empty data")]
    NoData,
    /// The envelope does not hold protobuf.
    #[error(
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
    )]
    NoMagic,
    /// Nothing follows the first bytes.
    #[error("empty body")]
    NoBody,
    /// The message is truncated.
    #[error("unexpected EOF")]
    UnexpectedEnd,
    /// A number has more than 64 bits.
    #[error("proto: integer overflow")]
    Overflow,
    /// A field number that no field can have.
    #[error("proto: illegal tag {number} (wire type {wire_type})")]
    IllegalTag {
        /// The number.
        number: u64,
        /// The wire type.
        wire_type: u8,
    },
    /// An unknown wire type.
    #[error("proto: illegal wireType {wire_type}")]
    IllegalWireType {
        /// The wire type.
        wire_type: u8,
    },
    /// A field has the wire type of another type.
    #[error("proto: wrong wireType = {wire_type} for field {field}")]
    WrongWireType {
        /// The wire type.
        wire_type: u8,
        /// The field.
        field: String,
    },
    /// Unbalanced groups.
    #[error("proto: unexpected end of group")]
    UnexpectedEndOfGroup,
    /// A quantity, time or embedded document does not parse.
    #[error("{field}: {reason}")]
    BadValue {
        /// The field.
        field: String,
        /// The error.
        reason: String,
    },
    /// More parts than any real object has.
    #[error("more than {limit} parts in one object")]
    TooManyParts {
        /// The limit.
        limit: usize,
    },
    /// An unknown kind.
    #[error("no kind \"{kind}\" is registered for version \"{api_version}\"")]
    UnknownKind {
        /// The version.
        api_version: String,
        /// The kind.
        kind: String,
    },
}

/// Decodes a body. `api_version` and `kind` are those of the request; they are the defaults for the
/// envelope. The result has `apiVersion` and `kind` set.
pub fn decode(body: &[u8], api_version: &str, kind: &str) -> Result<Value, DecodeError> {
    if body.is_empty() {
        return Err(DecodeError::NoData);
    }
    let message = body.strip_prefix(MAGIC).ok_or(DecodeError::NoMagic)?;
    if message.is_empty() {
        return Err(DecodeError::NoBody);
    }
    let envelope = Envelope::read(message)?;
    let api_version = or(&envelope.api_version, api_version);
    let kind = or(&envelope.kind, kind);
    let Some(id) = struct_of(api_version, kind) else {
        let (api_version, kind) = (api_version.to_owned(), kind.to_owned());
        return Err(DecodeError::UnknownKind { api_version, kind });
    };
    let mut object = message::decode(id, envelope.raw)?;
    object.insert("apiVersion".to_owned(), api_version.into());
    object.insert("kind".to_owned(), kind.into());
    Ok(Value::Object(object))
}

fn or<'a>(text: &'a str, otherwise: &'a str) -> &'a str {
    if text.is_empty() { otherwise } else { text }
}

/// `DeleteOptions` belong to every group, and some clients still send evictions in their first
/// version.
fn struct_of(api_version: &str, kind: &str) -> Option<StructId> {
    match (api_version, kind) {
        (_, "DeleteOptions") => schema().kind("v1", kind),
        ("policy/v1beta1", "Eviction") => schema().kind("policy/v1", kind),
        _ => schema().kind(api_version, kind),
    }
}

/// `runtime.Unknown`: the type of the message, and the message.
#[derive(Default)]
struct Envelope<'a> {
    api_version: String,
    kind: String,
    raw: &'a [u8],
}

impl<'a> Envelope<'a> {
    fn read(bytes: &'a [u8]) -> Result<Envelope<'a>, DecodeError> {
        let mut envelope = Envelope::default();
        let mut fields = Reader::new(bytes);
        while let Some((number, payload)) = fields.next()? {
            match (number, payload) {
                (1, Payload::Bytes(bytes)) => envelope.read_type(bytes)?,
                (2, Payload::Bytes(bytes)) => envelope.raw = bytes,
                // The encoding and type of the contents; there is only one of each.
                _ => {}
            }
        }
        Ok(envelope)
    }

    fn read_type(&mut self, bytes: &[u8]) -> Result<(), DecodeError> {
        let mut fields = Reader::new(bytes);
        while let Some((number, payload)) = fields.next()? {
            match (number, payload) {
                (1, Payload::Bytes(bytes)) => self.api_version = scalar::text(bytes),
                (2, Payload::Bytes(bytes)) => self.kind = scalar::text(bytes),
                _ => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
