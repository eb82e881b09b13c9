//! The system clock is set while a node runs pods: the node stays ready, its lease is renewed, probes
//! and restarts continue, and no container is started again without a reason.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use plimsoll_testkit::vm::slowness;
use plimsoll_testkit::waiting::until;
use serde_json::{Value, json};

use crate::clock_of_the_server::{HOUR, SetClock, YEAR, now, set_clock};
use crate::cluster::{Cluster, NODE, Runtime, configured};
use crate::manifest::{WAIT, container, pod, status};
use crate::vm;

/// Pods whose containers must keep running.
const PODS: [&str; 3] = ["probed", "patient", "limited"];

#[test]
#[ignore = "tier: vm"]
fn pods_continue_when_the_clock_of_the_node_is_set() {
    // Tests must not set the clock of the machine that runs them.
    if slowness() == 1 {
        let own = ["clock_of_the_node::"];
        return vm::machine().run_own_tests(&own, vm::LIMIT).unwrap();
    }
    let right = now();
    let _clock = SetClock(right);
    let mut cluster = Cluster::start_with(Runtime::Embedded, |folder| {
        let settings = json!({
            "evictionHard": { "memory.available": "50Mi" },
            "crashLoopBackOff": { "maxContainerRestartPeriod": "5s" },
            "nodeLeaseDurationSeconds": 8,
        });
        configured(folder, &settings)
    });
    create(&cluster);
    let probes = probe_log(&cluster);
    let before = containers(&cluster);

    // All certificates but those of authorities have expired.
    set_clock(right + YEAR);
    continues(&cluster, &probes, "a year ahead");
    assert_eq!(containers(&cluster), before);

    set_clock(right - HOUR);
    continues(&cluster, &probes, "an hour behind");
    assert_eq!(containers(&cluster), before);

    // No certificate is valid, so the API cannot be reached; containers and their probes need none.
    set_clock(HOUR);
    probes_continue(&probes, "in 1970");

    set_clock(right);
    continues(&cluster, &probes, "right again");
    assert_eq!(containers(&cluster), before);

    // The lease of an agent that starts an hour behind was renewed in its future.
    cluster.kill();
    set_clock(right - HOUR);
    cluster.start_again();
    continues(&cluster, &probes, "started an hour behind");
    assert_eq!(containers(&cluster), before);

    let events = cluster.get("events default").to_string();
    for reason in ["TaintManagerEviction", "Evicted", "DeadlineExceeded"] {
        assert!(!events.contains(reason), "{reason}: {events}");
    }
}

/// A pod with a liveness probe each second, one whose probe would fail but begins in an hour, one that
/// may run for an hour, and one that fails again and again.
fn create(cluster: &Cluster) {
    let mut probed = container("main", WAIT);
    probed["volumeMounts"] = json!([{ "name": "probes", "mountPath": "/probes" }]);
    probed["livenessProbe"] = json!({
        "exec": { "command": ["sh", "-c", "echo >> /probes/count"] },
        "periodSeconds": 1, "timeoutSeconds": 60,
    });
    let mut patient = container("main", WAIT);
    patient["livenessProbe"] = json!({
        "exec": { "command": ["false"] },
        "initialDelaySeconds": 3600, "periodSeconds": 1, "failureThreshold": 1,
    });
    let mut probed = pod("probed", &[probed]);
    probed["spec"]["volumes"] = json!([{ "name": "probes", "emptyDir": {} }]);
    let mut limited = pod("limited", &[container("main", WAIT)]);
    limited["spec"]["activeDeadlineSeconds"] = json!(3600);
    let failing = pod("failing", &[container("main", "exit 1")]);
    cluster.create_all(vec![probed, pod("patient", &[patient]), limited, failing]);
    for name in PODS {
        cluster.until_running(&json!(name));
    }
}

/// The file to which each probe adds a byte.
fn probe_log(cluster: &Cluster) -> PathBuf {
    let uid = cluster.get("pod probed")["metadata"]["uid"].clone();
    let volume = "volumes/kubernetes.io~empty-dir/probes/count";
    let pods = cluster.data_dir().join("kubelet/pods");
    let file = pods.join(uid.as_str().unwrap_or_default()).join(volume);
    probes_continue(&file, "at first");
    file
}

fn probes(log: &Path) -> usize {
    std::fs::read(log).map_or(0, |bytes| bytes.len())
}

fn probes_continue(log: &Path, when: &str) {
    let before = probes(log);
    until(&format!("probes continue {when}"), || match probes(log) {
        now if now > before + 2 => Ok(()),
        now => Err(format!("{before} probes, now {now}")),
    });
}

/// Container ids, and how often they were restarted.
fn containers(cluster: &Cluster) -> BTreeMap<&'static str, (String, u64)> {
    let found = PODS.map(|name| {
        let pod = cluster.get(&format!("pod {name}"));
        let main = status(&pod, "main");
        let id = main["containerID"].as_str().unwrap_or_default().to_owned();
        let restarts = main["restartCount"].as_u64().unwrap_or(u64::MAX);
        (name, (id, restarts))
    });
    BTreeMap::from(found)
}

/// Waits until the lease is renewed with later times, probes ran, the failing container was restarted,
/// and the node is ready without taints.
fn continues(cluster: &Cluster, log: &Path, when: &str) {
    let renewal = |lease: &Value| lease["spec"]["renewTime"].as_str().map(str::to_owned);
    let restarts = |pod: &Value| status(pod, "main")["restartCount"].as_u64();
    // Certificates are checked twice a minute; until then requests are refused.
    let lease = cluster.until_object("lease n1", "read", Value::is_object);
    let renewed = cluster.until_object("lease n1", "renewed", |seen| {
        renewal(seen) != renewal(&lease)
    });
    // Controllers regard only later times as a sign of life.
    cluster.until_object("lease n1", "renewed with a later time", |seen| {
        renewal(seen) > renewal(&renewed)
    });
    let failing = cluster.get("pod failing");
    cluster.until_object("pod failing", &format!("restarted {when}"), |seen| {
        restarts(seen) > restarts(&failing)
    });
    probes_continue(log, when);
    cluster.until_object(&format!("node {NODE}"), &format!("ready {when}"), |node| {
        let conditions = node["status"]["conditions"].as_array();
        let mut conditions = conditions.into_iter().flatten();
        conditions.any(|one| one["type"] == "Ready" && one["status"] == "True")
            && node["spec"]["taints"].is_null()
    });
}
