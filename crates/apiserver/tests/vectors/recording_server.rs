//! The server that the HTTP cases were recorded from.

use k8s_openapi::api::scheduling::v1::PriorityClass;
use plimsoll_apiserver::http::warning::header_value;
use plimsoll_apiserver::kinds::{self, Kind};
use plimsoll_apiserver::machinery::admission::{BuiltIn, Cluster};
use plimsoll_apiserver::machinery::decoding::decode;
use plimsoll_apiserver::machinery::write::{
    Accepted, Body, BodyFormat, FieldValidation, Identity, Part, Request, Rules,
};
use plimsoll_apiserver::status::Status;
use plimsoll_core::admission::priority::PriorityClasses;
use serde_json::{Value, json};

/// Its classes besides the built-in ones.
pub(crate) fn cluster() -> Cluster {
    let class = |name: &str, value: i32, policy: &str| -> PriorityClass {
        let class = json!({
            "metadata": {"name": name}, "value": value, "preemptionPolicy": policy,
        });
        serde_json::from_value(class).unwrap()
    };
    let classes = [
        class("oracle-high", 1000, "PreemptLowerPriority"),
        class("oracle-never", 500, "Never"),
    ];
    Cluster {
        priority_classes: PriorityClasses::from_api(&classes).into(),
        ..Cluster::default()
    }
}

/// The uid of new objects here; recorded responses have `<uid>` in its place.
pub(crate) const UID: &str = "00000000-0000-4000-8000-000000000000";

/// The time of all writes.
pub(crate) const NOW: &str = "2026-01-01T00:00:00Z";

pub(crate) const IDENTITY: Identity<'static> = Identity {
    uid: UID,
    name_suffix: "bcdfg",
};

/// The kind of an object of a case.
pub(crate) fn kind_of(object: &Value) -> &'static Kind {
    let text = |key: &str| object[key].as_str().unwrap();
    kinds::by_kind(text("apiVersion"), text("kind")).unwrap()
}

/// A request for a new object of a kind.
pub(crate) fn request<'a>(kind: &'static Kind, namespace: &'a str) -> Request<'a> {
    Request {
        kind,
        part: Part::Main,
        namespace,
        name: "",
        manager: "recorder",
        now: NOW,
        validation: FieldValidation::Warn,
        rules: Rules::default(),
    }
}

/// A request about the object; the case names a subresource or none.
pub(crate) fn request_for<'a>(object: &'a Value, subresource: &str) -> Request<'a> {
    let parts = [
        Part::Main,
        Part::Status,
        Part::Resize,
        Part::EphemeralContainers,
        Part::Finalize,
        Part::Scale,
    ];
    let mut parts = parts.into_iter();
    let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default();
    Request {
        part: parts
            .find(|part| part.subresource() == subresource)
            .unwrap(),
        name: text("name"),
        ..request(kind_of(object), text("namespace"))
    }
}

/// The built-in admission for a request.
pub(crate) fn admission<'a>(request: &Request<'_>, cluster: &'a Cluster) -> BuiltIn<'a> {
    BuiltIn {
        kind: request.kind,
        part: request.part,
        cluster,
    }
}

pub(crate) fn json_body(text: &str) -> Body<'_> {
    Body {
        bytes: text.as_bytes(),
        format: BodyFormat::Json,
    }
}

/// A recorded live object as the store has it, with the fields that a server generates.
pub(crate) fn stored(object: &Value) -> Value {
    let text = object.to_string();
    let of = kind_of(object).group_version_kind();
    let decoded = decode(
        text.as_bytes(),
        BodyFormat::Json,
        of,
        FieldValidation::Ignore,
    );
    let mut object = decoded.unwrap().object;
    let meta = object["metadata"].as_object_mut().unwrap();
    for (field, invented) in [
        ("uid", UID),
        ("resourceVersion", "1"),
        ("creationTimestamp", NOW),
    ] {
        meta.entry(field).or_insert(json!(invented));
    }
    object
}

/// Without the fields that differ from one recording to the next.
pub(crate) fn without_times(mut answer: Value) -> Value {
    for (list, time) in [
        ("/response/metadata/managedFields", "time"),
        ("/response/status/conditions", "lastTransitionTime"),
    ] {
        let items = answer.pointer_mut(list).and_then(Value::as_array_mut);
        for item in items.into_iter().flatten() {
            item.as_object_mut().unwrap().remove(time);
        }
    }
    answer
}

/// The response to a write: code, body without generated fields, warnings.
pub(crate) fn answer(written: Result<Accepted, Status>) -> Value {
    match written {
        Ok(accepted) => {
            let text = accepted.object.to_string().replace(UID, "<uid>");
            let mut object: Value = serde_json::from_str(&text).unwrap();
            let meta = object["metadata"].as_object_mut().unwrap();
            for invented in ["uid", "resourceVersion", "creationTimestamp"] {
                meta.remove(invented);
            }
            let warnings: Vec<String> = accepted.warnings.iter().map(|w| header_value(w)).collect();
            let code = if accepted.is_new { 201 } else { 200 };
            json!({"code": code, "response": object, "warnings": warnings})
        }
        Err(status) => {
            let warnings: Vec<String> = status.warnings.iter().map(|w| header_value(w)).collect();
            let text = status.to_json().to_string().replace(UID, "<uid>");
            let status: Value = serde_json::from_str(&text).unwrap();
            json!({"code": status["code"], "response": status, "warnings": warnings})
        }
    }
}

/// Recorded objects of writes whose managers were omitted.
pub(crate) fn without_managers(mut answer: Value) -> Value {
    if let Some(meta) = answer.pointer_mut("/response/metadata") {
        meta.as_object_mut().unwrap().remove("managedFields");
    }
    answer
}
