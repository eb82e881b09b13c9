//! `api/limitranger.json`.

use k8s_openapi::api::core::v1::{LimitRange, PersistentVolumeClaim, Pod};
use plimsoll_core::admission::draft::PodDraft;
use plimsoll_core::admission::forbidden::name_in_refusal;
use plimsoll_core::admission::limit_range::check_claim;
use plimsoll_core::admission::pipeline::{Rules, review};
use plimsoll_core::admission::pod_defaults;
use plimsoll_core::object::claim::ClaimView;
use plimsoll_core::object::namespace::NamespaceView;
use plimsoll_testkit::vectors::{Outcome, compare};
use serde_json::{Value, json};

use crate::admitted_pod::{add_verdict, expected, limit_ranges, recorded_parts, validation_errors};

pub(crate) fn check(case: &Value) -> Outcome {
    match case["op"].as_str() {
        Some("pod") => check_pod(case),
        Some("pvc") => check_pvc(case),
        op => Err(vec![format!("unknown op {op:?}")]),
    }
}

fn check_pod(case: &Value) -> Outcome {
    let limit_ranges = limit_ranges(case);
    let pod: Pod = serde_json::from_value(case["pod"].clone()).unwrap();
    let defaulted = limit_ranges.iter().map(|view| {
        let mut object = LimitRange::default();
        view.write_to(&mut object);
        object.spec.unwrap().limits
    });
    let defaulted: Vec<_> = defaulted.collect();
    let mut draft = PodDraft::from_api(&pod).unwrap();
    pod_defaults::apply(&mut draft.pod);
    let mut after_defaulting = pod.clone();
    draft.write_to(&mut after_defaulting);

    let rules = Rules {
        namespace: &NamespaceView::default(),
        limit_ranges: &limit_ranges,
        overcommit: None,
    };
    let review = review(&pod, rules).unwrap();
    let mut got = json!({
        "limitRangesDefaulted": defaulted,
        "afterDefaulting": recorded_parts(&after_defaulting),
        "mutated": recorded_parts(&review.pod),
        "validationErrors": validation_errors(&review.problems),
        "apiOutcome": review.outcome().code().to_string(),
    });
    add_verdict(&mut got, review.refusal.as_ref());
    if case.get("statusMessage").is_some() {
        got["statusMessage"] = json!(review.refusal_message());
    }
    compare(&got, &expected(case, &["pod", "limitRanges"]))
}

fn check_pvc(case: &Value) -> Outcome {
    let claim: PersistentVolumeClaim = serde_json::from_value(case["pvc"].clone()).unwrap();
    let view = ClaimView::from_api(&claim).unwrap();
    let refusal = check_claim(&view, &limit_ranges(case)).err();
    let mut got = json!({});
    add_verdict(&mut got, refusal.as_ref());
    if case.get("statusMessage").is_some() {
        let name = name_in_refusal(&claim.metadata);
        let message = refusal.map(|r| r.status_message("persistentvolumeclaims", name));
        got["statusMessage"] = json!(message);
    }
    compare(&got, &expected(case, &["pvc", "limitRanges"]))
}
