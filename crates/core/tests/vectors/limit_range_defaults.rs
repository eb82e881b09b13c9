//! The LimitRanges of `api/defaulting-scheme.json`.

use k8s_openapi::api::core::v1::LimitRange;
use plimsoll_core::object::limit_range::LimitRangeView;
use plimsoll_testkit::vectors::{Outcome, compare};
use serde_json::Value;

/// The file holds other kinds too; those belong to other suites.
pub(crate) fn applies(case: &Value) -> bool {
    case["op"] == "default" && case["input"]["kind"] == "LimitRange"
}

pub(crate) fn check(case: &Value) -> Outcome {
    let mut object: LimitRange = serde_json::from_value(case["input"].clone()).unwrap();
    let mut view = LimitRangeView::from_api(&object).unwrap();
    view.apply_defaults();
    view.write_to(&mut object);
    compare(&serde_json::to_value(&object).unwrap(), &case["output"])
}
