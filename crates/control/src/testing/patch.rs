//! Patches: RFC 7386, and of strategic merges the lists that loops patch.

use serde_json::Value;

/// Applies a merge patch; with `is_strategic`, items of `conditions` are merged by their type.
pub(super) fn merge(target: &mut Value, patch: &Value, is_strategic: bool) {
    let Value::Object(changes) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(serde_json::Map::new());
    }
    let object = target.as_object_mut().expect("it has just become one");
    for (field, change) in changes {
        if change.is_null() {
            object.remove(field);
        } else if is_strategic && field == "conditions" {
            merge_by_type(object.entry(field).or_insert(Value::Null), change);
        } else if !is_strategic || !field.starts_with('$') {
            merge(
                object.entry(field).or_insert(Value::Null),
                change,
                is_strategic,
            );
        }
    }
}

fn merge_by_type(target: &mut Value, patch: &Value) {
    if !target.is_array() {
        *target = Value::Array(Vec::new());
    }
    let items = target.as_array_mut().expect("it has just become one");
    for change in patch.as_array().into_iter().flatten() {
        match items.iter_mut().find(|item| item["type"] == change["type"]) {
            Some(item) => merge(item, change, true),
            None => items.push(change.clone()),
        }
    }
}
