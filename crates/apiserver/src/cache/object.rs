//! A cached object: its bytes, and the parts that selectors use.

use std::sync::Arc;

use bytes::Bytes;
use plimsoll_core::object::selector::{FieldSelector, LabelSelector, Lookup};
use serde_json::Value;

use super::encoding::{encode, encode_with_revision, is_laid_out, metadata_offset};
use super::extract::{SelectorFields, SelectorPaths};
use crate::bounds::{self, TooDeep};
use crate::store::Revision;

/// An object at a revision.
#[derive(Debug)]
pub struct Object {
    /// `namespace/name`, or the name alone for kinds without namespaces.
    key: Arc<str>,
    /// When it was written; for a deleted object, when it was deleted.
    revision: Revision,
    /// As clients get it, with its revision.
    json: Bytes,
    facets: Arc<SelectorFields>,
}

/// Which program has encoded a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoder {
    /// This one, from an object in memory: its texts and numbers are valid.
    ThisProcess,
    /// Another server, an earlier version, or one with a bug.
    Unknown,
}

/// A stored value is not an object that clients could decode.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unreadable {
    /// Not JSON, or not what `serde_json` takes for it.
    #[error("not JSON")]
    Malformed(#[from] serde_json::Error),
    /// Another value than an object with metadata.
    #[error("not an object with metadata")]
    NoObject,
    /// Damaged, or encrypted with a key that is not available.
    #[error("{0}")]
    Stored(Arc<str>),
    /// Nested more deeply than clients decode.
    #[error(transparent)]
    TooDeep(#[from] TooDeep),
}

impl Object {
    /// Parses a stored value. Every client can decode the result, also as an item of a list.
    pub(crate) fn read(
        key: Arc<str>,
        revision: Revision,
        stored: &[u8],
        wanted: &SelectorPaths,
        encoder: Encoder,
    ) -> Result<Object, Unreadable> {
        let scanned = match encoder {
            Encoder::ThisProcess => wanted.scan(stored),
            Encoder::Unknown => None,
        };
        let facets = match scanned {
            Some(facets) => facets,
            None => {
                bounds::check(stored)?;
                wanted.extract(stored)?
            }
        };
        let json = if is_laid_out(stored) {
            encode_with_revision(stored, revision)
        } else {
            // Written by another program than this server.
            let object: Value = serde_json::from_slice(stored)?;
            if !object.get("metadata").is_some_and(Value::is_object) {
                return Err(Unreadable::NoObject);
            }
            encode_with_revision(&encode(&object), revision)
        };
        Ok(Object {
            key,
            revision,
            json,
            facets: Arc::new(facets),
        })
    }

    /// The same content at the revision at which it was deleted.
    pub(super) fn deleted_at(&self, revision: Revision) -> Object {
        let version = |revision: Revision| format!("\"resourceVersion\":\"{revision}\"");
        let (old, new) = (version(self.revision), version(revision));
        let at = metadata_offset(&self.json).map(|offset| offset + b"\"metadata\":{".len());
        let json = match at {
            Some(at) if self.json[at..].starts_with(old.as_bytes()) => {
                let mut json = Vec::with_capacity(self.json.len() + 4);
                json.extend_from_slice(&self.json[..at]);
                json.extend_from_slice(new.as_bytes());
                json.extend_from_slice(&self.json[at + old.len()..]);
                json.into()
            }
            _ => self.json.clone(),
        };
        Object {
            key: Arc::clone(&self.key),
            revision,
            json,
            facets: Arc::clone(&self.facets),
        }
    }

    /// `namespace/name`, or the name alone.
    pub fn key(&self) -> &Arc<str> {
        &self.key
    }

    /// The namespace; empty for kinds without.
    pub fn namespace(&self) -> &str {
        self.key
            .split_once('/')
            .map_or("", |(namespace, _)| namespace)
    }

    /// The name.
    pub fn name(&self) -> &str {
        self.key
            .split_once('/')
            .map_or(&*self.key, |(_, name)| name)
    }

    /// When it was written or deleted.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// In the form that clients get.
    pub fn json(&self) -> &Bytes {
        &self.json
    }

    /// In the form of a list item, where the list has the type: the part after `{`.
    pub fn json_in_list(&self) -> Bytes {
        let offset = metadata_offset(&self.json).unwrap_or(1);
        self.json.slice(offset..)
    }

    /// The parsed object. It was validated when it came from the store, so an error is a bug.
    pub(crate) fn value(&self) -> Result<Value, Unreadable> {
        Ok(serde_json::from_slice(&self.json)?)
    }

    /// Whether a selector matches.
    pub fn matches(&self, labels: &LabelSelector, fields: &FieldSelector) -> bool {
        (labels.is_empty() || labels.matches(&*self.facets)) && self.matches_fields(fields)
    }

    /// A field that the kind can be selected by.
    pub(crate) fn field(&self, label: &str) -> Option<&str> {
        match label {
            "metadata.name" => Some(self.name()),
            "metadata.namespace" => Some(self.namespace()),
            _ => self.facets.field(label),
        }
    }

    fn matches_fields(&self, fields: &FieldSelector) -> bool {
        fields.is_empty() || fields.matches(&Fields(self))
    }
}

/// The selectable fields: two come from the key, the others were extracted.
struct Fields<'a>(&'a Object);

