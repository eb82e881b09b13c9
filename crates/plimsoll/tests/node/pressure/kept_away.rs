//! A node under pressure rejects pods until the pressure ends.

use serde_json::{Value, json};

use super::configured;
use crate::cluster::{Cluster, Runtime};
use crate::manifest::{WAIT, container, pod, sized};

const PRESSURE: (&str, &str) = ("MemoryPressure", "node.kubernetes.io/memory-pressure");

/// A node of 600 MiB that reports pressure below 500 MiB available, but evicts no pod.
fn start(further: &[&str]) -> Cluster {
    let cluster = Cluster::start_with(Runtime::Embedded, |folder| {
        let settings = json!({
            "evictionHard": { "memory.available": "50Mi" },
            "evictionSoft": { "memory.available": "500Mi" },
            "evictionSoftGracePeriod": { "memory.available": "10m" },
            "evictionPressureTransitionPeriod": "2s",
        });
        let mut arguments = configured(folder, &settings);
        arguments.extend(["--capacity", "cpu=2,memory=600Mi"].map(str::to_owned));
        arguments.extend(further.iter().map(|argument| (*argument).to_owned()));
        arguments
    });
    let mut load = container("main", WAIT);
    load["volumeMounts"] = json!([{ "name": "memory", "mountPath": "/memory" }]);
    let mut load = pod("load", &[load]);
    load["spec"]["volumes"] = json!([{ "name": "memory", "emptyDir": { "medium": "Memory" } }]);
    cluster.run(&load);
    cluster.kubectl("exec load -- sh -c 'dd if=/dev/zero of=/memory/f bs=1M count=150'");
    cluster.until_pressed(PRESSURE.0, PRESSURE.1, true);
    cluster
}

fn burstable() -> Value {
    let resources = json!({ "requests": { "memory": "16Mi" } });
    pod("burstable", &[sized("main", &resources)])
}

fn best_effort() -> Value {
    pod("best-effort", &[container("main", WAIT)])
}

fn ease(cluster: &Cluster) {
    cluster.kubectl("exec load -- rm /memory/f");
    cluster.until_pressed(PRESSURE.0, PRESSURE.1, false);
}

#[test]
#[ignore = "tier: root"]
fn memory_pressure_keeps_all_pods_away_until_it_is_over() {
    let cluster = start(&[]);
    for pod in [burstable(), best_effort()] {
        cluster.create(&pod);
    }
    cluster.until_kept_away("burstable");
    cluster.until_kept_away("best-effort");
    ease(&cluster);
    cluster.until_running(&json!("burstable"));
    cluster.until_running(&json!("best-effort"));
    cluster.run_on(&["load"]);
}

#[test]
#[ignore = "tier: root"]
fn memory_pressure_keeps_only_best_effort_pods_away_if_so_set() {
    let cluster = start(&["--add-memory-pressure-toleration"]);
    cluster.create(&best_effort());
    cluster.run(&burstable());
    cluster.until_kept_away("best-effort");
    ease(&cluster);
    cluster.until_running(&json!("best-effort"));
}
