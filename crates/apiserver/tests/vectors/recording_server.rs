//! The server that the HTTP cases were recorded from.

use k8s_openapi::api::scheduling::v1::PriorityClass;
use plimsoll_apiserver::http::status::Status;
use plimsoll_apiserver::http::warning::header_value;
use plimsoll_apiserver::machinery::admission::Cluster;
use plimsoll_apiserver::machinery::kind::Kind;
use plimsoll_apiserver::machinery::write::{Accepted, Refusal};
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
        priority_classes: PriorityClasses::from_api(&classes),
        ..Cluster::default()
    }
}

/// The uid that new objects get here; recorded answers have `<uid>` wherever one stood.
pub(crate) const UID: &str = "00000000-0000-4000-8000-000000000000";

/// Without what differs from one recording to the next.
pub(crate) fn without_times(mut answer: Value) -> Value {
    let conditions = answer.pointer_mut("/response/status/conditions");
    for condition in conditions
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        if let Some(condition) = condition.as_object_mut() {
            condition.remove("lastTransitionTime");
        }
    }
    answer
}

/// The answer to a write: code, body without what a server invents, warnings.
pub(crate) fn answer(kind: &Kind, written: Result<Accepted, Refusal>, code: u16) -> Value {
    match written {
        Ok(accepted) => {
            let text = accepted.object.to_string().replace(UID, "<uid>");
            let mut object: Value = serde_json::from_str(&text).unwrap();
            let meta = object["metadata"].as_object_mut().unwrap();
            for invented in ["uid", "resourceVersion", "creationTimestamp"] {
                meta.remove(invented);
            }
            let warnings: Vec<String> = accepted.warnings.iter().map(|w| header_value(w)).collect();
            json!({"code": code, "response": object, "warnings": warnings})
        }
        Err(refusal) => {
            let status = Status::of_refusal(kind, &refusal);
            json!({"code": status.code, "response": status.to_json(), "warnings": []})
        }
    }
}
