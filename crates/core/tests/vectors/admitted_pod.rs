//! The parts of a pod that admission suites record.

use k8s_openapi::api::core::v1::{LimitRange, Pod};
use plimsoll_core::admission::limit_range::Refusal;
use plimsoll_core::object::limit_range::LimitRangeView;
use plimsoll_core::problem::Problem;
use serde_json::{Value, json};

/// The LimitRanges of a case, with their API defaults.
pub(crate) fn limit_ranges(case: &Value) -> Vec<LimitRangeView> {
    let objects: Vec<LimitRange> = serde_json::from_value(case["limitRanges"].clone()).unwrap();
    let views = objects.iter().map(|object| {
        let mut view = LimitRangeView::from_api(object).unwrap();
        view.apply_defaults();
        view
    });
    views.collect()
}

/// Containers, pod-level resources and annotations.
pub(crate) fn recorded_parts(pod: &Pod) -> Value {
    let pod = serde_json::to_value(pod).unwrap();
    let spec = &pod["spec"];
    let containers = |field: &str| -> Vec<Value> {
        let containers = spec[field].as_array().into_iter().flatten();
        containers
            .map(|c| json!({"name": c["name"], "resources": c["resources"]}))
            .collect()
    };
    json!({
        "containers": containers("containers"),
        "initContainers": containers("initContainers"),
        "podResources": spec["resources"],
        "annotations": pod["metadata"]["annotations"],
    })
}

/// Field errors, sorted as recorded.
pub(crate) fn validation_errors(problems: &[Problem]) -> Vec<Value> {
    let mut texts: Vec<_> = problems
        .iter()
        .map(|p| (p.path.clone(), p.kind.reason(), p.message()))
        .collect();
    texts.sort();
    texts
        .into_iter()
        .map(|(field, reason, message)| json!({"field": field, "reason": reason, "message": message}))
        .collect()
}

/// Adds `allowed`, `deniedBy` and `reasons` to an answer.
pub(crate) fn add_verdict(got: &mut Value, refusal: Option<&Refusal>) {
    got["allowed"] = json!(refusal.is_none());
    if let Some(refusal) = refusal {
        got["deniedBy"] = json!(refusal.index);
        got["reasons"] = json!(refusal.reasons());
    }
}

/// The case without what went in.
pub(crate) fn expected(case: &Value, inputs: &[&str]) -> Value {
    let mut want = case.clone();
    let members = want.as_object_mut().unwrap();
    members.retain(|name, _| !["id", "op", "note"].contains(&name.as_str()));
    members.retain(|name, _| !inputs.contains(&name.as_str()));
    want
}
