//! Moving from client-side to server-side apply: kubectl's annotation of what it applied last.
//!
//! Matches v1.36 apimachinery/pkg/util/managedfields/internal/lastapplied*.go. Only the manager
//! called `kubectl` is treated this way.

use serde_json::{Map, Value};

use super::atom::Atom;
use super::set::FieldSet;
use super::typed;
use super::validate::{Duplicates, validate};
use crate::machinery::go::print;

/// The manager whose annotation counts.
pub(super) const KUBECTL: &str = "kubectl";

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The maximum size of all annotations together.
const MOST_BYTES: usize = 256 * 1024;

/// The fields that client-side apply wrote and that are unchanged since: taking those over
/// is not a conflict.
pub(super) fn allowed_conflicts(atom: Atom, api_version: &str, live: &Value) -> Option<FieldSet> {
    let text = annotation(live)?;
    validate(atom, live, Duplicates::Refuse).ok()?;
    let last: Value = serde_json::from_str(text).ok()?;
    if last.get("apiVersion").and_then(Value::as_str) != Some(api_version) {
        return None;
    }
    last.get("kind")
        .and_then(Value::as_str)
        .filter(|kind| !kind.is_empty())?;
    validate(atom, &last, Duplicates::Refuse).ok()?;
    let compared = typed::compare(atom, &last, live);
    Some(
        typed::fields_of(atom, &last)
            .difference(&compared.modified)
            .difference(&compared.added)
            .difference(&compared.removed),
    )
}

/// Updates the annotation of `object` to the configuration that kubectl has just applied.
pub(super) fn refresh(object: &mut Value, applied: &Value) {
    if annotation(object).is_none() {
        return;
    }
    let mut applied = applied.clone();
    if let Some(Value::Object(annotations)) = applied.pointer_mut("/metadata/annotations") {
        annotations.remove(ANNOTATION);
        // As an accessor that sets no annotations: the member is removed.
        if annotations.is_empty()
            && let Some(Value::Object(metadata)) = applied.get_mut("metadata")
        {
            metadata.remove("annotations");
        }
    }
    let Some(Value::Object(annotations)) = object.pointer_mut("/metadata/annotations") else {
        return;
    };
    let text = format!("{}\n", print::json(&applied));
    annotations.insert(ANNOTATION.to_owned(), Value::String(text));
    if size(annotations) > MOST_BYTES {
        annotations.remove(ANNOTATION);
    }
}

fn annotation(object: &Value) -> Option<&str> {
    object
        .get("metadata")?
        .get("annotations")?
        .get(ANNOTATION)?
        .as_str()
        .filter(|text| !text.is_empty())
}

fn size(annotations: &Map<String, Value>) -> usize {
    annotations
        .iter()
        .map(|(key, value)| key.len() + value.as_str().map_or(0, str::len))
        .sum()
}
