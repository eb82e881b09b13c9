//! RFC 6902 patches.

use plimsoll_apiserver::machinery::patch::json_patch;
use plimsoll_testkit::vectors::Outcome;
use serde_json::{Map, Value};

use super::answer;

pub(super) fn check(case: &Value) -> Outcome {
    let operations: Vec<Map<String, Value>> =
        serde_json::from_value(case["patch"].clone()).expect("a list of operations");
    let result = json_patch(case["original"].clone(), &operations);
    answer::compare(case, result.map_err(|error| error.to_string()))
}
