//! The creations of pods and LimitRanges in `api/validation.json`, as far as they are about
//! resources. The rest of validation is the API server's.

use k8s_openapi::api::core::v1::{LimitRange, Pod};
use plimsoll_core::admission::draft::PodDraft;
use plimsoll_core::admission::{limit_range_validation, pod_defaults, pod_validation};
use plimsoll_core::object::limit_range::LimitRangeView;
use plimsoll_core::problem::Problem;
use plimsoll_testkit::vectors::{Outcome, compare};
use serde_json::{Value, json};

use crate::admitted_pod::validation_errors;

/// Undecodable objects have no field errors.
pub(crate) fn applies(case: &Value) -> bool {
    let kind = &case["input"]["kind"];
    let is_decoded = [201, 422].iter().any(|code| case["code"] == *code);
    case["op"] == "create" && is_decoded && (kind == "Pod" || kind == "LimitRange")
}

pub(crate) fn check(case: &Value) -> Outcome {
    let input = case["input"].clone();
    let is_pod = input["kind"] == "Pod";
    let problems = if is_pod {
        pod_problems(&serde_json::from_value(input).unwrap())
    } else {
        limit_range_problems(&serde_json::from_value(input).unwrap())
    };
    let causes = case["response"]["details"]["causes"].as_array();
    let is_ours = |cause: &&Value| {
        let field = cause["field"].as_str().unwrap();
        if is_pod {
            field == "spec.overhead"
                || field.starts_with("spec.overhead.")
                || field.contains("resources") && !field.contains("].resources.claims")
        } else {
            field.starts_with("spec")
        }
    };
    let mut want: Vec<Value> = causes
        .into_iter()
        .flatten()
        .filter(is_ours)
        .cloned()
        .collect();
    want.sort_by_key(|cause| {
        ["field", "reason", "message"].map(|key| cause[key].as_str().unwrap().to_owned())
    });
    compare(&json!(validation_errors(&problems)), &json!(want))
}

fn pod_problems(pod: &Pod) -> Vec<Problem> {
    let mut draft = PodDraft::from_api(pod).unwrap();
    pod_defaults::apply(&mut draft.pod);
    pod_validation::validate(pod, &draft.pod)
}

fn limit_range_problems(object: &LimitRange) -> Vec<Problem> {
    let mut view = LimitRangeView::from_api(object).unwrap();
    view.apply_defaults();
    limit_range_validation::validate(&view)
}
