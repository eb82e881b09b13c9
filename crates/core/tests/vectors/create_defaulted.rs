//! `api/create-defaulted.json`: what admission decides about new pods and nodes.

use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use plimsoll_core::admission::default_toleration_seconds::DefaultTolerationSeconds;
use plimsoll_core::admission::forbidden::{forbidden_message, name_in_refusal};
use plimsoll_core::admission::node_taints::taint_new_node;
use plimsoll_core::admission::priority::{PriorityClasses, admit_new_pod};
use plimsoll_core::object::pod::PodView;
use plimsoll_testkit::vectors::{Outcome, compare};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// The fields of a spec that admission reads and writes.
const SPEC_FIELDS: [&str; 5] = [
    "tolerations",
    "priority",
    "priorityClassName",
    "preemptionPolicy",
    "taints",
];

/// Pods and nodes that are created, and pods that Priority admission refuses.
pub(crate) fn applies(case: &Value) -> bool {
    let message = case["response"]["message"].as_str().unwrap_or_default();
    match (case["input"]["kind"].as_str(), case["code"].as_u64()) {
        (Some("Pod" | "Node"), Some(201)) => true,
        (Some("Pod"), Some(403)) => message.contains("PriorityClass"),
        _ => false,
    }
}

pub(crate) fn check(case: &Value) -> Outcome {
    let (input, response) = (&case["input"], &case["response"]);
    // Quantities written as numbers are the decoder's business; admission reads none.
    let reduced = json!({"metadata": input["metadata"], "spec": admission_fields(&input["spec"])});
    if input["kind"] == "Node" {
        let mut node: Node = serde_json::from_value(reduced).unwrap();
        taint_new_node(&mut node);
        return compare(&fields_of(&node.spec), &admission_fields(&response["spec"]));
    }
    let mut pod: Pod = serde_json::from_value(reduced).unwrap();
    let spec = pod.spec.get_or_insert_default();
    if let Err(refusal) = admit_new_pod(spec, &priority_classes()) {
        let name = name_in_refusal(&pod.metadata);
        let message = forbidden_message("pods", name, &refusal.to_string());
        let got = json!({"code": 403, "reason": "Forbidden", "message": message});
        let want = json!({
            "code": response["code"],
            "reason": response["reason"],
            "message": response["message"],
        });
        return compare(&got, &want);
    }
    DefaultTolerationSeconds::default().admit(spec);
    let mut created: Pod = serde_json::from_value(response.clone()).unwrap();
    created.status = None;
    let class = PodView::from_api(&created).unwrap().compute_qos_class();
    compare(
        &json!({"spec": fields_of(&pod.spec), "qosClass": class.as_str()}),
        &json!({
            "spec": admission_fields(&response["spec"]),
            "qosClass": response["status"]["qosClass"],
        }),
    )
}

fn admission_fields(spec: &Value) -> Value {
    let fields = SPEC_FIELDS.iter().filter_map(|field| {
        let value = spec.get(field)?;
        Some(((*field).to_owned(), value.clone()))
    });
    Value::Object(Map::from_iter(fields))
}

fn fields_of(spec: &impl Serialize) -> Value {
    admission_fields(&serde_json::to_value(spec).unwrap())
}

/// The classes that the recording server had besides the built-in ones.
fn priority_classes() -> PriorityClasses {
    let class = |name: &str, value: i32, policy: &str| -> PriorityClass {
        let class = json!({
            "metadata": {"name": name}, "value": value, "preemptionPolicy": policy,
        });
        serde_json::from_value(class).unwrap()
    };
    PriorityClasses::from_api(&[
        class("oracle-high", 1000, "PreemptLowerPriority"),
        class("oracle-never", 500, "Never"),
    ])
}
