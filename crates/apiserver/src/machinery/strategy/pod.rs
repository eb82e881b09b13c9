//! The strategy of pods.

use k8s_openapi::api::core::v1::ResourceRequirements;
use plimsoll_core::object::pod::{ContainerView, PodView, QosClass, Requirements};
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::validation::Part;
use super::{Object, child, copy, root, set};

pub(super) fn prepare_for_create(object: &mut Value, now: &str) {
    let class = qos_class(&object["spec"]);
    let class = class.map(QosClass::as_str).unwrap_or_default();
    object["status"] = json!({"phase": "Pending", "qosClass": class});
    if object["spec"]["schedulingGates"]
        .as_array()
        .is_some_and(|gates| !gates.is_empty())
    {
        object["status"]["conditions"] = json!([{
            "type": "PodScheduled",
            "status": "False",
            "lastTransitionTime": now,
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }]);
    }
    let has_terms = |spec: &Value| TERMS.iter().any(|field| spec.get(field).is_some());
    if has_terms(&object["spec"]) {
        let labels = object["metadata"]["labels"].clone();
        for term in terms_with_label_keys(&mut object["spec"]) {
            merge_label_keys(term, &labels);
        }
    }
}

/// The QoS class, by the resources of the pod and its containers; `None` if one is malformed.
fn qos_class(spec: &Value) -> Option<QosClass> {
    let mut problems = Vec::new();
    let mut requirements = |value: &Value| -> Option<Requirements> {
        let api = value.is_object().then_some(value)?;
        let api = ResourceRequirements::deserialize(api).ok()?;
        let read = Requirements::from_api("resources", Some(&api), &mut problems);
        Some(read)
    };
    let resources = requirements(&spec["resources"]);
    let mut containers = |field: &str| -> Vec<ContainerView> {
        let list = spec[field].as_array().into_iter().flatten();
        let containers = list.map(|container| ContainerView {
            resources: requirements(&container["resources"]).unwrap_or_default(),
            ..ContainerView::default()
        });
        containers.collect()
    };
    let view = PodView {
        containers: containers("containers"),
        init_containers: containers("initContainers"),
        resources,
        ..PodView::default()
    };
    problems.is_empty().then(|| view.compute_qos_class())
}

/// The fields of a spec with terms that take values of the pod's own labels.
const TERMS: [&str; 2] = ["topologySpreadConstraints", "affinity"];

/// All fields of a spec that take values of the pod's own labels.
fn terms_with_label_keys(spec: &mut Value) -> Vec<&mut Object> {
    let Some(spec) = spec.as_object_mut() else {
        return Vec::new();
    };
    let mut terms = Vec::new();
    for (name, value) in spec {
        match name.as_str() {
            "topologySpreadConstraints" => terms.extend(objects(Some(value))),
            "affinity" => {
                let affinity = value.as_object_mut().into_iter().flatten();
                let of_pods = affinity.filter(|(name, _)| name.as_str() != "nodeAffinity");
                for (name, list) in of_pods.filter_map(|(_, v)| v.as_object_mut()).flatten() {
                    let is_weighted = name.starts_with("preferred");
                    for term in objects(Some(list)) {
                        if is_weighted {
                            terms.extend(
                                term.get_mut("podAffinityTerm")
                                    .and_then(Value::as_object_mut),
                            );
                        } else {
                            terms.push(term);
                        }
                    }
                }
            }
            _ => {}
        }
    }
    terms
}

fn objects(list: Option<&mut Value>) -> impl Iterator<Item = &mut Object> {
    let items = list.and_then(Value::as_array_mut).into_iter().flatten();
    items.filter_map(Value::as_object_mut)
}

