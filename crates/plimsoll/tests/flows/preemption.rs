//! Pods with higher priority preempt others.

use serde_json::json;

use crate::flow::Flow;

#[test]
#[ignore = "tier: tools"]
fn pod_with_lowest_priority_is_preempted() {
    let flow = Flow::start("preemption");
    let node = flow.node_with("a", &json!({ "cpu": "2", "memory": "4Gi", "pods": "10" }));
    for (class, value) in [("low", 10), ("middle", 100), ("high", 1000)] {
        flow.create(&flow.priority_class(class, value));
    }
    let mut polite = flow.priority_class("polite", 1000);
    polite["preemptionPolicy"] = json!("Never");
    flow.create(&polite);
    let one_core = |name: &str| {
        let mut pod = flow.pod(name, &json!({ "cpu": "1" }));
        pod["spec"]["priorityClassName"] = json!(format!("{}-{name}", flow.name));
        pod
    };
    let mut low = one_core("low");
    low["metadata"]["finalizers"] = json!(["flow/keep"]);
    flow.create(&low);
    flow.create(&one_core("middle"));
    flow.kubectl("wait pod low middle --for=condition=Ready --timeout=60s");

    flow.create(&one_core("polite"));
    let not_eligible = "not eligible due to preemptionPolicy=Never.";
    flow.mentions("events --for pod/polite", not_eligible);

    flow.create(&one_core("high"));
    let target = "get pod low -o jsonpath={.status.conditions[?(@.type==\"DisruptionTarget\")]}";
    flow.mentions(target, "PreemptionByScheduler");
    flow.mentions(
        target,
        "default-scheduler: preempting to accommodate a higher priority pod",
    );
    flow.shows(
        "get pod high -o jsonpath={.status.nominatedNodeName}",
        &node,
    );
    let uid = flow.kubectl("get pod high -o jsonpath={.metadata.uid}");
    flow.mentions(
        "events --for pod/low",
        &format!("Preempted by pod {uid} on node {node}"),
    );
    flow.kubectl("patch pod low -p {\"metadata\":{\"finalizers\":null}}");
    flow.kubectl("wait pod high --for=condition=Ready --timeout=60s");
    flow.is_gone("pod low");
    flow.mentions("get pod middle", "Running");
    flow.shows("get pod polite -o jsonpath={.spec.nodeName}", "");
}

#[test]
#[ignore = "tier: tools"]
fn a_pod_that_fits_nowhere_is_bound_when_a_node_joins() {
    let flow = Flow::start("room");
    flow.node("a");
    flow.create(&flow.pod("big", &json!({ "cpu": "6" })));
    if flow.target.is_ours() {
        let message = "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, \
            preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.";
        flow.mentions("events --for pod/big", message);
    }
    flow.mentions("describe pod big", "FailedScheduling");
    let large = flow.node_with("b", &json!({ "cpu": "8", "memory": "8Gi", "pods": "110" }));
    flow.kubectl("wait pod big --for=condition=Ready --timeout=60s");
    flow.shows("get pod big -o jsonpath={.spec.nodeName}", &large);
}
