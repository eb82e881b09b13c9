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

use std::sync::LazyLock;

use serde_json::{Map, Value};

use crate::kinds::GroupVersionKind;
use crate::machinery::schema::{Visits, schema};

/// A struct that gets its defaults.
type Object = Map<String, Value>;

/// The defaults of a type of struct.
struct Defaults {
    set: Option<fn(&mut Object)>,
    /// The fields that are lists of resources.
    amounts: Vec<&'static str>,
}

static DEFAULTS: LazyLock<Visits<Defaults>> = LazyLock::new(|| {
    Visits::new(|fields| {
        let defaults = Defaults {
            set: defaults_of(fields.package, fields.name),
            amounts: core::resource_lists(fields),
        };
        (defaults.set.is_some() || !defaults.amounts.is_empty()).then_some(defaults)
    })
});

fn defaults_of(package: &str, name: &str) -> Option<fn(&mut Object)> {
    match package {
        "core" => core::of(name)
            .or_else(|| pod::of(name))
            .or_else(|| volume::of(name)),
        "apps" | "batch" => workload::of(name),
        package => other::of(package, name),
    }
}

/// Sets the defaults of a kind that has any. The object must be canonical.
///
/// Matches v1.36 pkg/apis/*/v1/defaults.go and the `+default` markers of the types.
pub fn apply_defaults(of: GroupVersionKind, object: &mut Value) {
    let Some(id) = schema().of(of) else { return };
    DEFAULTS.walk(id, object, &|defaults, members| {
        if let Some(set) = defaults.set {
            set(members);
        }
        for list in &defaults.amounts {
            core::round_amounts(members, list);
        }
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
