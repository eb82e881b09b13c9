//! `drain`: evictions, budgets, and pods that block it.

use crate::session::{Session, with_every_kubectl, with_kubectl_from};

fn node(s: &Session) -> String {
    let name = s.unique("drained");
    s.create(&format!(
        "{{apiVersion: v1, kind: Node, metadata: {{name: {name}}}}}"
    ));
    name
}

/// A running pod on a node, with an owner or without.
fn pod(s: &Session, node: &str, name: &str, owner: &str) {
    let owner = match owner {
        "" => String::new(),
        owner => format!("ownerReferences: [{owner}], "),
    };
    s.create(&format!(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, {owner}labels: {{app: {name}}}}}, \
          spec: {{nodeName: {node}, terminationGracePeriodSeconds: 0, \
          containers: [{{name: a, image: x}}]}}}}"
    ));
    s.set_status(
        &format!("pod/{name}"),
        "{\"phase\":\"Running\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}",
    );
}

#[test]
#[ignore = "tier: tools"]
fn an_empty_node_is_drained_at_once() {
    with_every_kubectl(|s| {
        let node = node(s);
        s.run(&format!("drain {node} --dry-run=server")).says(
            "node/drained-NS cordoned (server dry run)\nnode/drained-NS drained (server dry run)",
        );
        s.run(&format!("drain {node}"))
            .mentions(&["node/drained-NS cordoned\n"])
            .mentions(&["drained"]);
        s.run("drain nope")
            .fails("Error from server (NotFound): nodes \"nope\" not found");
        s.ok(&format!("delete node {node}"));
    });
}

#[test]
#[ignore = "tier: tools"]
fn unmanaged_pods_block_a_drain() {
    with_every_kubectl(|s| {
        let node = node(s);
        pod(s, &node, "bare", "");
        s.create(
            "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: ds}, spec: {selector: \
              {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: \
              [{name: a, image: x}]}}}}",
        );
        let uid = s.unmasked("get ds ds -o jsonpath={.metadata.uid}");
        let owner = format!(
            "{{apiVersion: apps/v1, kind: DaemonSet, name: ds, uid: {uid}, controller: true}}"
        );
        pod(s, &node, "of-daemon-set", &owner);
        let refused = s.run(&format!("drain {node}"));
        refused.fails_with("(use --ignore-daemonsets to ignore): NS/of-daemon-set");
        refused.fails_with("(use --force to override): NS/bare");
        let drained = s.run(&format!(
            "drain {node} --ignore-daemonsets --force --timeout=30s"
        ));
        drained.mentions(&["evicting pod NS/bare", "pod/bare evicted", "drained"]);
        s.run("get pods -o name").says("pod/of-daemon-set");
        s.ok(&format!("delete node {node}"));
    });
}

/// `policy/v1` evictions are of 1.22.
#[test]
#[ignore = "tier: tools"]
fn disruption_budgets_block_evictions() {
    with_kubectl_from(22, |s| {
        let node = node(s);
        pod(s, &node, "web", "");
        s.ok("create pdb budget --selector=app=web --min-available=1");
        s.set_status(
            "pdb/budget",
            "{\"observedGeneration\":1,\"disruptionsAllowed\":0,\"currentHealthy\":1,\
              \"desiredHealthy\":1,\"expectedPods\":1}",
        );
        s.run("get pdb").says(
            "NAME  MIN AVAILABLE  MAX UNAVAILABLE  ALLOWED DISRUPTIONS  AGE\n\
             budget  1  N/A  0  AGE",
        );
        let refused = s.run(&format!("drain {node} --force --timeout=3s"));
        refused.fails_with(
            "error when evicting pods/\"web\" -n \"NS\" (will retry after 5s): Cannot evict pod \
             as it would violate the pod's disruption budget.",
        );
        s.set_status(
            "pdb/budget",
            "{\"observedGeneration\":1,\"disruptionsAllowed\":1,\"currentHealthy\":2,\
              \"desiredHealthy\":1,\"expectedPods\":2}",
        );
        s.run(&format!("drain {node} --force --timeout=30s"))
            .mentions(&["pod/web evicted", "node/drained-NS drained"]);
        s.run("get pdb budget -o jsonpath='{.status.disruptionsAllowed}'")
            .says("0");
        s.ok(&format!("delete node {node}"));
    });
}
