//! The encoding of an object, in the store and to clients.
//!
//! `kind`, `apiVersion` and `metadata` come first, as upstream writes them. That makes it possible
//! to add the revision, or to leave out the type inside of a list, without parsing the object.

use bytes::{BufMut, Bytes, BytesMut};
use serde_json::Value;

use crate::store::Revision;

/// Where an object's metadata begins.
const METADATA: &[u8] = b"\"metadata\":{";

/// The object as the store keeps it. It must not have a `resourceVersion`: the store gives it one.
pub fn encode(object: &Value) -> Bytes {
    let mut bytes = Vec::with_capacity(2048);
    let empty = serde_json::Map::new();
    let fields = object.as_object().unwrap_or(&empty);
    let first = ["kind", "apiVersion", "metadata"];
    let known = first
        .iter()
        .filter_map(|name| fields.get_key_value(*name))
        .map(|(name, value)| (name.as_str(), value));
    let others = fields
        .iter()
        .map(|(name, value)| (name.as_str(), value))
        .filter(|(name, _)| !first.contains(name));
    bytes.push(b'{');
    for (at, (name, value)) in known.chain(others).enumerate() {
        if at > 0 {
            bytes.push(b',');
        }
        write_json(&mut bytes, &name);
        bytes.push(b':');
        write_json(&mut bytes, value);
    }
    bytes.push(b'}');
    bytes.into()
}

fn write_json(bytes: &mut Vec<u8>, value: &(impl serde::Serialize + ?Sized)) {
    serde_json::to_writer(bytes, value).expect("JSON values serialise into memory");
}

/// Where the metadata of an encoded object begins. Texts inside of an object have their quotes
/// escaped and only the type precedes the metadata, so the first match is the right one.
pub(super) fn metadata_offset(encoded: &[u8]) -> Option<usize> {
    let window = encoded.len().min(1024);
    let head = &encoded[..window];
    let quotes = head.iter().enumerate().filter(|(_, byte)| **byte == b'"');
    let mut quotes = quotes.map(|(at, _)| at);
    quotes.find(|at| head[*at..].starts_with(METADATA))
}

/// Whether metadata begins where [`metadata_offset`] finds it, and nothing but the type stands
/// before: so for all that [`encode`] has written.
pub(super) fn is_laid_out(encoded: &[u8]) -> bool {
    let Some(offset) = metadata_offset(encoded) else {
        return false;
    };
    let Some(mut rest) = encoded[..offset].strip_prefix(b"{") else {
        return false;
    };
    for name in [b"\"kind\":\"".as_slice(), b"\"apiVersion\":\""] {
        let Some(value) = rest.strip_prefix(name) else {
            continue;
        };
        let end = value.iter().position(|byte| matches!(byte, b'"' | b'\\'));
        match end.and_then(|end| value[end..].strip_prefix(b"\",")) {
            Some(behind) => rest = behind,
            None => return false,
        }
    }
    rest.is_empty()
}

/// A stored object with its revision in it, as clients get it.
pub fn encode_with_revision(stored: &[u8], revision: Revision) -> Bytes {
    let Some(offset) = metadata_offset(stored) else {
        return Bytes::copy_from_slice(stored);
    };
    let at = offset + METADATA.len();
    let version = format!("\"resourceVersion\":\"{revision}\"");
    let mut bytes = BytesMut::with_capacity(stored.len() + version.len() + 1);
    bytes.put_slice(&stored[..at]);
    bytes.put_slice(version.as_bytes());
    if stored.get(at) != Some(&b'}') {
        bytes.put_u8(b',');
    }
    bytes.put_slice(&stored[at..]);
    bytes.freeze()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_revision_is_added_without_parsing() {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "data": {"a": "\"metadata\":{"}, "metadata": {"name": "x"}});
        let stored = encode(&object);
        let text = String::from_utf8(stored.to_vec()).unwrap();
        assert!(text.starts_with("{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{"));
        let sent = encode_with_revision(&stored, 42);
        let sent: Value = serde_json::from_slice(&sent).unwrap();
        let mut expected = object;
        expected["metadata"]["resourceVersion"] = json!("42");
        assert_eq!(sent, expected);
    }

    #[test]
    fn empty_metadata_gets_a_revision_too() {
        let sent = encode_with_revision(&encode(&json!({"kind": "A", "metadata": {}})), 7);
        let expected = "{\"kind\":\"A\",\"metadata\":{\"resourceVersion\":\"7\"}}";
        assert_eq!(sent, expected.as_bytes());
    }
}
