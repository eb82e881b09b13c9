use serde_json::{Value, json};

use super::*;

const NOW: &str = "2026-01-01T00:00:00Z";
const LATER: &str = "2026-01-01T00:01:00Z";

fn config_maps() -> FieldManager {
    FieldManager::new("v1", "ConfigMap", "").unwrap()
}

fn config_map(data: Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c", "namespace": "n"},
        "data": data,
    })
}

fn created(manager: &str, data: Value) -> Value {
    let mut object = config_maps().update(None, config_map(data), manager, NOW);
    object["metadata"]["uid"] = json!("u");
    object
}

/// Manager, operation and fields of each entry.
fn entries(object: &Value) -> Vec<(String, String, Value)> {
    let entries = object["metadata"]["managedFields"].as_array();
    entries
        .into_iter()
        .flatten()
        .map(|entry| {
            let text = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
            (
                text("manager"),
                text("operation"),
                entry["fieldsV1"].clone(),
            )
        })
        .collect()
}

fn entry(manager: &str, operation: &str, fields: Value) -> (String, String, Value) {
    (manager.to_owned(), operation.to_owned(), fields)
}

#[test]
fn untracked_fields_belong_to_before_first_apply() {
    let live = config_map(json!({"a": "1"}));
    let object = config_maps()
        .apply(Some(&live), &config_map(json!({"b": "2"})), "m", false, NOW)
        .unwrap();
    assert_eq!(object["data"], json!({"a": "1", "b": "2"}));
    assert_eq!(
        entries(&object),
        [
            entry("m", "Apply", json!({"f:data": {"f:b": {}}})),
            entry(
                "before-first-apply",
                "Update",
                json!({"f:data": {".": {}, "f:a": {}}})
            ),
        ]
    );
}

#[test]
fn untracked_objects_stay_untracked_when_updated() {
    let live = config_map(json!({"a": "1"}));
    let object = config_maps().update(Some(&live), config_map(json!({"a": "2"})), "m", NOW);
    assert_eq!(entries(&object), []);
}

#[test]
fn empty_managed_fields_reset_ownership() {
    let live = created("m", json!({"a": "1"}));
    let mut new = config_map(json!({"a": "2"}));
    new["metadata"]["managedFields"] = json!([{}]);
    let object = config_maps().update(Some(&live), new, "m", NOW);
    assert_eq!(entries(&object), []);
}

#[test]
fn excess_updaters_are_merged_into_ancient_changes() {
    let mut object = created("m0", json!({"k0": "v"}));
    for number in 1..12 {
        let mut new = object.clone();
        new["data"][format!("k{number}")] = json!("v");
        let time = format!("2026-01-01T00:00:{number:02}Z");
        object = config_maps().update(Some(&object), new, &format!("m{number}"), &time);
    }
    let entries = entries(&object);
    assert_eq!(entries.len(), 10);
    assert_eq!(
        entries[0],
        entry(
            "ancient-changes",
            "Update",
            json!({"f:data": {".": {}, "f:k0": {}, "f:k1": {}, "f:k2": {}}})
        )
    );
}

#[test]
fn kubectl_takes_over_client_side_applied_fields() {
    let mut live = config_map(json!({"a": "1"}));
    live["metadata"]["annotations"] = json!({
        "kubectl.kubernetes.io/last-applied-configuration": config_map(json!({"a": "1"})).to_string(),
    });
    let live = config_maps().update(None, live, "kubectl-client-side-apply", NOW);
    let applied = config_map(json!({"a": "2"}));
    assert_eq!(
        config_maps()
            .apply(Some(&live), &applied, "other", false, LATER)
            .unwrap_err()
            .code,
        409
    );
    let object = config_maps()
        .apply(Some(&live), &applied, "kubectl", false, LATER)
        .unwrap();
    assert_eq!(object["data"], json!({"a": "2"}));
    let annotation =
        &object["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"];
    assert_eq!(annotation.as_str().unwrap(), format!("{applied}\n"));
}

#[test]
fn conflicts_name_subresource_and_version() {
    let status = FieldManager::new("v1", "Node", "status").unwrap();
    let node = |capacity: &str| {
        json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "n"},
            "status": {"capacity": {"cpu": capacity}},
        })
    };
    let live = status.update(None, node("1"), "kubelet", NOW);
    let refusal = status
        .apply(Some(&live), &node("2"), "m", false, NOW)
        .unwrap_err();
    assert_eq!(
        refusal.message,
        "Apply failed with 1 conflict: conflict with \"kubelet\" with subresource \"status\" using v1: .status.capacity.cpu"
    );
}

