//! `node/admission.json`.

use std::collections::BTreeSet;

use plimsoll_core::admission::node_admit::{PressureRule, admit};
use plimsoll_core::object::node::NodeCondition;
use plimsoll_core::object::pod::PodView;
use plimsoll_core::object::taint::ComparisonOperators;
use plimsoll_testkit::vectors::{Outcome, compare_with_expected};
use serde_json::{Value, json};

pub(crate) fn check(case: &Value) -> Outcome {
    let pod = serde_json::from_value(case["pod"].clone()).unwrap();
    let pod = PodView::from_api(&pod).unwrap();
    let conditions = case["nodeConditions"].as_array().into_iter().flatten();
    let conditions: BTreeSet<NodeCondition> = conditions
        .map(|name| NodeCondition::from_name(name.as_str().unwrap()).unwrap())
        .collect();
    let comparison = ComparisonOperators::Disabled;
    let got = match admit(&pod, &conditions, PressureRule::V1_36, comparison) {
        Ok(()) => json!({"admit": true}),
        Err(rejection) => json!({
            "admit": false,
            "reason": rejection.reason,
            "message": rejection.message,
        }),
    };
    compare_with_expected(case, &got)
}
