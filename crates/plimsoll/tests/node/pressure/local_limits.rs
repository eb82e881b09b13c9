//! Pods beyond their limits of local storage, on a node with free disk space.

use std::time::{Duration, Instant};

use plimsoll_testkit::vm::slowness;
use serde_json::{Value, json};

use super::{SUMMARY, is_disrupted, with_scratch};
use crate::cluster::{Cluster, on_both_runtimes};
use crate::manifest::{WAIT, container, pod};

on_both_runtimes!(
    each_exceeded_disk_limit_evicts_only_its_pod,
    full_memory_volume_evicts_no_pod,
);

/// The maximum time from the moment a pod exceeds its limit to the report of its termination.
/// containerd measures writable layers periodically: each second in tests.
const PATIENCE: Duration = Duration::from_secs(20);

/// Writes three MiB on request, and waits.
fn on_demand(path: &str) -> String {
    format!(
        "while [ ! -e /tmp/go ]; do sleep 0.1; done; dd if=/dev/zero of={path} bs=1M count=3; {WAIT}"
    )
}

fn limited(mut pod: Value, limit: &str) -> Value {
    let main = &mut pod["spec"]["containers"][0];
    main["resources"] = json!({ "limits": { "ephemeral-storage": limit } });
    pod
}

/// A pod whose first container may hold 2Mi; the pod as a whole may hold more.
fn limited_container(name: &str, script: &str) -> Value {
    let mut other = container("other", WAIT);
    other["resources"] = json!({ "limits": { "ephemeral-storage": "20Mi" } });
    limited(pod(name, &[container("main", script), other]), "2Mi")
}

fn each_exceeded_disk_limit_evicts_only_its_pod(cluster: &mut Cluster) {
    let mut volume = with_scratch("volume", &on_demand("/scratch/f"));
    volume["spec"]["volumes"][0]["emptyDir"] = json!({ "sizeLimit": "2Mi" });
    let of_pod = limited(with_scratch("of-pod", &on_demand("/scratch/f")), "2Mi");
    let layer = limited_container("layer", &on_demand("/f"));
    let talks = "while [ ! -e /tmp/go ]; do sleep 0.1; done; yes | head -c 300000; ";
    let log = limited_container("log", &format!("{talks}{WAIT}"));
    let mut within = limited(with_scratch("within", &on_demand("/scratch/f")), "20Mi");
    within["spec"]["volumes"][0]["emptyDir"] = json!({ "sizeLimit": "10Mi" });

    let cases = [
        (
            volume,
            "Usage of EmptyDir volume \"scratch\" exceeds the limit \"2Mi\". ",
        ),
        (
            of_pod,
            "Pod ephemeral local storage usage exceeds the total limit of containers 2Mi. ",
        ),
        (
            layer,
            "Container main exceeded its local ephemeral storage limit \"2Mi\". ",
        ),
        (
            log,
            "Container main exceeded its local ephemeral storage limit \"2Mi\". ",
        ),
    ];
    cluster.run(&within);
    for (pod, _) in &cases {
        cluster.run(pod);
    }
    let trigger = |name: &str| {
        cluster.kubectl(&format!("exec {name} -c main -- touch /tmp/go"));
    };
    trigger("within");
    for (pod, expected) in &cases {
        let name = pod["metadata"]["name"].as_str().expect("a name");
        let begun = Instant::now();
        trigger(name);
        let (evicted, message) = cluster.until_evicted(name);
        let took = begun.elapsed();
        assert_eq!(message, *expected, "{name}");
        assert!(!is_disrupted(&evicted), "{evicted:#}");
        assert!(took < PATIENCE * slowness(), "{name} went after {took:?}");
    }
    cluster.run_on(&["within"]);
    // The node is not under pressure.
    let node = cluster.get("node n1");
    assert_eq!(node["spec"]["taints"], Value::Null);
}

fn full_memory_volume_evicts_no_pod(cluster: &mut Cluster) {
    let script = "dd if=/dev/zero of=/scratch/f bs=1M count=4 2>&1 | grep -o 'No space left.*'";
    let mut full = with_scratch("full", &format!("{script}; {WAIT}"));
    full["spec"]["volumes"][0]["emptyDir"] = json!({ "medium": "Memory", "sizeLimit": "2Mi" });
    cluster.run(&full);
    cluster.shows("logs full", "No space left on device\n");
    // A volume as large as its limit does not exceed it, and this one is not on disk.
    let seen = cluster.until(SUMMARY, "the volume", |summary| {
        let summary: Value = serde_json::from_str(summary).unwrap_or_default();
        scratch(&summary).is_some_and(|volume| volume["usedBytes"] == 2 << 20)
    });
    assert!(seen.contains("ephemeral-storage"), "{seen}");
    cluster.run_on(&["full"]);
}

/// The volume `scratch` in the summary.
fn scratch(summary: &Value) -> Option<&Value> {
    let pods = summary["pods"].as_array()?.iter();
    let mut volumes = pods.filter_map(|pod| pod["volume"].as_array()).flatten();
    volumes.find(|volume| volume["name"] == "scratch")
}
