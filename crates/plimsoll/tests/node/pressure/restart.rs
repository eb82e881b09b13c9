//! An agent that is killed during the grace period of evicted pods.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use plimsoll_core::object::timestamp::Timestamp;
use plimsoll_testkit::cgroup::processes;
use plimsoll_testkit::waiting::until;
use serde_json::{Value, json};

use super::{configured, is_disrupted, with_scratch};
use crate::cluster::{Cluster, NODE, Runtime};
use crate::manifest::{container_id, status};

/// The cgroup of all pods simulates the machine, with this number of process ids.
const CAPACITY: &str = "pid=200";

/// The grace period of a pod that ignores SIGTERM.
const GRACE: Duration = Duration::from_secs(12);

/// A pod that runs one script when the file of its name exists, and another on SIGTERM.
fn on_demand(folder: &Path, name: &str, script: &str, at_end: &str) -> Value {
    let wait = "while true; do sleep 1 & wait; done";
    let waits_for = |file: &str| format!("while [ ! -e /signals/{file} ]; do sleep 0.1; done");
    let (begins, ends) = (waits_for(name), at_end.replace("WAIT", &waits_for("end")));
    let script = format!("trap '{ends}' TERM; {begins}; {script}; {wait}");
    let mut pod = with_scratch(name, &script);
    let spec = &mut pod["spec"];
    spec["terminationGracePeriodSeconds"] = json!(GRACE.as_secs());
    let volumes = spec["volumes"].as_array_mut().unwrap();
    volumes.push(json!({ "name": "signals", "hostPath": { "path": folder } }));
    let mounts = spec["containers"][0]["volumeMounts"].as_array_mut();
    mounts
        .unwrap()
        .push(json!({ "name": "signals", "mountPath": "/signals" }));
    pod
}

/// The decisions that evict a pod.
fn against<'a>(decisions: &'a Value, uid: &'a Value) -> impl Iterator<Item = &'a Value> {
    let records = decisions["items"].as_array().into_iter().flatten();
    records.filter(move |record| {
        let evictions = record["decision"]["evictions"].as_array();
        let mut evictions = evictions.into_iter().flatten();
        evictions.any(|eviction| eviction["uid"] == *uid)
    })
}

/// Starts a pod, and waits until the agent has decided to evict it and has recorded the decision.
fn until_decided(cluster: &Cluster, signals: &Path, pod: &Value) {
    let (name, uid) = (&pod["metadata"]["name"], &pod["metadata"]["uid"]);
    std::fs::write(signals.join(name.as_str().unwrap()), "").unwrap();
    until("there is a decision against it", || {
        let decisions = written(cluster);
        let is_graceful = |record: &Value| record["outcomes"][0]["outcome"] == "graceful";
        match against(&decisions, uid).any(is_graceful) {
            true => Ok(()),
            false => Err(format!("{decisions:#}")),
        }
    });
}

/// The decisions on the node's disk.
fn written(cluster: &Cluster) -> Value {
    let folder = cluster.data_dir().join("kubelet/decisions");
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let texts = files.filter_map(|file| std::fs::read(file.path()).ok());
    let records = texts.filter_map(|text| serde_json::from_slice::<Value>(&text).ok());
    json!({ "items": records.collect::<Vec<Value>>() })
}

/// Kills the agent after it has decided to evict a pod and has begun.
fn kill_while_evicting(cluster: &mut Cluster, signals: &Path, pod: &Value) {
    until_decided(cluster, signals, pod);
    let name = pod["metadata"]["name"].as_str().unwrap();
    cluster.mentions(&format!("events --for pod/{name}"), "Stopping container");
    let now = cluster.get(&format!("pod {name}"));
    assert_eq!(now["status"]["phase"], "Running", "{now:#}");
    cluster.kill();
}

/// The time from the decision to evict a pod to its termination, rounded up to seconds.
fn time_given(cluster: &Cluster, pod: &Value) -> Duration {
    let time = |value: &Value| Timestamp::from_rfc3339(value.as_str().unwrap()).unwrap();
    let decisions = cluster.get(&format!("decisions {NODE}"));
    let decided = against(&decisions, &pod["metadata"]["uid"]).next();
    let pod = cluster.get(&format!(
        "pod {}",
        pod["metadata"]["name"].as_str().unwrap()
    ));
    let ended = &status(&pod, "main")["state"]["terminated"]["finishedAt"];
    let second = Duration::from_secs(1);
    let ended = time(ended).saturating_add(second);
    ended.saturating_since(time(&decided.unwrap()["at"]))
}

