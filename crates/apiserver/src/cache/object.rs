//! An object as it is kept: its bytes, and what selectors look at.

use std::sync::Arc;

use bytes::Bytes;
use plimsoll_core::object::selector::{FieldSelector, LabelSelector, Lookup};
use serde_json::Value;

use super::encoding::{encode_with_revision, metadata_offset};
use super::extract::{Facets, Wanted};
use crate::store::Revision;

/// An object at a revision.
#[derive(Debug)]
pub struct Object {
    /// `namespace/name`, or the name alone for kinds without namespaces.
    key: Arc<str>,
    /// When it was written; for an object that is gone, when it was deleted.
    revision: Revision,
    /// As clients get it, with its revision.
    json: Bytes,
    facets: Arc<Facets>,
}

/// What was stored cannot be read back.
#[derive(Debug, thiserror::Error)]
#[error("stored object {key:?} is not JSON")]
pub(crate) struct Unreadable {
    key: String,
    #[source]
    source: serde_json::Error,
}

impl Object {
    /// Reads what the store has.
    pub(crate) fn read(
        key: Arc<str>,
        revision: Revision,
        stored: &[u8],
        wanted: &Wanted,
    ) -> Result<Object, Unreadable> {
        let facets = wanted.extract(stored).map_err(|source| Unreadable {
            key: key.to_string(),
            source,
        })?;
        Ok(Object {
            key,
            revision,
            json: encode_with_revision(stored, revision),
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

    /// As clients get it.
    pub fn json(&self) -> &Bytes {
        &self.json
    }

    /// As it stands in a list, where the type is the list's to say: the part after `{`.
    pub fn json_in_list(&self) -> Bytes {
        let offset = metadata_offset(&self.json).unwrap_or(1);
        self.json.slice(offset..)
    }

    /// The parsed object.
    pub fn value(&self) -> Value {
        serde_json::from_slice(&self.json).expect("what was read from the store is JSON")
    }

    /// Whether it is selected.
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
