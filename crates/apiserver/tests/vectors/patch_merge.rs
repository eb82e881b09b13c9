//! RFC 7386 patches.

use plimsoll_apiserver::machinery::patch::merge_patch;
use plimsoll_testkit::vectors::Outcome;
use serde_json::Value;

use super::answer;

pub(super) fn check(case: &Value) -> Outcome {
    let result = merge_patch(case["original"].clone(), case["patch"].clone());
    answer::compare(case, Ok(result))
}
