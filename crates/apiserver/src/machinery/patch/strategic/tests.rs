use serde_json::{Value, json};

use super::*;
use crate::machinery::schema::schema;

fn merge(kind: &str, original: Value, patch: Value) -> Result<Value, String> {
    let version = if kind == "Deployment" {
        "apps/v1"
    } else {
        "v1"
    };
    let kind = schema().kind(version, kind).unwrap();
    let object = |value: Value| value.as_object().unwrap().clone();
    strategic_merge_patch(kind, object(original), object(patch))
        .map(Value::Object)
        .map_err(|error| error.to_string())
}

fn containers(names: &[&str]) -> Value {
    json!({"spec": {"containers": names.iter().map(|name| json!({"name": name})).collect::<Vec<_>>()}})
}

#[test]
fn new_items_precede_existing_ones() {
    let merged = merge("Pod", containers(&["a", "b"]), containers(&["z", "b"]));
    assert_eq!(merged, Ok(containers(&["z", "a", "b"])));
}

#[test]
fn slots_freed_by_deletions_affect_the_order() {
    let patch = json!({"spec": {
        "$setElementOrder/containers": [{"name": "c"}, {"name": "a"}],
        "containers": [{"name": "c"}, {"name": "b", "$patch": "delete"}],
    }});
    // Go's array is x, a, c after the deletion and the addition, so x comes before c.
    let merged = merge("Pod", containers(&["x", "b", "a"]), patch);
    assert_eq!(merged, Ok(containers(&["x", "c", "a"])));
}

#[test]
fn order_list_must_contain_the_items_of_the_patch() {
    let patch = json!({"metadata": {"$setElementOrder/finalizers": ["a"], "finalizers": ["b"]}});
    let merged = merge("Pod", json!({}), json!({"metadata": {}}));
    assert_eq!(merged, Ok(json!({"metadata": {}})));
    let merged = merge("Pod", json!({"metadata": {}}), patch);
    assert_eq!(
        merged,
        Err("The order in patch list:\n[b]\n doesn't match $setElementOrder list:\n[a]\n".into())
    );
}

#[test]
fn unknown_directives_are_refused() {
    let original = json!({"spec": {"nodeSelector": {"a": "b"}}});
    let patch = json!({"spec": {"nodeSelector": {"$patch": "merge"}}});
    assert_eq!(
        merge("Pod", original, patch),
        Err("unknown patch type: merge in map: map[$patch:merge]".into())
    );
}

#[test]
fn items_without_their_key_are_refused() {
    let patch = json!({"spec": {"containers": [{"image": "x"}]}});
    assert_eq!(
        merge("Pod", containers(&["a"]), patch),
        Err("map: map[image:x] does not contain declared merge key: name".into())
    );
}

#[test]
fn items_of_different_types_are_refused() {
    let patch = json!({"metadata": {"finalizers": [1]}});
    let original = json!({"metadata": {"finalizers": ["a"]}});
    assert_eq!(
        merge("Pod", original, patch),
        Err("list element types are not identical: [[a] [1]]".into())
    );
}

#[test]
fn lists_in_merged_lists_are_refused() {
    let patch = json!({"metadata": {"finalizers": [[1]]}});
    let original = json!({"metadata": {"finalizers": []}});
    assert_eq!(
        merge("Pod", original, patch),
        Err("lists of lists are not supported".into())
    );
}

#[test]
fn untyped_objects_on_both_sides_are_rejected() {
    let original = json!({"spec": {"colour": {"a": 1}}});
    let patch = json!({"spec": {"colour": {"b": 2}}});
    assert_eq!(
        merge("Pod", original, patch),
        Err("unable to find api field in struct PodSpec for the json field \"colour\"".into())
    );
}

#[test]
fn order_that_is_not_a_list_is_rejected() {
    let patch = json!({"spec": {"$setElementOrder/containers": "a"}});
    assert_eq!(
        merge("Pod", containers(&["a"]), patch),
        Err("expected a []interface {}, but received a string".into())
    );
}

#[test]
fn lists_without_a_strategy_are_replaced() {
    let original = json!({"spec": {"tolerations": [{"key": "a"}]}});
    let patch = json!({"spec": {"tolerations": [{"key": "b", "$patch": "delete", "value": null}]}});
    assert_eq!(merge("Pod", original, patch.clone()), Ok(patch));
}
