//! A node stops its heartbeats: it is tainted, its pods are evicted, and it returns.

use serde_json::json;

use crate::flow::Flow;

#[test]
#[ignore = "tier: tools"]
fn pods_leave_a_silent_node_but_those_of_daemon_sets_stay() {
    let flow = Flow::start_with(
        "silence",
        &[
            "--node-monitor-grace-period=4s",
            "--node-startup-grace-period=10s",
            "--node-monitor-period=500ms",
        ],
    );
    let (silent, other) = (flow.node("a"), flow.node("b"));
    flow.create(&flow.daemon_set("agent"));
    flow.kubectl(&format!("cordon {other}"));
    let mut web = flow.deployment("web", 2);
    web["spec"]["template"]["spec"]["tolerations"] = json!([
        { "key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute",
          "tolerationSeconds": 2 },
    ]);
    flow.create(&web);
    flow.kubectl("rollout status deployment web --timeout=60s");
    flow.kubectl("rollout status daemonset agent --timeout=60s");
    flow.kubectl(&format!("uncordon {other}"));

    flow.kubelets.silence(&silent);
    flow.kubectl(&format!(
        "wait node {silent} --for=condition=Ready=Unknown --timeout=120s"
    ));
    let describe = format!("describe node {silent}");
    flow.mentions(&describe, "NodeStatusUnknown");
    flow.mentions(&describe, "Kubelet stopped posting node status.");
    flow.mentions(&format!("get node {silent}"), "NotReady");
    let taints = format!(
        "get node {silent} -o jsonpath={{range.spec.taints[*]}}{{.key}}:{{.effect}},{{end}}"
    );
    flow.until(&taints, "both taints of unreachable nodes", |shown| {
        let mut shown: Vec<&str> = shown.split_terminator(',').collect();
        shown.sort_unstable();
        shown
            == [
                "node.kubernetes.io/unreachable:NoExecute",
                "node.kubernetes.io/unreachable:NoSchedule",
            ]
    });
    flow.mentions("get events -A", "is not ready");

    // No kubelet confirms their deletion, so they stay in the API as terminating.
    let on_silent = format!("get pods --field-selector=spec.nodeName={silent}");
    flow.until(&on_silent, "two Terminating", |shown| {
        shown.matches("Terminating").count() == 2
    });
    flow.kubectl("rollout status deployment web --timeout=60s");
    let running = format!("get pods -l app=web --field-selector=spec.nodeName={other} -o name");
    flow.until(&running, "two pods", |shown| shown.lines().count() == 2);
    let agent = format!(
        "get pods -l app=agent --field-selector=spec.nodeName={silent} \
        -o jsonpath={{.items[*].metadata.deletionTimestamp}}"
    );
    flow.shows(&agent, "");

    flow.kubelets.wake(&silent, &json!({}));
    flow.shows(&taints, "");
    let left = format!("{on_silent} -o jsonpath={{.items[*].metadata.labels.app}}");
    flow.shows(&left, "agent");
    flow.kubectl("rollout status daemonset agent --timeout=60s");
}

#[test]
#[ignore = "tier: tools"]
fn pods_stay_on_a_node_that_returns_in_time() {
    let flow = Flow::start_with(
        "return",
        &[
            "--node-monitor-grace-period=4s",
            "--node-monitor-period=500ms",
        ],
    );
    let (silent, _other) = (flow.node("a"), flow.node("b"));
    let mut pod = flow.pod("patient", &json!({}));
    pod["spec"]["nodeName"] = json!(silent);
    flow.create(&pod);
    flow.kubectl("wait pod patient --for=condition=Ready --timeout=60s");

    flow.kubelets.silence(&silent);
    let taints = format!("get node {silent} -o jsonpath={{.spec.taints[*].effect}}");
    flow.mentions(&taints, "NoExecute");
    flow.kubectl("wait pod patient --for=condition=Ready=False --timeout=60s");
    flow.kubelets.wake(&silent, &json!({}));
    flow.shows(&taints, "");
    flow.mentions(
        "get events",
        "Cancelling deletion of Pod flow-return/patient",
    );
    flow.shows(
        "get pod patient -o jsonpath={.metadata.deletionTimestamp}",
        "",
    );
}
