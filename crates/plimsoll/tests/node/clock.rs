//! The clock of the machine is set while pods run.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use plimsoll_testkit::vm::slowness;
use plimsoll_testkit::waiting::until;
use serde_json::{Value, json};

use crate::cluster::{Cluster, NODE, Runtime, configured};
use crate::manifest::{WAIT, container, pod, status};
use crate::vm;

const HOUR: u64 = 60 * 60;
/// Longer than certificates of nodes and clients are good.
const YEAR: u64 = 366 * 24 * HOUR;

/// Pods that are to go on.
const PODS: [&str; 3] = ["asked", "patient", "limited"];

#[test]
#[ignore = "tier: vm"]
fn pods_go_on_when_the_clock_is_set() {
    // The clock of the machine that runs tests is not ours to set.
    if slowness() == 1 {
        return vm::machine()
            .run_own_tests(&["clock::"], vm::LIMIT)
            .unwrap();
    }
    let clock = SetClock(now());
    let mut cluster = Cluster::start_with(Runtime::Embedded, |folder| {
        let settings = json!({
            "evictionHard": { "memory.available": "50Mi" },
            "crashLoopBackOff": { "maxContainerRestartPeriod": "5s" },
            "nodeLeaseDurationSeconds": 8,
        });
        configured(folder, &settings)
    });
    create(&cluster);
    let before = containers(&cluster);
    let right = now();
    let jumps = [
        ("a year ahead", right + YEAR),
        ("an hour behind", right - HOUR),
        ("1970", HOUR),
        ("right again", right),
    ];
    for (name, seconds) in jumps {
        set_clock(seconds);
        goes_on(&cluster, name);
        assert_eq!(containers(&cluster), before, "{name}");
        if name == "a year ahead" {
            // Certificates have ended; clients that connect now are shown and given others.
            cluster.shows("get node n1 -o name", "node/n1\n");
        }
    }
    cluster.shows("get node n1 -o name", "node/n1\n");
    // An agent that is started when the clock was set back renews its lease all the same.
    cluster.kill();
    set_clock(now() - HOUR);
    cluster.start_again();
    goes_on(&cluster, "started an hour behind");
    assert_eq!(containers(&cluster), before);
    let events = cluster.get("events default").to_string();
    for reason in [
        "NodeNotReady",
        "TaintManagerEviction",
        "Evicted",
        "DeadlineExceeded",
    ] {
        assert!(!events.contains(reason), "{reason}: {events}");
    }
    drop(cluster);
    drop(clock);
}

/// Sets the clock right again at last: the machine's other tests measure with it.
struct SetClock(u64);

impl Drop for SetClock {
    fn drop(&mut self) {
        let _ = date(self.0);
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}

fn date(seconds: u64) -> std::io::Result<std::process::Output> {
    Command::new("date")
        .args(["-s", &format!("@{seconds}")])
        .output()
}

fn set_clock(seconds: u64) {
    let output = date(seconds).unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(now().abs_diff(seconds) < 60, "the clock is not set");
}

/// One that is asked again and again, one that is not asked within an hour, one that may run for an
/// hour, and one that fails again and again.
fn create(cluster: &Cluster) {
    let mut asked = container("main", WAIT);
    asked["volumeMounts"] = json!([{ "name": "answers", "mountPath": "/answers" }]);
    asked["livenessProbe"] = json!({
        "exec": { "command": ["sh", "-c", "echo >> /answers/count"] },
        "periodSeconds": 1, "timeoutSeconds": 60,
    });
    let mut patient = container("main", WAIT);
    patient["livenessProbe"] = json!({
        "exec": { "command": ["false"] },
        "initialDelaySeconds": 3600, "periodSeconds": 1, "failureThreshold": 1,
    });
    let mut asked = pod("asked", &[asked]);
    asked["spec"]["volumes"] = json!([{ "name": "answers", "emptyDir": {} }]);
    let mut limited = pod("limited", &[container("main", WAIT)]);
    limited["spec"]["activeDeadlineSeconds"] = json!(3600);
    let failing = pod("failing", &[container("main", "exit 1")]);
    cluster.create_all(vec![asked, pod("patient", &[patient]), limited, failing]);
    for name in PODS {
        cluster.until_running(&json!(name));
    }
    until("the probe is asked", || match answers(cluster) {
        0 => Err("no answer yet".to_owned()),
        _ => Ok(()),
    });
}

/// What runs: ids of containers and how often they were started again.
fn containers(cluster: &Cluster) -> BTreeMap<&'static str, (String, u64)> {
    let found = PODS.map(|name| {
        let pod = cluster.get(&format!("pod {name}"));
        let main = status(&pod, "main");
        let id = main["containerID"].as_str().unwrap_or_default().to_owned();
        (
            name,
            (id, main["restartCount"].as_u64().unwrap_or(u64::MAX)),
        )
    });
    BTreeMap::from(found)
}

/// How often the probe was answered.
fn answers(cluster: &Cluster) -> usize {
    let uid = cluster.get("pod asked")["metadata"]["uid"].clone();
    let volumes = "volumes/kubernetes.io~empty-dir/answers/count";
    let pods: PathBuf = cluster.data_dir().join("kubelet/pods");
    let file = pods.join(uid.as_str().unwrap_or_default()).join(volumes);
    std::fs::read(file).map_or(0, |text| text.len())
}

/// Waits until the lease was renewed, probes were asked, and what fails was started again; the node
/// is ready all the while.
fn goes_on(cluster: &Cluster, name: &str) {
    let version = |lease: &Value| lease["metadata"]["resourceVersion"].clone();
    let restarts = || status(&cluster.get("pod failing"), "main")["restartCount"].as_u64();
    let (lease, asked, restarted) = (cluster.get("lease n1"), answers(cluster), restarts());
    let lease_of = |lease: &Value| lease["spec"]["renewTime"].as_str().map(str::to_owned);
    cluster.until_object("lease n1", "renewed", |seen| {
        version(seen) != version(&lease)
    });
    let renewed = cluster.get("lease n1");
    cluster.until_object("lease n1", "renewed again", |seen| {
        version(seen) != version(&renewed)
    });
    // Controllers take only later ones for signs of life.
    assert!(
        lease_of(&renewed) > lease_of(&lease),
        "{name}: {lease:#} {renewed:#}"
    );
    until(&format!("the probe goes on, {name}"), || {
        let now = answers(cluster);
        if now > asked + 2 {
            Ok(())
        } else {
            Err(format!("{asked} answers, now {now}"))
        }
    });
    until(&format!("what fails is started again, {name}"), || {
        let now = restarts();
        if now > restarted {
            Ok(())
        } else {
            Err(format!("{restarted:?} restarts, now {now:?}"))
        }
    });
    let node = cluster.get(&format!("node {NODE}"));
    let conditions = node["status"]["conditions"].as_array();
    let ready = conditions
        .into_iter()
        .flatten()
        .find(|one| one["type"] == "Ready");
    assert_eq!(
        ready.map(|ready| &ready["status"]),
        Some(&json!("True")),
        "{name}: {node:#}"
    );
    assert!(node["spec"]["taints"].is_null(), "{name}: {node:#}");
}
