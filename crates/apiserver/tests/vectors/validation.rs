//! `api/validation.json`: what POST and PUT refuse, and in which words.

use plimsoll_apiserver::http::status::Status;
use plimsoll_apiserver::machinery::decoding::{BodyFormat, FieldValidation};
use plimsoll_apiserver::machinery::kind::Kind;
use plimsoll_apiserver::machinery::validation::{Part, Rules};
use plimsoll_apiserver::machinery::write::{Body, Identity, Target, create, update};
use plimsoll_testkit::vectors::{Outcome, compare};
use serde_json::{Value, json};

use crate::kinds::kind_of;
use crate::recording_server::{UID, answer, cluster, without_times};

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
    let kind = kind_of(&case["input"]);
    let text = case["input"].to_string();
    let (got, want) = match case["op"].as_str() {
        Some("create") => (created(&kind, case, &text), wanted(case, true)),
        Some("update") => (updated(&kind, case), wanted(case, false)),
        other => return Err(vec![format!("no such op: {other:?}")]),
    };
    let (got, want) = (comparable(got, case), comparable(want, case));
    compare(&without_times(got), &without_times(want))
}

fn body(text: &str) -> Body<'_> {
    Body {
        bytes: text.as_bytes(),
        format: BodyFormat::Json,
        validation: FieldValidation::Strict,
    }
}

fn created(kind: &Kind, case: &Value, text: &str) -> Value {
    let response = &case["response"];
    let generated = response["details"]["name"].as_str().unwrap_or("xxxxx");
    let identity = Identity {
        uid: UID,
        now: "2026-01-01T00:00:00Z",
        name_suffix: &generated[generated.len().saturating_sub(5)..],
    };
    let written = create(
        kind,
        NAMESPACE,
        body(text),
        identity,
        &cluster(),
        Rules::default(),
    );
    let name = case["input"]["metadata"]["name"]
        .as_str()
        .unwrap_or_default();
    if written.is_ok() && kind.kind == "Namespace" && NAMESPACES.contains(&name) {
        let status = Status::already_exists(kind, name);
        return json!({"code": status.code, "response": status.to_json(), "warnings": []});
    }
    let mut got = answer(kind, written, 201);
    if got["code"] == 201 {
        got["response"] = json!("ok");
    }
    got
}

/// Volatile metadata was removed from both objects; what matters is that it is there and the same.
fn updated(kind: &Kind, case: &Value) -> Value {
    let mut old = case["old"].clone();
    let mut new = case["input"].clone();
    for object in [&mut old, &mut new] {
        let meta = object["metadata"].as_object_mut().unwrap();
        meta.entry("uid").or_insert(json!(UID));
        meta.entry("resourceVersion").or_insert(json!("1"));
        meta.entry("creationTimestamp")
            .or_insert(json!("2026-01-01T00:00:00Z"));
    }
    let part = match case["subresource"].as_str().unwrap_or_default() {
        "status" => Part::Status,
        "resize" => Part::Resize,
        "approval" => Part::Approval,
        _ => Part::Main,
    };
    let target = Target {
        namespace: case["old"]["metadata"]["namespace"]
            .as_str()
            .unwrap_or_default(),
        name: case["old"]["metadata"]["name"].as_str().unwrap_or_default(),
        part,
    };
    let text = new.to_string();
    let written = update(
        kind,
        target,
        body(&text),
        &old,
        &cluster(),
        Rules::default(),
    );
    answer(kind, written, 200)
}

fn wanted(case: &Value, is_create: bool) -> Value {
    let warnings = if is_create || !case["warnings"].is_null() {
        &case["warnings"]
    } else {
        &Value::Null
    };
    json!({"code": case["code"], "response": case["response"], "warnings": warnings})
}

/// Causes are a multiset, the list of them in a message has no order where upstream has none, and
/// what follows the first line about a forbidden pod update is a Go diff.
fn comparable(mut answer: Value, case: &Value) -> Value {
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
    } else if response.is_object() {
        response["metadata"]
            .as_object_mut()
            .unwrap()
            .remove("managedFields");
    }
    answer
}
