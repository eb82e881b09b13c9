//! `api/validation.json`: errors of POST and PUT, with their messages.

use plimsoll_apiserver::machinery::write::{FieldValidation, Identity, Request, create, update};
use plimsoll_apiserver::status::Status;
use plimsoll_testkit::vectors::{Outcome, compare};
use serde_json::{Value, json};

use crate::recording_server::{
    NOW, UID, admission, answer, cluster, json_body, kind_of, request, request_for,
    without_managers, without_times,
};

/// The namespace that objects were created in, and those that exist.
const NAMESPACE: &str = "ns1";
const NAMESPACES: [&str; 6] = [
    "default",
    "kube-system",
    "kube-public",
    "kube-node-lease",
    "ns1",
    "upd",
];

pub(crate) fn check(case: &Value) -> Outcome {
    let (got, want) = match case["op"].as_str() {
        Some("create") => (created(case), wanted(case, true)),
        Some("update") => (updated(case), wanted(case, false)),
        other => return Err(vec![format!("no such op: {other:?}")]),
    };
    let (got, want) = (comparable(got, case), comparable(want, case));
    compare(&without_times(got), &without_times(want))
}

fn created(case: &Value) -> Value {
    let text = case["input"].to_string();
    let kind = kind_of(&case["input"]);
    let generated = case["response"]["details"]["name"].as_str();
    let generated = generated.unwrap_or("xxxxx");
    let identity = Identity {
        uid: UID,
        name_suffix: &generated[generated.len().saturating_sub(5)..],
    };
    let request = Request {
        validation: FieldValidation::Strict,
        ..request(kind, NAMESPACE)
    };
    let cluster = cluster();
    let mut written = create(
        &request,
        json_body(&text),
        identity,
        &mut admission(&request, &cluster),
    );
    let name = case["input"]["metadata"]["name"]
        .as_str()
        .unwrap_or_default();
    if written.is_ok() && kind.kind == "Namespace" && NAMESPACES.contains(&name) {
        written = Err(Status::already_exists(kind, name));
    }
    let mut got = answer(written);
    if got["code"] == 201 {
        got["response"] = json!("ok");
    }
    got
}

/// Volatile metadata was removed from both objects; what matters is that it is present and equal.
fn updated(case: &Value) -> Value {
    let mut old = case["old"].clone();
    let mut new = case["input"].clone();
    for object in [&mut old, &mut new] {
        let meta = object["metadata"].as_object_mut().unwrap();
        meta.entry("uid").or_insert(json!(UID));
        meta.entry("resourceVersion").or_insert(json!("1"));
        meta.entry("creationTimestamp").or_insert(json!(NOW));
    }
    let text = new.to_string();
    let request = Request {
        validation: FieldValidation::Strict,
        ..request_for(&old, case["subresource"].as_str().unwrap_or_default())
    };
    let cluster = cluster();
    answer(update(
        &request,
        json_body(&text),
        &old,
        &mut admission(&request, &cluster),
    ))
}

fn wanted(case: &Value, is_create: bool) -> Value {
    let warnings = if is_create || !case["warnings"].is_null() {
        &case["warnings"]
    } else {
        &Value::Null
    };
    json!({"code": case["code"], "response": case["response"], "warnings": warnings})
}

/// Causes are a multiset: their list in a message has no order where upstream has none, and
/// the text after the first line about a forbidden pod update is a Go diff.
pub(crate) fn comparable(answer: Value, case: &Value) -> Value {
    let mut answer = without_managers(answer);
    let response = &mut answer["response"];
    let first_line = |text: &Value| {
        let text = text.as_str().unwrap_or_default();
        json!(text.split('\n').next().unwrap_or_default())
    };
    if response["kind"] == "Status" {
        response["message"] = first_line(&response["message"]);
        if let Some(causes) = response["details"]["causes"].as_array_mut() {
            for cause in causes.iter_mut() {
                cause["message"] = first_line(&cause["message"]);
            }
            causes.sort_by_key(Value::to_string);
            if case["volatile"] == true {
                response["message"] = Value::Null;
            }
        }
    }
    answer
}
