//! Metrics and events of a node and its pods.

use plimsoll_testkit::waiting::until;
use serde_json::{Value, json};

use crate::cluster::{Cluster, NODE, Runtime, on_both_runtimes};
use crate::manifest::{container, pod};

on_both_runtimes!(
    usage_is_measured,
    host_path_volumes_are_not_measured,
    pod_events_list_its_start
);

fn raw(cluster: &Cluster, path: &str) -> String {
    cluster.kubectl(&format!("get --raw /api/v1/nodes/{NODE}/proxy/{path}"))
}

fn usage_is_measured(cluster: &mut Cluster) {
    // Uses 16 MiB and cpu time.
    let script = "x=$(head -c 16777216 /dev/zero | tr '\\0' x); while true; do true; done";
    let mut busy = container("main", script);
    busy["resources"] = json!({ "limits": { "cpu": "200m" } });
    cluster.run(&pod("busy", &[busy]));
    let summary = until("the summary has the pod's figures", || {
        let text = raw(cluster, "stats/summary");
        let summary: Value = serde_json::from_str(&text).map_err(|e| e.to_string())?;
        let pods = summary["pods"].as_array();
        let ours = pods.and_then(|pods| pods.iter().find(|pod| pod["podRef"]["name"] == "busy"));
        let main = ours.map_or(Value::Null, |pod| pod["containers"][0].clone());
        let cpu = main["cpu"]["usageNanoCores"].as_u64().unwrap_or_default();
        let memory = main["memory"]["workingSetBytes"]
            .as_u64()
            .unwrap_or_default();
        let is_measured = (50_000_000..400_000_000).contains(&cpu) && memory > 16 << 20;
        if is_measured {
            Ok(summary)
        } else {
            Err(format!("{main:#}"))
        }
    });
    let node = &summary["node"];
    assert_eq!(node["nodeName"], NODE);
    for path in [
        "/cpu/usageNanoCores",
        "/memory/workingSetBytes",
        "/memory/availableBytes",
        "/fs/availableBytes",
        "/fs/inodesFree",
        "/rlimit/maxpid",
    ] {
        let value = node.pointer(path).and_then(Value::as_u64);
        assert!(value.is_some_and(|value| value > 0), "{path} in {node:#}");
    }
    let system = node["systemContainers"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    // Includes that of containerd where it can be distinguished from the machine's.
    let names = match cluster.runtime {
        Runtime::Embedded => &["kubelet", "pods", "runtime"][..],
        Runtime::Containerd => &["kubelet", "pods"],
    };
    for name in names {
        let of_it = system.iter().find(|one| one["name"] == *name);
        let memory = of_it.map(|one| &one["memory"]["workingSetBytes"]);
        let is_measured = memory.and_then(Value::as_u64).is_some_and(|used| used > 0);
        assert!(is_measured, "{name} is missing in {system:#?}");
    }
    cluster.until("top pod busy --containers", "usage", |shown| {
        let row = shown.lines().nth(1).unwrap_or_default();
        let words: Vec<&str> = row.split_whitespace().collect();
        let is_pod = words.get(..2) == Some(&["busy", "main"]);
        is_pod && words.len() == 4 && words[2].ends_with('m') && words[3].ends_with("Mi")
    });
    cluster.until("top node", "usage", |shown| {
        let row = shown.lines().nth(1).unwrap_or_default();
        row.starts_with(NODE) && row.contains('%') && !row.contains("unknown")
    });
    for (path, part) in [
        ("healthz", "ok"),
        ("metrics/resource", "node_cpu_usage_seconds_total"),
        (
            "metrics/resource",
            "container_memory_working_set_bytes{container=\"main\"",
        ),
        ("metrics/cadvisor", "container_cpu_usage_seconds_total"),
        ("metrics", "kubelet_"),
        ("pods", "\"busy\""),
        ("configz", "kubeletconfig"),
    ] {
        let answer = raw(cluster, path);
        assert!(
            answer.contains(part),
            "{part} is missing in {path}: {answer}"
        );
    }
}

/// As those of every node exporter: the agent does not walk over the whole machine for it.
fn host_path_volumes_are_not_measured(cluster: &mut Cluster) {
    let mut main = container("main", "echo x > /scratch/f; sleep 100000");
    main["volumeMounts"] = json!([
        { "name": "host", "mountPath": "/host", "readOnly": true },
        { "name": "scratch", "mountPath": "/scratch" },
    ]);
    let mut exporter = pod("exporter", &[main]);
    exporter["spec"]["volumes"] = json!([
        { "name": "host", "hostPath": { "path": "/" } },
        { "name": "scratch", "emptyDir": {} },
    ]);
    cluster.run(&exporter);
    let measured = until("the summary has the pod's volumes", || {
        let text = raw(cluster, "stats/summary");
        let summary: Value = serde_json::from_str(&text).map_err(|e| e.to_string())?;
        let pods = summary["pods"].as_array();
        let ours =
            pods.and_then(|pods| pods.iter().find(|pod| pod["podRef"]["name"] == "exporter"));
        let volumes = ours.and_then(|pod| pod["volume"].as_array().cloned());
        let volumes = volumes.unwrap_or_default();
        match volumes.iter().any(|volume| volume["name"] == "scratch") {
            true => Ok(volumes),
            false => Err(format!("{ours:#?}")),
        }
    });
    let names: Vec<&Value> = measured.iter().map(|volume| &volume["name"]).collect();
    assert!(!names.contains(&&json!("host")), "{names:?}");
}

fn pod_events_list_its_start(cluster: &mut Cluster) {
    cluster.run(&pod("p", &[container("main", "sleep 100000")]));
    let shown = cluster.until("describe pod p", "its start", |shown| {
        shown.contains("Container started")
    });
    let from = shown.find("Events:").expect("there are events");
    let mut rest = &shown[from..];
    for part in [
        "Successfully assigned default/p to n1",
        "already present on machine",
        "Container created",
        "Container started",
    ] {
        let at = rest.find(part);
        rest = &rest[at.unwrap_or_else(|| panic!("{part} is missing: {shown}"))..];
    }
    for part in [
        "Status:           Running",
        "QoS Class:                   BestEffort",
    ] {
        assert!(shown.contains(part), "{part} is missing: {shown}");
    }
    let node = cluster.kubectl(&format!("describe node {NODE}"));
    for part in [
        "KubeletReady",
        "Starting kubelet.",
        "Non-terminated Pods:          (1 in total)",
    ] {
        assert!(node.contains(part), "{part} is missing: {node}");
    }
}