/// Adds the labels of `matchLabelKeys` to the selector next to them.
fn merge_label_keys(term: &mut Object, labels: &Value) {
    for (field, operator) in [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")] {
        let keys = term
            .get(field)
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        let Some(selector) = term.get_mut("labelSelector").and_then(Value::as_object_mut) else {
            return;
        };
        for key in keys {
            let Some(value) = key.as_str().and_then(|key| labels.get(key)) else {
                continue;
            };
            let requirement = json!({"key": key, "operator": operator, "values": [value]});
            let list = selector
                .entry("matchExpressions")
                .or_insert_with(|| json!([]));
            if let Value::Array(list) = list {
                list.push(requirement);
            }
        }
    }
}

pub(super) fn prepare_for_update(part: Part, new: &mut Value, old: &Value) {
    match part {
        Part::Status => prepare_status(new, old),
        Part::Resize => prepare_resize(new, old),
        Part::EphemeralContainers => {
            let containers = new["spec"]["ephemeralContainers"].clone();
            keep_other_fields(new, old);
            copy(new, old, "spec");
            set(child(root(new), "spec"), "ephemeralContainers", containers);
        }
        Part::Main | Part::Finalize | Part::Scale | Part::Approval => copy(new, old, "status"),
    }
}

fn prepare_status(new: &mut Value, old: &Value) {
    copy(new, old, "spec");
    let meta = child(root(new), "metadata");
    meta.remove("deletionTimestamp");
    set(
        meta,
        "ownerReferences",
        old["metadata"]["ownerReferences"].clone(),
    );
    let status = child(root(new), "status");
    for field in ["qosClass", "observedGeneration"] {
        if status
            .get(field)
            .is_none_or(|value| value.is_null() || *value == json!(0))
        {
            set(status, field, old["status"][field].clone());
        }
    }
    keep_condition_generations(status, &old["status"]["conditions"]);
}

/// A condition without a generation keeps the one its type had.
fn keep_condition_generations(status: &mut Object, old: &Value) {
    let mut known: Vec<&Value> = old.as_array().into_iter().flatten().collect();
    for condition in objects(status.get_mut("conditions")) {
        let before = known
            .iter()
            .position(|c| Some(&c["type"]) == condition.get("type"));
        let before = before.map(|position| known.remove(position)["observedGeneration"].clone());
        if condition.get("observedGeneration").is_none() {
            set(condition, "observedGeneration", before.unwrap_or_default());
        }
    }
}

/// Everything but resources and resize policies is restored, if the containers are the same.
fn prepare_resize(new: &mut Value, old: &Value) {
    let lists = ["containers", "initContainers"];
    let len = |object: &Value, field: &str| object["spec"][field].as_array().map_or(0, Vec::len);
    if lists.iter().any(|field| len(new, field) != len(old, field)) {
        return;
    }
    let resources = new["spec"]["resources"].clone();
    let resized = lists.map(|field| resized_containers(&new["spec"][field], &old["spec"][field]));
    keep_other_fields(new, old);
    copy(new, old, "spec");
    let spec = child(root(new), "spec");
    set(spec, "resources", resources);
    for (field, containers) in lists.into_iter().zip(resized) {
        set(spec, field, containers);
    }
}

fn resized_containers(new: &Value, old: &Value) -> Value {
    let (Some(after), Some(before)) = (new.as_array(), old.as_array()) else {
        return new.clone();
    };
    if after
        .iter()
        .zip(before)
        .any(|(after, before)| after["name"] != before["name"])
    {
        return new.clone();
    }
    let merged = after.iter().zip(before).map(|(after, before)| {
        let mut merged = before.clone();
        for field in ["resources", "resizePolicy"] {
            set(root(&mut merged), field, after[field].clone());
        }
        merged
    });
    merged.collect()
}

/// Subresources that change a part of the spec leave the status and most of the metadata alone.
fn keep_other_fields(new: &mut Value, old: &Value) {
    const KEPT: [&str; 7] = [
        "deletionTimestamp",
        "generation",
        "selfLink",
        "labels",
        "annotations",
        "finalizers",
        "ownerReferences",
    ];
    copy(new, old, "status");
    let meta = child(root(new), "metadata");
    for field in KEPT {
        set(meta, field, old["metadata"][field].clone());
    }
}
