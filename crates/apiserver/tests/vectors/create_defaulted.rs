//! `api/create-defaulted.json`: what a POST returns.

use plimsoll_apiserver::machinery::decoding::{BodyFormat, FieldValidation};
use plimsoll_apiserver::machinery::validation::Rules;
use plimsoll_apiserver::machinery::write::{Body, Identity, create};
use plimsoll_testkit::vectors::{Outcome, compare};
use serde_json::{Value, json};

use crate::kinds::kind_of;
use crate::recording_server::{UID, answer, cluster, without_times};

pub(crate) fn check(case: &Value) -> Outcome {
    let input = &case["input"];
    let kind = kind_of(input);
    let text = input.to_string();
    let body = Body {
        bytes: text.as_bytes(),
        format: BodyFormat::Json,
        validation: FieldValidation::Warn,
    };
    let identity = Identity {
        uid: UID,
        now: "2026-01-01T00:00:00Z",
        name_suffix: "bcdfg",
    };
    let namespace = input["metadata"]["namespace"].as_str().unwrap_or_default();
    let written = create(
        &kind,
        namespace,
        body,
        identity,
        &cluster(),
        Rules::default(),
    );
    let want = json!({
        "code": case["code"], "response": case["response"], "warnings": case["warnings"],
    });
    let mut got = answer(&kind, written, 201);
    if let Some(prefix) = input["metadata"]["generateName"].as_str() {
        got["response"]["metadata"]["name"] = json!(format!("{prefix}XXXXX"));
    }
    compare(&without_times(got), &without_times(want))
}
