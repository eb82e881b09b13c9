//! Nodes: columns, taints, cordons.

use crate::session::{Session, with_every_kubectl};

/// A ready node that is named for the session.
fn node(s: &Session) -> String {
    let name = s.unique("node");
    s.create(&format!(
        "{{apiVersion: v1, kind: Node, metadata: {{name: {name}, labels: {{zone: $NS}}}}}}"
    ));
    s.set_status(
        &format!("node/{name}"),
        "{\"capacity\":{\"cpu\":\"4\",\"memory\":\"8Gi\",\"pods\":\"110\"},\
          \"allocatable\":{\"cpu\":\"3500m\",\"memory\":\"7Gi\",\"pods\":\"110\"},\
          \"conditions\":[{\"type\":\"Ready\",\"status\":\"True\",\"reason\":\"KubeletReady\",\"message\":\"ok\"}]}",
    );
    name
}

#[test]
#[ignore = "tier: tools"]
fn nodes_have_the_columns_of_kubectl() {
    with_every_kubectl(|s| {
        let name = node(s);
        s.run("get nodes -l zone=$NS")
            .says("NAME  STATUS  ROLES  AGE  VERSION\nnode-NS  Ready  <none>  AGE");
        s.run("get nodes -l zone=$NS -o wide --no-headers")
            .says("node-NS  Ready  <none>  AGE  <none>  <none>  <unknown>  <unknown>  <unknown>");
        s.ok(&format!(
            "label node {name} node-role.kubernetes.io/worker="
        ));
        s.run(&format!("get node {name} --no-headers"))
            .says("node-NS  Ready  worker  AGE");
        s.ok(&format!("delete node {name}"));
    });
}

#[test]
#[ignore = "tier: tools"]
fn taints_are_added_changed_and_removed() {
    with_every_kubectl(|s| {
        let name = node(s);
        let taint = |taints: &str| s.run(&format!("taint nodes {name} {taints}"));
        taint("k1=v1:NoSchedule").says("node/node-NS tainted");
        taint("k1=v1:NoSchedule").fails(
            "error: node node-NS already has k1 taint(s) with same effect(s) and --overwrite is \
             false",
        );
        taint("k1=v2:NoSchedule --overwrite").says("node/node-NS modified");
        taint("k2:NoExecute k3=x:PreferNoSchedule").says("node/node-NS tainted");
        taint("k2-").says("node/node-NS untainted");
        taint("k1:NoSchedule-").says("node/node-NS untainted");
        taint("nope-").fails_with("taint \"nope\" not found");
        taint("bad:Effect").fails_with("invalid taint effect: Effect, unsupported taint effect");
        s.run(&format!(
            "get node {name} -o jsonpath='{{.spec.taints[*].key}}'"
        ))
        .says("k3 node.kubernetes.io/not-ready");
        s.ok(&format!("delete node {name}"));
    });
}

#[test]
#[ignore = "tier: tools"]
fn nodes_are_cordoned_and_uncordoned() {
    with_every_kubectl(|s| {
        let name = node(s);
        s.run(&format!("cordon {name}"))
            .says("node/node-NS cordoned");
        s.run(&format!("cordon {name}"))
            .says("node/node-NS already cordoned");
        s.run(&format!("get node {name} --no-headers"))
            .says("node-NS  Ready,SchedulingDisabled  <none>  AGE");
        s.run(&format!("uncordon {name}"))
            .says("node/node-NS uncordoned");
        s.run(&format!("uncordon {name}"))
            .says("node/node-NS already uncordoned");
        s.run("cordon nope")
            .fails("Error from server (NotFound): nodes \"nope\" not found");
        s.run(&format!("delete node {name}"))
            .says("node \"node-NS\" deleted");
    });
}

#[test]
#[ignore = "tier: tools"]
fn a_node_is_described_with_its_pods() {
    with_every_kubectl(|s| {
        let name = node(s);
        s.create(&format!(
            "{{apiVersion: v1, kind: Pod, metadata: {{name: p}}, spec: {{nodeName: {name}, \
              containers: [{{name: a, image: x, resources: {{requests: {{cpu: 700m}}}}}}]}}}}"
        ));
        s.run(&format!("describe node {name}")).mentions(&[
            "Name:  node-NS",
            "Taints:  node.kubernetes.io/not-ready:NoSchedule",
            "Unschedulable:  false",
            "Failed to get lease: leases.coordination.k8s.io \"node-NS\" not found",
            "  Ready  True",
            "  cpu:  3500m",
            "(1 in total)",
            "  NS  p  700m (20%)  0 (0%)  0 (0%)  0 (0%)  AGE",
            "  cpu  700m (20%)  0 (0%)",
            "Events:  <none>",
        ]);
        s.ok("delete pod p --force --grace-period=0");
        s.ok(&format!("delete node {name}"));
    });
}
