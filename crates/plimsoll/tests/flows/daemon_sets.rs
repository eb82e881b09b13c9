//! Daemon sets run a pod on every node, and update them node by node.

use serde_json::json;

use crate::flow::Flow;

const IMAGES: &str = "get pods -l app=agent -o jsonpath={.items[*].spec.containers[0].image}";
const STATUS: &str = "rollout status daemonset agent --timeout=60s";

#[test]
#[ignore = "tier: tools"]
fn new_nodes_get_their_pod_even_when_cordoned() {
    let flow = Flow::start("daemons");
    let first = flow.node("a");
    flow.create(&flow.daemon_set("agent"));
    flow.kubectl(STATUS);
    let second = flow.node("b");
    let nodes = "get pods -l app=agent -o jsonpath={.items[*].spec.nodeName}";
    let both = |shown: &str| shown.contains(&first) && shown.contains(&second);
    flow.until(nodes, "both nodes", both);
    flow.shows(
        "get daemonset agent -o jsonpath={.status.desiredNumberScheduled}",
        "2",
    );

    flow.kubectl(&format!("cordon {first}"));
    let on_first = format!("get pods -l app=agent -o name --field-selector=spec.nodeName={first}");
    let pod = flow.kubectl(&on_first);
    flow.kubectl(&format!("delete {}", pod.trim()));
    flow.until(&on_first, "another pod", |shown| {
        !shown.is_empty() && shown != pod
    });
}

#[test]
#[ignore = "tier: tools"]
fn a_daemon_set_is_rolled_and_undone() {
    let flow = Flow::start("daemon-roll");
    flow.node("a");
    flow.node("b");
    flow.create(&flow.daemon_set("agent"));
    flow.kubectl(STATUS);
    flow.kubectl("set image daemonset agent main=busybox:2");
    let printed = flow.kubectl(STATUS);
    assert!(
        printed.ends_with("daemon set \"agent\" successfully rolled out\n"),
        "{printed}"
    );
    flow.shows(IMAGES, "busybox:2 busybox:2");
    let history = flow.kubectl("rollout history daemonset agent");
    assert_eq!(
        history
            .lines()
            .skip(2)
            .filter(|line| !line.is_empty())
            .count(),
        2,
        "{history}"
    );
    flow.kubectl("rollout undo daemonset agent");
    flow.kubectl(STATUS);
    flow.shows(IMAGES, "busybox:1 busybox:1");

    let on_delete = json!({ "spec": { "updateStrategy": { "type": "OnDelete" } } });
    flow.kubectl(&format!("patch daemonset agent -p {on_delete}"));
    flow.kubectl("set image daemonset agent main=busybox:3");
    flow.shows(
        "get daemonset agent -o jsonpath={.status.observedGeneration}",
        "5",
    );
    flow.shows(IMAGES, "busybox:1 busybox:1");
    for pod in flow.pods("app=agent") {
        flow.kubectl(&format!("delete pod {pod}"));
    }
    flow.shows(IMAGES, "busybox:3 busybox:3");
}
