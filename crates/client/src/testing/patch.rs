//! Patches: RFC 7386, and of strategic merges the lists that loops patch.

use serde_json::Value;

/// Applies a merge patch. With `is_strategic`, items of `conditions` are merged by their type and
/// owners by their uid, and finalizers are added to or taken from.
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
            continue;
        }
        if is_strategic && let Some(name) = field.strip_prefix("$deleteFromPrimitiveList/") {
            list(object.entry(name).or_insert(Value::Null)).retain(|item| !contains(change, item));
            continue;
        }
        let place = object.entry(field).or_insert(Value::Null);
        match (is_strategic, field.as_str()) {
            (true, "conditions") => merge_items(place, change, "type"),
            (true, "ownerReferences") => merge_items(place, change, "uid"),
            (true, "finalizers") => {
                let new = change.as_array().into_iter().flatten();
                let new: Vec<Value> = new.filter(|item| !contains(place, item)).cloned().collect();
                list(place).extend(new);
            }
            _ => merge(place, change, is_strategic),
        }
    }
}

fn list(value: &mut Value) -> &mut Vec<Value> {
    if !value.is_array() {
        *value = Value::Array(Vec::new());
    }
    value.as_array_mut().expect("it has just become one")
}

fn contains(list: &Value, item: &Value) -> bool {
    list.as_array().is_some_and(|list| list.contains(item))
}

fn merge_items(target: &mut Value, patch: &Value, key: &str) {
    let items = list(target);
    for change in patch.as_array().into_iter().flatten() {
        if change["$patch"] == "delete" {
            items.retain(|item| item[key] != change[key]);
            continue;
        }
        match items.iter_mut().find(|item| item[key] == change[key]) {
            Some(item) => merge(item, change, true),
            None => items.push(change.clone()),
        }
    }
}
