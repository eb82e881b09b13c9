//! Nodes are tainted, cordoned, drained and uncordoned.

use serde_json::json;

use crate::flow::Flow;

#[test]
#[ignore = "tier: tools"]
fn taints_keep_pods_away_and_drive_them_out() {
    let flow = Flow::start("taints");
    let node = flow.node("a");
    flow.kubectl(&format!("taint nodes {node} dedicated=db:NoSchedule"));
    flow.create(&flow.pod("web", &json!({})));
    let scheduled = "get pod web -o jsonpath={.status.conditions[?(@.type==\"PodScheduled\")]}";
    flow.mentions(scheduled, "node(s) had untolerated taint(s)");
    if flow.target.is_ours() {
        let message = "0/1 nodes are available: 1 node(s) had untolerated taint(s). \
            no new claims to deallocate, preemption: 0/1 nodes are available: \
            1 Preemption is not helpful for scheduling.";
        flow.mentions("events --for pod/web", message);
        flow.mentions("describe pod web", message);
    }

    flow.kubectl(&format!("taint nodes {node} dedicated-"));
    flow.kubectl("wait pod web --for=condition=Ready --timeout=60s");
    flow.mentions(
        "events --for pod/web",
        "Successfully assigned flow-taints/web to",
    );

    let mut tolerant = flow.pod("tolerant", &json!({}));
    tolerant["spec"]["tolerations"] = json!([{ "key": "broken", "operator": "Exists" }]);
    flow.create(&tolerant);
    flow.kubectl("wait pod tolerant --for=condition=Ready --timeout=60s");
    flow.kubectl(&format!("taint nodes {node} broken=yes:NoExecute"));
    flow.is_gone("pod web");
    flow.mentions("get events", "Marking for deletion Pod flow-taints/web");
    flow.mentions("get pod tolerant", "Running");
}

#[test]
#[ignore = "tier: tools"]
fn a_cordoned_node_takes_no_pods_until_it_is_uncordoned() {
    let flow = Flow::start("cordon");
    let node = flow.node("a");
    flow.kubectl(&format!("cordon {node}"));
    flow.mentions(&format!("get node {node}"), "Ready,SchedulingDisabled");
    let taints = format!("get node {node} -o jsonpath={{.spec.taints[*].key}}");
    flow.shows(&taints, "node.kubernetes.io/unschedulable");
    flow.create(&flow.pod("web", &json!({})));
    flow.mentions("events --for pod/web", "node(s) were unschedulable");
    flow.kubectl(&format!("uncordon {node}"));
    flow.kubectl("wait pod web --for=condition=Ready --timeout=60s");
    flow.shows(&taints, "");
}

#[test]
#[ignore = "tier: tools"]
fn a_drain_moves_pods_and_leaves_those_of_daemon_sets() {
    let flow = Flow::start("drain");
    let (from, to) = (flow.node("a"), flow.node("b"));
    flow.create(&flow.daemon_set("agent"));
    flow.kubectl("rollout status daemonset agent --timeout=60s");
    flow.kubectl(&format!("cordon {to}"));
    flow.create(&flow.deployment("web", 3));
    flow.kubectl("rollout status deployment web --timeout=60s");
    flow.kubectl(&format!("uncordon {to}"));

    let problem = flow.refused(&format!("drain {from}"));
    assert!(
        problem.contains("cannot delete DaemonSet-managed Pods"),
        "{problem}"
    );
    let printed = flow.kubectl(&format!("drain {from} --ignore-daemonsets --timeout=60s"));
    assert!(
        printed.contains(&format!("node/{from} drained")),
        "{printed}"
    );

    let left = format!(
        "get pods -o jsonpath={{.items[*].metadata.labels.app}} --field-selector=spec.nodeName={from}"
    );
    flow.shows(&left, "agent");
    flow.kubectl("rollout status deployment web --timeout=60s");
    let nodes = "get pods -l app=web -o jsonpath={.items[*].spec.nodeName}";
    flow.shows(nodes, &[to.as_str(); 3].join(" "));
    flow.kubectl(&format!("uncordon {from}"));
    flow.until(
        &format!("get node {from}"),
        "no SchedulingDisabled",
        |shown| !shown.contains("SchedulingDisabled"),
    );
}

#[test]
#[ignore = "tier: tools"]
fn a_disruption_budget_blocks_a_drain_and_then_allows_it() {
    let flow = Flow::start("budget");
    let (from, to) = (flow.node("a"), flow.node("b"));
    flow.kubectl(&format!("cordon {to}"));
    flow.create(&flow.deployment("web", 2));
    flow.kubectl("rollout status deployment web --timeout=60s");
    flow.kubectl(&format!("uncordon {to}"));
    flow.kubectl("create poddisruptionbudget web --selector=app=web --min-available=2");
    flow.shows(
        "get pdb web -o jsonpath={.status.currentHealthy}/{.status.desiredHealthy}",
        "2/2",
    );

    let drain = format!("drain {from} --timeout=2s");
    let problem = flow.refused(&drain);
    let budget = "Cannot evict pod as it would violate the pod's disruption budget.";
    assert!(problem.contains(budget), "{problem}");
    let pod = &flow.pods("app=web")[0];
    let eviction = json!({
        "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": pod },
    });
    let path = format!("/api/v1/namespaces/{}/pods/{pod}/eviction", flow.name);
    let answer = flow.try_kubectl_with(&format!("create --raw {path} -f -"), &eviction.to_string());
    assert_eq!(
        answer.stderr,
        format!("Error from server (TooManyRequests): {budget}\n")
    );

    flow.kubectl("patch pdb web -p {\"spec\":{\"minAvailable\":1}}");
    flow.shows("get pdb web -o jsonpath={.status.disruptionsAllowed}", "1");
    flow.kubectl(&format!("drain {from} --timeout=60s"));
    flow.kubectl("rollout status deployment web --timeout=60s");
    let nodes = "get pods -l app=web -o jsonpath={.items[*].spec.nodeName}";
    flow.shows(nodes, &[to.as_str(); 2].join(" "));
    flow.shows(
        "get pdb web -o jsonpath={.status.currentHealthy}/{.status.disruptionsAllowed}",
        "2/1",
    );
}
