//! The defaults that the API sets before an object is validated.
//!
//! Upstream registers defaults by Go type, not by kind: a probe gets its ten seconds wherever a
//! probe is. So does this: an object is walked by its type and each struct gets the defaults
//! of its type, outer structs before those within. Objects must be canonical, in which an unset
//! value is an absent member.
//!
//! Reading order: this file, `core`, `pod`, `volume`, `workload`, `other` (defaults by type),
//! `image` (image names and tags).

mod core;
mod image;
mod other;
mod pod;
mod volume;
mod workload;

#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

use crate::kinds::GroupVersionKind;
use crate::machinery::schema::{StructId, schema, walk};

/// A struct that gets its defaults.
type Object = Map<String, Value>;

/// Sets the defaults of a kind that has any. The object must be canonical.
///
/// Matches v1.36 pkg/apis/*/v1/defaults.go and the `+default` markers of the types.
pub fn apply_defaults(of: GroupVersionKind, object: &mut Value) {
    if let Some(id) = schema().of(of) {
        apply_defaults_of_type(id, object);
    }
}

fn apply_defaults_of_type(id: StructId, object: &mut Value) {
    walk(id, object, &mut |fields, members| {
        let name = fields.name;
        match fields.package {
            "core" => {
                core::apply(name, members);
                pod::apply(name, members);
                volume::apply(name, members);
            }
            "apps" | "batch" => workload::apply(name, members),
            package => other::apply(package, name, members),
        }
        core::round_resource_lists(fields, members);
    });
}

/// Sets an unset member.
fn default(object: &mut Object, field: &str, value: impl Into<Value>) {
    if !object.contains_key(field) {
        object.insert(field.to_owned(), value.into());
    }
}

/// A nested struct; created if it is missing.
fn child<'a>(object: &'a mut Object, field: &str) -> &'a mut Object {
    let value = object
        .entry(field)
        .or_insert_with(|| Value::Object(Object::new()));
    if !value.is_object() {
        *value = Value::Object(Object::new());
    }
    value
        .as_object_mut()
        .expect("anything else was replaced by an object")
}

fn text<'a>(object: &'a Object, field: &str) -> &'a str {
    object
        .get(field)
        .and_then(Value::as_str)
        .unwrap_or_default()
}
