//! `api/create-defaulted.json`: what a POST returns.

use plimsoll_apiserver::machinery::write::create;
use plimsoll_testkit::vectors::{Outcome, compare};
use serde_json::{Value, json};

use crate::recording_server::{
    IDENTITY, admission, answer, cluster, json_body, kind_of, request, without_managers,
    without_times,
};

pub(crate) fn check(case: &Value) -> Outcome {
    let input = &case["input"];
    let text = input.to_string();
    let namespace = input["metadata"]["namespace"].as_str().unwrap_or_default();
    let request = request(kind_of(input), namespace);
    let cluster = cluster();
    let written = create(
        &request,
        json_body(&text),
        IDENTITY,
        &mut admission(&request, &cluster),
    );
    let want = json!({
        "code": case["code"], "response": case["response"], "warnings": case["warnings"],
    });
    let mut got = answer(written);
    if let Some(prefix) = input["metadata"]["generateName"].as_str() {
        got["response"]["metadata"]["name"] = json!(format!("{prefix}XXXXX"));
    }
    compare(
        &without_times(without_managers(got)),
        &without_times(without_managers(want)),
    )
}
