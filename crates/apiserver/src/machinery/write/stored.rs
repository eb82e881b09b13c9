//! Kinds that are encodings of the same stored objects: events.
//!
//! `metadata.managedFields` stays as it is: each entry says in which encoding its fields are.

use serde_json::Value;

use crate::kinds::Kind;
use crate::machinery::event_encoding::{to_core, to_events};

/// Converts an object of the kind to the form that is stored.
pub fn to_stored(kind: &Kind, object: &mut Value) {
    if is_other_event(kind) {
        to_core(object);
    }
}

/// Converts a stored object to one of the kind.
pub fn from_stored(kind: &Kind, object: &mut Value) {
    if is_other_event(kind) {
        to_events(object);
    }
}

fn is_other_event(kind: &Kind) -> bool {
    (kind.group, kind.kind) == ("events.k8s.io", "Event")
}