#[test]
fn values_of_wrong_type_are_rejected() {
    let refuse = |applied: Value| {
        let pods = FieldManager::new("v1", "Pod", "").unwrap();
        pods.apply(None, &applied, "m", false, NOW)
            .unwrap_err()
            .message
    };
    let pod = |spec: Value| json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec});
    let prefix = "failed to create typed patch object (/p; /v1, Kind=Pod): ";
    for (spec, want) in [
        (
            json!({"colour": 1}),
            ".spec.colour: field not declared in schema",
        ),
        (
            json!({"hostNetwork": "x"}),
            ".spec.hostNetwork: expected boolean, got &{x}",
        ),
        (
            json!({"hostname": 1}),
            ".spec.hostname: expected string, got &value.valueUnstructured{Value:1}",
        ),
        (
            json!({"priority": "x"}),
            ".spec.priority: expected numeric (int or float), got string",
        ),
        (
            json!({"containers": {}}),
            ".spec.containers: expected list, got &{map[]}",
        ),
        (
            json!({"nodeSelector": []}),
            ".spec.nodeSelector: expected map, got &{[]}",
        ),
        (
            json!({"containers": [null]}),
            ".spec.containers: element 0: associative list with keys may not have a null element",
        ),
    ] {
        assert_eq!(refuse(pod(spec)), format!("{prefix}{want}"));
    }
    let other = json!({"apiVersion": "apps/v1", "kind": "Pod"});
    assert_eq!(refuse(other), "invalid object type: apps/v1, Kind=Pod");
}

#[test]
fn fields_v1_round_trips() {
    let fields = json!({
        "f:a": {},
        "f:b": {".": {}, "f:c": {}, "k:{\"name\":\"x\",\"port\":80}": {".": {}, "f:d": {}}},
        "f:e": {"v:\"x\"": {}, "v:1": {}, "i:3": {}},
    });
    let set = FieldSet::from_fields_v1(&fields).unwrap();
    assert_eq!(set.to_fields_v1(), fields);
    for bad in [
        json!({"x": {}}),
        json!({"fa": {}}),
        json!({"v:{": {}}),
        json!({"f:a": 1}),
        json!([]),
    ] {
        assert!(FieldSet::from_fields_v1(&bad).is_err(), "{bad}");
    }
    let newer = json!({"f:a": {}, "z:1": {}});
    assert_eq!(
        FieldSet::from_fields_v1(&newer).unwrap().to_fields_v1(),
        json!({"f:a": {}})
    );
}

#[test]
fn scale_owns_the_replicas_of_the_object() {
    let deployments = FieldManager::new("apps/v1", "Deployment", "").unwrap();
    let deployment = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {"replicas": 1, "paused": true},
    });
    let object = deployments
        .apply(None, &deployment, "m", false, NOW)
        .unwrap();
    let parent = object["metadata"]["managedFields"]
        .as_array()
        .unwrap()
        .clone();
    let of_scale = scale::to_scale(&parent, "apps/v1").unwrap().unwrap();
    let mut live = json!({
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {"name": "d", "managedFields": of_scale},
        "spec": {"replicas": 1},
    });
    assert_eq!(
        entries(&live),
        [entry("m", "Apply", json!({"f:spec": {"f:replicas": {}}}))]
    );
    let scales = FieldManager::new("autoscaling/v1", "Scale", "scale").unwrap();
    let mut new = live.clone();
    new["spec"]["replicas"] = json!(5);
    live["metadata"]["uid"] = json!("u");
    let scaled = scales.update(Some(&live), new, "hpa", LATER);
    let of_scale = scaled["metadata"]["managedFields"]
        .as_array()
        .unwrap()
        .clone();
    let merged = scale::to_parent(&parent, &of_scale, "apps/v1")
        .unwrap()
        .unwrap();
    assert_eq!(
        entries(&json!({"metadata": {"managedFields": merged}})),
        [
            entry("m", "Apply", json!({"f:spec": {"f:paused": {}}})),
            entry("hpa", "Update", json!({"f:spec": {"f:replicas": {}}})),
        ]
    );
}
