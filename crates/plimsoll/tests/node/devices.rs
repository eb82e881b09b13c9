//! Extended resources: those that an administrator adds to a node, and those of device plugins.

#[path = "../../../node/src/devices/tests/plugin.rs"]
mod plugin;

use plimsoll_node::devices::wire;
use plimsoll_testkit::waiting::until;
use serde_json::{Value, json};

use crate::cluster::{Cluster, NODE, Runtime, configured, on_both_runtimes};
use crate::manifest::{WAIT, container, pod, sized, status};
use plugin::{Behavior, Plugin};

const FOO: &str = "example.com/foo";
const DEVICE: &str = "example.com/device";

fn asking(name: &str, resource: &str, count: &str) -> Value {
    pod(
        name,
        &[sized("main", &json!({ "limits": { resource: count } }))],
    )
}

fn start(runtime: Runtime) -> Cluster {
    Cluster::start_with(runtime, |folder| {
        let settings = json!({ "evictionHard": { "memory.available": "100Mi" } });
        configured(folder, &settings)
    })
}

/// Waits until the node's capacity and allocatable are these.
fn until_node_has(cluster: &Cluster, resource: &str, capacity: &str, allocatable: &str) {
    let wanted = format!("one with {capacity} {resource}, {allocatable} of them allocatable");
    cluster.until_object(&format!("node {NODE}"), &wanted, |node| {
        let status = &node["status"];
        status["capacity"][resource] == capacity && status["allocatable"][resource] == allocatable
    });
}

fn until_insufficient(cluster: &Cluster, name: &str, resource: &str) {
    cluster.until_object(&format!("pod {name}"), "unschedulable", |pod| {
        let conditions = pod["status"]["conditions"].as_array();
        conditions.into_iter().flatten().any(|condition| {
            let message = condition["message"].as_str().unwrap_or_default();
            message.contains(&format!("Insufficient {resource}"))
        })
    });
}

/// Waits until the node has reported a few more times that it is alive, ten seconds apart.
fn wait_for_heartbeats(cluster: &Cluster) {
    let lease = format!("lease {NODE} -n kube-node-lease");
    for _ in 0..2 {
        let renewed = || {
            let path = "jsonpath={.spec.renewTime}";
            cluster.kubectl(&format!("get {lease} -o {path}"))
        };
        let before = renewed();
        until("the lease is renewed", || match renewed() {
            now if now == before => Err(now),
            _ => Ok(()),
        });
    }
}

#[test]
#[ignore = "tier: root"]
fn extended_resources_of_an_administrator_stay_and_are_shared_out() {
    let mut cluster = start(Runtime::Embedded);
    let patch = r#"[{"op":"add","path":"/status/capacity/example.com~1foo","value":"3"}]"#;
    cluster.kubectl(&format!(
        "patch node {NODE} --subresource=status --type=json -p {patch}"
    ));
    until_node_has(&cluster, FOO, "3", "3");
    wait_for_heartbeats(&cluster);
    until_node_has(&cluster, FOO, "3", "3");
    let idle = pod("idle", &[container("main", WAIT)]);
    cluster.run(&idle);
    cluster.run(&asking("first", FOO, "2"));
    cluster.create(&asking("second", FOO, "2"));
    until_insufficient(&cluster, "second", FOO);

    cluster.interrupt();
    cluster.start_again();
    until_node_has(&cluster, FOO, "3", "3");
    wait_for_heartbeats(&cluster);
    until_node_has(&cluster, FOO, "3", "3");
    cluster.until_running(&json!("first"));

    // Only the pod that has the resource makes room for a more important one.
    cluster.create(&json!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
        "metadata": { "name": "urgent" }, "value": 1000,
    }));
    let mut urgent = asking("urgent", FOO, "3");
    urgent["spec"]["priorityClassName"] = json!("urgent");
    cluster.run(&urgent);
    cluster.is_gone("pod first");
    assert_eq!(cluster.get("pod idle")["status"]["phase"], "Running");

    // What is taken out of the capacity is not allocatable any more.
    let patch = r#"[{"op":"remove","path":"/status/capacity/example.com~1foo"}]"#;
    cluster.kubectl(&format!(
        "patch node {NODE} --subresource=status --type=json -p {patch}"
    ));
    cluster.until_object(&format!("node {NODE}"), "without it", |node| {
        node["status"]["allocatable"][FOO].is_null()
    });
}

fn plugin(cluster: &Cluster, devices: &[(&str, bool)]) -> Plugin {
    let directory = cluster.data_dir().join("kubelet/device-plugins");
    let plugin = Plugin::new(&directory, DEVICE, devices, Behavior::default());
    plugin
        .register(wire::VERSION)
        .expect("the plugin registers");
    plugin
}

/// What a container that has the first device sees of it.
fn seen_inside(cluster: &Cluster) -> String {
    let script = ":<>/dev/test-a && echo $TEST_DEVICES && head -c5 /etc/test-devices";
    cluster.kubectl_with("exec -i first -- sh", script)
}

fn containers_use_devices_of_plugins(cluster: &mut Cluster) {
    let offered = plugin(cluster, &[("a", true), ("b", true)]);
    until_node_has(cluster, DEVICE, "2", "2");
    cluster.run(&asking("first", DEVICE, "1"));
    assert_eq!(offered.calls(), ["allocate a"]);
    assert_eq!(seen_inside(cluster), "a\nLinux");
    cluster.create(&asking("second", DEVICE, "2"));
    until_insufficient(cluster, "second", DEVICE);
    cluster.kubectl("delete pod second");

    offered.list(&[("a", false), ("b", true)]);
    until_node_has(cluster, DEVICE, "2", "1");
    cluster.until_object("pod first", "shown with an unhealthy device", |pod| {
        let devices = &status(pod, "main")["allocatedResourcesStatus"];
        *devices
            == json!([{
                "name": DEVICE, "resources": [{ "resourceID": "a", "health": "Unhealthy" }],
            }])
    });
    // A pod that was bound by hand gets nothing.
    let mut bound = asking("bound", DEVICE, "2");
    bound["spec"]["nodeName"] = json!(NODE);
    cluster.create(&bound);
    let bound = cluster.until_phase("bound", "Failed");
    assert_eq!(bound["status"]["reason"], "UnexpectedAdmissionError");
    assert_eq!(
        bound["status"]["message"],
        "Pod was rejected: Allocate failed due to requested number of devices unavailable for \
         example.com/device. Requested: 2, Available: 1, which is unexpected"
    );

    // The agent restarts: the pod keeps its device, and the plugin registers again.
    let container = status(&cluster.get("pod first"), "main")["containerID"].clone();
    cluster.interrupt();
    cluster.start_again();
    offered.list(&[("a", true), ("b", true)]);
    offered.listen();
    offered
        .register(wire::VERSION)
        .expect("the plugin registers again");
    until_node_has(cluster, DEVICE, "2", "2");
    let first = cluster.until_running(&json!("first"));
    assert_eq!(status(&first, "main")["containerID"], container);
    assert_eq!(seen_inside(cluster), "a\nLinux");
    cluster.run(&asking("third", DEVICE, "1"));
    assert_eq!(offered.calls(), ["allocate b"]);

    // The plugin dies.
    drop(offered);
    until_node_has(cluster, DEVICE, "2", "0");
    cluster.kubectl("delete pod first third");
}

on_both_runtimes!(containers_use_devices_of_plugins);