impl Lookup for Fields<'_> {
    fn lookup(&self, label: &str) -> Option<&str> {
        self.0.field(label)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds::MAX_DEPTH;

    fn read(stored: &str) -> Result<Object, Unreadable> {
        let wanted = SelectorPaths::of_storage("configmaps");
        Object::read(
            "d/a".into(),
            7,
            stored.as_bytes(),
            &wanted,
            Encoder::Unknown,
        )
    }

    #[test]
    fn values_that_clients_cannot_decode_are_not_objects() {
        let nested = |levels: usize| {
            let (open, close) = ("[".repeat(levels), "]".repeat(levels));
            format!(r#"{{"metadata":{{}},"x":{open}{close}}}"#)
        };
        assert!(read(&nested(MAX_DEPTH - 1)).is_ok());
        for stored in [
            &nested(MAX_DEPTH) as &str,
            &nested(200),
            &nested(200_000),
            "",
            "5",
            "null",
            "[]",
            "{}",
            "k8s\u{0}",
            r#"{"metadata":5}"#,
            r#"{"metadata":{}"#,
            r#"{"metadata":{}}{}"#,
            r#"{"metadata":{},"x":"\ud800"}"#,
            r#"{"metadata":{},"x":1e999}"#,
            r#"{"metadata":{},"x":}"#,
        ] {
            assert!(read(stored).is_err(), "{}", &stored[..stored.len().min(60)]);
        }
        let wanted = SelectorPaths::of_storage("configmaps");
        let text = b"{\"metadata\":{},\"x\":\"\xff\"}";
        assert!(Object::read("d/a".into(), 7, text, &wanted, Encoder::Unknown).is_err());
    }

    #[test]
    fn objects_of_other_writers_are_normalized() {
        for stored in [
            r#"{"metadata":{"name":"a"},"kind":"ConfigMap"}"#,
            r#"{"data":{"metadata":{"x":"y"}},"kind":"ConfigMap","metadata":{"name":"a"}}"#,
            r#" { "kind": "ConfigMap", "metadata": {"name": "a"} } "#,
            r#"{"kind":"a\"metadata\":{","metadata":{"name":"a"}}"#,
        ] {
            let object = read(stored).unwrap();
            let value = object.value().unwrap();
            assert_eq!(value["metadata"]["resourceVersion"], "7", "{stored}");
            let item = [b"{".as_slice(), &object.json_in_list()].concat();
            let item: Value = serde_json::from_slice(&item).unwrap();
            assert_eq!(item["metadata"]["name"], "a", "{stored}");
        }
    }
}
