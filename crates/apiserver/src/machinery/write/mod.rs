//! The way of an object from the wire to the store, without the store.
//!
//! Decoding, defaults, who manages which field, mutating admission, the kind's strategy,
//! validation, validating admission, in upstream's order: an object that is both malformed and
//! forbidden is malformed.
//!
//! Matches v1.36 apiserver/pkg/endpoints/handlers and apiserver/pkg/registry.
//!
//! Reading order: this file (what goes in and comes out), `read` (bodies to objects), `identity`
//! (path and object agree), `owners`, `context` (what
//! is collected on the way), `create`, `update`, `patch`, `scale`, `stored` (kinds that
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

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The kind behind the path.
    pub kind: &'static Kind,
    /// The part of the object.
    pub part: Part,
    /// The namespace in the path, empty for kinds without.
    pub namespace: &'a str,
    /// The name in the path, empty when the object is to bring its own.
    pub name: &'a str,
    /// Who manages the fields that are written.
    pub manager: &'a str,
    /// The time, RFC 3339 in whole seconds.
    pub now: &'a str,
    /// What to do about unknown fields.
    pub validation: FieldValidation,
    /// What the cluster allows.
    pub rules: Rules,
}

/// A body and how it is written.
#[derive(Clone, Copy, Debug)]
pub struct Body<'a> {
    /// The bytes.
    pub bytes: &'a [u8],
    /// How they are written; a PATCH has its own types and does not look at this.
    pub format: BodyFormat,
}

/// What a server invents for a new object.
#[derive(Clone, Copy, Debug)]
pub struct Identity<'a> {
    /// The uid.
    pub uid: &'a str,
    /// What `generateName` is followed by.
    pub name_suffix: &'a str,
}

/// Who has a say about objects besides their kind. `old` is `None` for new objects.
pub trait Admission {
    /// Changes the object, or refuses it.
    fn admit(&mut self, object: &mut Value, old: Option<&Value>) -> Result<(), Status>;

    /// Judges the object that would be stored.
    fn check(&mut self, object: &Value, old: Option<&Value>) -> Result<(), Status>;

    /// What the caller should be told; asked for once, at the end.
    fn warnings(&mut self) -> Vec<String> {
        Vec::new()
    }
}

/// An object that may be stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Accepted {
    /// The object, without a resourceVersion.
    pub object: Value,
    /// What the caller should be told.
    pub warnings: Vec<String>,
    /// Whether there was none before.
    pub is_new: bool,
    /// The version that the caller's object named; it has been compared with the old object's.
    pub resource_version: Option<String>,
}

impl Accepted {
    /// A change that the server makes itself to an object that is there.
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
    /// What the body is: an object of the kind, or a part of it that is a kind of its own.
    fn body_type(&self) -> GroupVersionKind {
        match self.part {
            Part::Scale => scale::SCALE,
            _ => self.kind.group_version_kind(),
        }
    }

    /// The namespace that objects are in.
    fn expected_namespace(&self) -> &str {
        if self.kind.is_namespaced() {
            self.namespace
        } else {
            ""
        }
    }

    /// Who tracks the fields of what is sent; `None` for kinds that no table has.
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

/// The object's metadata, made where there is none.
fn metadata(object: &mut Value) -> &mut Value {
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let metadata = &mut object["metadata"];
    if !metadata.is_object() {
        *metadata = Value::Object(Map::new());
    }
    metadata
}

/// Runs something on the object that does not care who manages which field. The sets of fields are
/// often half of an object, and reading them into types takes as long.
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
