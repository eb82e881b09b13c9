//! `api/cluster-resource-override.json`.

use k8s_openapi::api::core::v1::{Namespace, Pod};
use plimsoll_core::admission::overcommit::{Override, Settings, Variant};
use plimsoll_core::admission::pipeline::{Rules, review};
use plimsoll_core::object::namespace::NamespaceView;
use plimsoll_testkit::vectors::{Outcome, compare};
use serde_json::{Value, json};

use crate::admitted_pod::{add_verdict, expected, limit_ranges, recorded_parts, validation_errors};

pub(crate) fn check(case: &Value) -> Outcome {
    let variant = match case["variant"].as_str() {
        Some("okd36") => Variant::Okd36,
        Some("okd39") => Variant::Okd39,
        Some("modern") => Variant::Modern,
        variant => return Err(vec![format!("unknown variant {variant:?}")]),
    };
    // Not read as a file is: the recorded percentages need not be legal.
    let percent = |field: &str| case["config"][field].as_i64().unwrap_or_default();
    let settings = Settings {
        limit_cpu_to_memory_percent: percent("limitCPUToMemoryPercent"),
        cpu_request_to_limit_percent: percent("cpuRequestToLimitPercent"),
        memory_request_to_limit_percent: percent("memoryRequestToLimitPercent"),
        cpu_request_to_request_percent: percent("cpuRequestToRequestPercent"),
        floor: None,
    };
    let namespace: Namespace = serde_json::from_value(case["namespace"].clone()).unwrap();
    let pod: Pod = serde_json::from_value(case["pod"].clone()).unwrap();
    let rules = Rules {
        namespace: &NamespaceView::from_api(&namespace),
        limit_ranges: &limit_ranges(case),
        overcommit: Some(&Override::new(variant, settings)),
    };
    let review = review(&pod, rules).unwrap();
    let mut got = json!({
        "applied": review.overridden.is_some(),
        "mutated": recorded_parts(&review.pod),
        "validationErrors": validation_errors(&review.problems),
        "apiOutcome": review.outcome().code().to_string(),
    });
    add_verdict(&mut got, review.refusal.as_ref());
    if case.get("statusMessage").is_some() {
        got["statusMessage"] = json!(review.refusal_message());
    }
    let inputs = ["variant", "config", "namespace", "limitRanges", "pod"];
    compare(&got, &expected(case, &inputs))
}
