//! Writing an object, from the request to what is stored, without the store.
//!
//! Decoding, defaulting, field management, mutating admission, the kind's strategy,
//! validation, validating admission, in upstream's order: an object that is both malformed and
//! forbidden is malformed.
//!
//! Matches v1.36 apiserver/pkg/endpoints/handlers and apiserver/pkg/registry.
//!
//! Reading order: this file (arguments and results), `read` (bodies to objects), `identity`
//! (of path and object), `owners`, `context` (what
//! is collected during a write), `create`, `update`, `patch`, `scale`, `stored` (kinds that
//! share their objects).

mod context;
mod create;
mod identity;
mod owners;
mod patch;
mod read;
mod scale;
mod stored;
#[cfg(test)]
mod tests;
mod update;

use serde_json::{Map, Value};

use super::apply::FieldManager;
use crate::kinds::{GroupVersionKind, Kind};
use crate::status::Status;

pub use super::decoding::{BodyFormat, FieldValidation};
pub use super::patch::PatchType;
pub use super::validation::{Part, Rules};
pub use create::create;
pub use patch::patch;
pub use scale::scale_of;
pub use stored::{from_stored, to_stored};
pub use update::{replace, update};

/// A write request.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The kind of the path.
    pub kind: &'static Kind,
    /// The subresource.
    pub part: Part,
    /// The namespace in the path, empty for cluster-scoped kinds.
    pub namespace: &'a str,
    /// The name in the path, empty if the object has the name.
    pub name: &'a str,
    /// The field manager.
    pub manager: &'a str,
    /// The time, RFC 3339 in whole seconds.
    pub now: &'a str,
    /// The handling of unknown fields.
    pub validation: FieldValidation,
    /// The capabilities of the cluster.
    pub rules: Rules,
}

/// A body and its format.
#[derive(Clone, Copy, Debug)]
pub struct Body<'a> {
    /// The bytes.
    pub bytes: &'a [u8],
    /// The format; a PATCH has its own types and does not use this.
    pub format: BodyFormat,
}

/// The generated identity of a new object.
#[derive(Clone, Copy, Debug)]
pub struct Identity<'a> {
    /// The uid.
    pub uid: &'a str,
    /// The suffix for `generateName`.
    pub name_suffix: &'a str,
}

/// Admission. `old` is `None` for new objects.
pub trait Admission {
    /// Mutates the object, or rejects it.
    fn admit(&mut self, object: &mut Value, old: Option<&Value>) -> Result<(), Status>;

    /// Validates the object to be stored.
    fn check(&mut self, object: &Value, old: Option<&Value>) -> Result<(), Status>;

    /// Warnings for the caller; called once, at the end.
    fn warnings(&mut self) -> Vec<String> {
        Vec::new()
    }
}

/// The result of a write.
#[derive(Clone, Debug, PartialEq)]
pub struct Accepted {
    /// The object, without a resourceVersion.
    pub object: Value,
    /// Warnings for the caller.
    pub warnings: Vec<String>,
    /// Whether the object is new.
    pub is_new: bool,
    /// The version in the caller's object; it has been compared with the old object's.
    pub resource_version: Option<String>,
}

impl Accepted {
    /// An update that the server itself makes to an existing object.
    pub fn unchecked(object: Value) -> Accepted {
        Accepted {
            object,
            warnings: Vec::new(),
            is_new: false,
            resource_version: None,
        }
    }
}

impl Request<'_> {
    /// The kind of the body: the object's kind, or a subresource's own.
    fn body_type(&self) -> GroupVersionKind {
        match self.part {
            Part::Scale => scale::SCALE,
            _ => self.kind.group_version_kind(),
        }
    }

    /// The namespace of the objects.
    fn expected_namespace(&self) -> &str {
        if self.kind.is_namespaced() {
            self.namespace
        } else {
            ""
        }
    }

    /// The field manager of the request; `None` for kinds that no table has.
    fn field_manager(&self) -> Option<FieldManager> {
        let of = self.body_type();
        FieldManager::new(&of.api_version(), of.kind, self.part.subresource())
    }

    /// A new or updated object with its `managedFields`.
    fn track(&self, old: Option<&Value>, object: Value) -> Value {
        match self.field_manager() {
            Some(fields) => fields.update(old, object, self.manager, self.now),
            None => object,
        }
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn remove(object: &mut Value, field: &str) {
    if let Some(object) = object.as_object_mut() {
        object.remove(field);
    }
}

/// The object's metadata, created if it is missing.
fn metadata(object: &mut Value) -> &mut Value {
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let members = object
        .as_object_mut()
        .expect("anything else was replaced by an object");
    if !members.get("metadata").is_some_and(Value::is_object) {
        members.insert("metadata".to_owned(), Value::Object(Map::new()));
    }
    members
        .get_mut("metadata")
        .expect("missing metadata was inserted")
}

/// Runs a function on the object without its managers. The sets of fields are
/// often half of an object, and decoding them into types takes as long.
fn without_field_sets<T>(object: &mut Value, run: impl FnOnce(&Value) -> T) -> T {
    let sets: Vec<Option<Value>> = entries(object)
        .map(|entry| entry.as_object_mut()?.remove(FIELDS))
        .collect();
    let outcome = run(object);
    for (entry, set) in entries(object).zip(sets) {
        if let (Some(entry), Some(set)) = (entry.as_object_mut(), set) {
            entry.insert(FIELDS.to_owned(), set);
        }
    }
    outcome
}

const FIELDS: &str = "fieldsV1";

fn entries(object: &mut Value) -> impl Iterator<Item = &mut Value> {
    let entries = object
        .get_mut("metadata")
        .and_then(|meta| meta.get_mut("managedFields"))
        .and_then(Value::as_array_mut);
    entries.into_iter().flatten()
}

fn name_of(object: &Value) -> &str {
    text(&object["metadata"]["name"])
}
