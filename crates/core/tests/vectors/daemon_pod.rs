//! `api/defaulting-scheme.json`, `daemonPod` cases: what the DaemonSet controller gives a pod.

use k8s_openapi::api::apps::v1::DaemonSet;
use plimsoll_core::admission::daemon_set::{assign_to_node, create_pod_template};
use plimsoll_core::object::identity::NodeName;
use plimsoll_testkit::vectors::{Outcome, compare};
use serde_json::{Value, json};

pub(crate) fn applies(case: &Value) -> bool {
    case["op"] == "daemonPod"
}

pub(crate) fn check(case: &Value) -> Outcome {
    let input = &case["input"];
    let (template, spec) = (
        &input["spec"]["template"],
        &input["spec"]["template"]["spec"],
    );
    // Only what the controller reads: quantities written as numbers are the decoder's business.
    let daemon_set = json!({
        "metadata": input["metadata"],
        "spec": {"selector": {}, "template": {"metadata": template["metadata"], "spec": {
            "containers": [],
            "tolerations": spec["tolerations"],
            "affinity": spec["affinity"],
            "hostNetwork": spec["hostNetwork"],
        }}},
    });
    let daemon_set: DaemonSet = serde_json::from_value(daemon_set).unwrap();
    let template = create_pod_template(&daemon_set, "HASH");
    let (metadata, mut spec) = (template.metadata.unwrap(), template.spec.unwrap());
    assign_to_node(&mut spec, &NodeName::from("node-x"));
    compare(
        &json!({
            "labels": metadata.labels,
            "tolerations": spec.tolerations,
            "affinity": spec.affinity,
        }),
        &json!({
            "labels": case["labels"],
            "tolerations": case["tolerations"],
            "affinity": case["affinity"],
        }),
    )
}
