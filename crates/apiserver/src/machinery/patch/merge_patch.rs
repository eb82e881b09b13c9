//! RFC 7386 patches: values replace, null deletes, objects merge.
//!
//! Matches v1.36 vendor/gopkg.in/evanphx/json-patch.v4 `MergePatch`: nulls inside of values that
//! are new are dropped, within lists too, but not where a list or scalar takes an object's place.

use serde_json::{Map, Value};

/// Merges `patch` into `document`. A patch that is not an object replaces the document.
pub fn merge_patch(document: Value, patch: Value) -> Value {
    match (document, patch) {
        (Value::Object(mut document), Value::Object(patch)) => {
            merge(&mut document, patch);
            Value::Object(document)
        }
        (_, mut patch) => {
            drop_nulls(&mut patch);
            patch
        }
    }
}

fn merge(document: &mut Map<String, Value>, patch: Map<String, Value>) {
    for (key, mut value) in patch {
        if value.is_null() {
            document.remove(&key);
            continue;
        }
        match (document.get_mut(&key), value) {
            (Some(Value::Object(current)), Value::Object(change)) => merge(current, change),
            (Some(Value::Object(_)), change) => {
                document.insert(key, change);
            }
            (_, change) => {
                value = change;
                drop_nulls(&mut value);
                document.insert(key, value);
            }
        }
    }
}

/// Removes null members of all objects; null items of lists stay.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, item| !item.is_null());
            map.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}