/// Asserts how a pod ended and that it did not restart; returns its message.
fn evicted(cluster: &Cluster, name: &str, exit_code: i32, is_for_others: bool) -> String {
    let (pod, message) = cluster.until_evicted(name);
    let main = status(&pod, "main");
    assert_eq!(main["restartCount"], 0, "{pod:#}");
    assert_eq!(main["state"]["terminated"]["exitCode"], exit_code);
    assert_eq!(is_disrupted(&pod), is_for_others, "{pod:#}");
    let decisions = cluster.get(&format!("decisions {NODE}"));
    let count = against(&decisions, &pod["metadata"]["uid"]).count();
    assert_eq!(count, 1, "it was decided again: {decisions:#}");
    // Both agents may have reported the eviction, as one event.
    let events = cluster.get("events default");
    let events = events["items"].as_array().into_iter().flatten();
    let of_pod = events.filter(|event| event["involvedObject"]["name"] == name);
    let said: Vec<&Value> = of_pod
        .filter(|event| event["reason"] == "Evicted")
        .collect();
    assert!(matches!(*said, [one] if one["count"] == 1), "{said:#?}");
    message
}

#[test]
#[ignore = "tier: root"]
fn pod_with_grace_left_is_evicted_after_restart() {
    let mut signals = PathBuf::new();
    let mut cluster = Cluster::start_with(Runtime::Embedded, |folder| {
        signals = folder.join("signals");
        let settings = json!({
            "evictionHard": { "memory.available": "100Mi" },
            "evictionSoft": { "pid.available": "100" },
            "evictionSoftGracePeriod": { "pid.available": "2s" },
            "evictionMaxPodGracePeriod": 60,
            "evictionPressureTransitionPeriod": "1s",
        });
        let mut arguments = configured(folder, &settings);
        // The processes start faster than they could be killed in time.
        let options = ["--capacity", CAPACITY, "--always-give-grace"];
        arguments.extend(options.map(str::to_owned));
        arguments
    });
    std::fs::create_dir(&signals).unwrap();
    let forks = "i=0; while [ $i -lt 120 ]; do sleep 600 & i=$((i+1)); done";
    let polite = on_demand(&signals, "polite", forks, "WAIT; exit 0");
    let deaf = on_demand(&signals, "deaf", forks, "");
    let mut large = on_demand(
        &signals,
        "large",
        "dd if=/dev/zero of=/scratch/f bs=1M count=3",
        "",
    );
    large["spec"]["volumes"][0]["emptyDir"] = json!({ "sizeLimit": "2Mi" });
    let [polite, deaf, large] = [polite, deaf, large].map(|pod| cluster.run(&pod));
    let short = "The node was low on resource: pids. Threshold quantity: 100, available: ";

    // It exits successfully while no agent runs.
    kill_while_evicting(&mut cluster, &signals, &polite);
    std::fs::write(signals.join("end"), "").unwrap();
    let uid = polite["metadata"]["uid"].as_str().unwrap();
    let of_pod = format!("{}/kubepods/besteffort/pod{uid}", cluster.cgroup_root());
    let of_container = format!("{of_pod}/{}", container_id(&polite, "main"));
    until("it ends", || match processes(&of_container).as_slice() {
        [] => Ok(()),
        left => Err(format!("{left:?}")),
    });
    cluster.start_again();
    let message = evicted(&cluster, "polite", 0, true);
    assert!(message.starts_with(short), "{message}");

    // The pod has the rest of its grace period, and no more.
    kill_while_evicting(&mut cluster, &signals, &deaf);
    let killed = Instant::now();
    until("half of its time is over", || match killed.elapsed() {
        away if away >= GRACE / 2 => Ok(()),
        away => Err(format!("{away:?}")),
    });
    cluster.start_again();
    let message = evicted(&cluster, "deaf", 137, true);
    assert!(message.starts_with(short), "{message}");
    let took = time_given(&cluster, &deaf);
    // In whole seconds: nothing is left of one that has begun.
    let least = GRACE - Duration::from_secs(1);
    assert!(took >= least && took < GRACE + GRACE / 3, "{took:?}");

    // A pod beyond its own limit gets one second, so that it may end before or after.
    until_decided(&cluster, &signals, &large);
    cluster.kill();
    cluster.start_again();
    let message = evicted(&cluster, "large", 137, false);
    let outgrown = "Usage of EmptyDir volume \"scratch\" exceeds the limit \"2Mi\". ";
    assert_eq!(message, outgrown);
}
