//! Explanations from objects, as the command prints them.

mod causes;

use k8s_openapi::api::core::v1::{Event, Pod};
use plimsoll_core::eviction::record::shortfall::{Consumer, ShortfallRecord};
use plimsoll_core::eviction::record::{OutcomeRecord, Record, Recorder};
use plimsoll_core::eviction::summary::Summary;
use plimsoll_core::eviction::{ActivePod, Candidate, Engine, Input, Settings};
use plimsoll_core::object::pod::PodView;
use plimsoll_core::object::timestamp::Timestamp;
use plimsoll_core::scheduling::configuration::Configuration;
use plimsoll_core::threshold::DiskLayout;
use serde_json::{Value, json};

use super::node::{FoundNode, explain_node};
use super::pod::{Found, explain_pod};
use super::render::{self, Detail};
use super::report::PodReport;
use super::snapshot::Snapshot;
use crate::reading::{Reading, configuration};
use crate::text::{Colour, Terminal};

const MI: u64 = 1 << 20;

fn screen(width: usize) -> Terminal {
    Terminal {
        width,
        height: 24,
        is_unicode: true,
        is_interactive: false,
        colour: Colour::Off,
    }
}

fn now() -> Timestamp {
    Timestamp::from_rfc3339("2026-01-01T00:10:00Z").unwrap()
}

fn explained(found: &Found) -> PodReport {
    explain_pod(found, &Configuration::default())
}

fn shown(found: &Found, width: usize) -> String {
    render::pod(&explained(found), Detail::Verbose, now(), screen(width))
}

fn typed<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn node(name: &str, cpu: &str, further: &Value) -> Value {
    let mut node = json!({
        "metadata": { "name": name, "labels": { "kubernetes.io/hostname": name } },
        "spec": {},
        "status": {
            "allocatable": { "cpu": cpu, "memory": "8Gi", "pods": "110" },
            "conditions": [{ "type": "Ready", "status": "True" }],
        },
    });
    node["spec"] = further.clone();
    node
}

fn pod(name: &str, node: Option<&str>, requests: &Value) -> Value {
    let phase = if node.is_some() { "Running" } else { "Pending" };
    json!({
        "metadata": { "name": name, "namespace": "default", "uid": format!("uid-{name}") },
        "spec": {
            "nodeName": node, "schedulerName": "default-scheduler",
            "containers": [{ "name": "main", "resources": { "requests": requests } }],
        },
        "status": { "phase": phase },
    })
}

fn event(pod: &str, reason: &str, message: &str) -> Event {
    typed(json!({
        "metadata": { "name": "e", "namespace": "default" },
        "involvedObject": { "kind": "Pod", "name": pod, "uid": format!("uid-{pod}") },
        "reason": reason, "message": message, "eventTime": "2026-01-01T00:08:00.000000Z",
        "reportingComponent": "default-scheduler",
    }))
}

fn found(name: &str, pod: Option<Value>) -> Found {
    Found {
        namespace: "default".to_owned(),
        name: name.to_owned(),
        pod: pod.map(typed::<Pod>),
        ..Found::default()
    }
}

/// Three nodes, each of which rejects large pods for another reason.
fn snapshot() -> Snapshot {
    let tainted = json!({
        "taints": [{ "key": "dedicated", "value": "gpu", "effect": "NoSchedule" }],
    });
    let cordoned = json!({
        "unschedulable": true,
        "taints": [{ "key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule" }],
    });
    Snapshot {
        nodes: vec![
            typed(node("n1", "4", &json!({}))),
            typed(node("n2", "8", &tainted)),
            typed(node("n3", "4", &cordoned)),
        ],
        pods: vec![typed(pod("web", Some("n1"), &json!({ "cpu": "1500m" })))],
        ..Snapshot::default()
    }
}

#[test]
fn pending_pod_lists_every_node_and_the_nearest_fix() {
    let mut found = found("big", Some(pod("big", None, &json!({ "cpu": "3" }))));
    found.snapshot = Some(snapshot());
    found.events = vec![event(
        "big",
        "FailedScheduling",
        "0/3 nodes are available: …",
    )];
    let report = explained(&found);
    let pending = report.pending.as_ref().unwrap();
    assert_eq!(pending.nodes.len(), 3);
    assert!(
        pending.message.starts_with("0/3 nodes are available: "),
        "{}",
        pending.message
    );
    let plugins = |index: usize| -> Vec<&str> {
        let rejections = pending.nodes[index].rejections.iter();
        rejections.filter_map(|row| row.plugin).collect()
    };
    assert_eq!(plugins(0), ["NodeResourcesFit"]);
    assert_eq!(plugins(1), ["TaintToleration"]);
    assert_eq!(plugins(2), ["NodeUnschedulable"]);
    assert_eq!(pending.fixes.len(), 3);
    insta::assert_snapshot!(shown(&found, 80));
}

#[test]
fn pod_with_missing_labels_and_resources_lists_both() {
    let mut big = pod("big", None, &json!({ "cpu": "30", "memory": "1Gi" }));
    big["spec"]["nodeSelector"] = json!({ "disk": "ssd" });
    let mut found = found("big", Some(big));
    found.snapshot = Some(snapshot());
    insta::assert_snapshot!(shown(&found, 140));
}

#[test]
fn nodes_with_equal_reasons_are_grouped() {
    let mut found = found("big", Some(pod("big", None, &json!({ "cpu": "30" }))));
    let names: Vec<String> = (0..40).map(|number| format!("n{number:02}")).collect();
    let nodes = names.iter().map(|name| typed(node(name, "4", &json!({}))));
    found.snapshot = Some(Snapshot {
        nodes: nodes.collect(),
        ..Snapshot::default()
    });
    let text = shown(&found, 80);
    assert!(
        text.contains("  n00, n01, n02, n03 and 36 more\n"),
        "{text}"
    );
}

#[test]
fn gates_are_named() {
    let mut gated = pod("gated", None, &json!({}));
    gated["spec"]["schedulingGates"] = json!([{ "name": "example.org/quota" }]);
    let mut found = found("gated", Some(gated));
    found.snapshot = Some(snapshot());
    let report = explained(&found);
    let headline = "is pending: it waits for example.org/quota to be removed";
    assert_eq!(report.headline, headline);
}

#[test]
fn a_placed_pod_has_the_schedulers_note_and_scores_worked_out_again() {
    let mut found = found(
        "web",
        Some(pod("web", Some("n1"), &json!({ "cpu": "1500m" }))),
    );
    let mut snapshot = snapshot();
    snapshot.nodes.push(typed(node("n4", "2", &json!({}))));
    found.snapshot = Some(snapshot);
    let mut scheduled = event(
        "web",
        "Scheduled",
        "Successfully assigned default/web to n1",
    );
    let note = json!({ "feasibleNodes": 2, "score": 341 }).to_string();
    let annotations = [("plimsoll.dev/placement".to_owned(), note)];
    scheduled.metadata.annotations = Some(annotations.into_iter().collect());
    found.events = vec![scheduled];
    let report = explained(&found);
    let placed = report.placed.unwrap();
    assert_eq!((placed.feasible_nodes, placed.score), (Some(2), Some(341)));
    let again = placed.now.unwrap();
    assert_eq!(
        (again.nodes, again.feasible_nodes, again.place),
        (4, 2, Some(1))
    );
    insta::assert_snapshot!(shown(&found, 80));
}

/// A node of 1 Gi with 60 Mi available and a threshold at 100 Mi, and the record of its decision.
fn eviction() -> Record {
    let config = json!({
        "kind": "KubeletConfiguration", "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "evictionHard": { "memory.available": "100Mi" },
    });
    let config = configuration(&config);
    let mut engine = Engine::new(Settings::new(&config, DiskLayout::Single).unwrap());
    let mut recorder = Recorder::new(4);
    let pods = [
        ("hog", json!({ "memory": "100Mi" }), 0, 600 * MI),
        ("web", json!({ "memory": "200Mi" }), 1000, 250 * MI),
        ("calm", json!({ "memory": "50Mi" }), 0, 40 * MI),
    ];
    let stats: Vec<Value> = pods
        .iter()
        .map(|(name, _, _, used)| {
            json!({
                "podRef": { "name": name, "namespace": "default", "uid": format!("uid-{name}") },
                "containers": [],
                "memory": { "time": "2026-01-01T00:08:00Z", "workingSetBytes": used },
            })
        })
        .collect();
    let summary: Summary = typed(json!({
        "node": { "memory": {
            "time": "2026-01-01T00:08:00Z", "workingSetBytes": 964 * MI,
            "availableBytes": 60 * MI,
        } },
        "pods": stats,
    }));
    let candidates: Vec<Candidate> = pods
        .iter()
        .map(|(name, requests, priority, _)| {
            let mut pod = pod(name, Some("n1"), requests);
            pod["spec"]["priority"] = json!(priority);
            let view = PodView::from_api(&typed(pod)).unwrap();
            Candidate::new(&view, config.profile)
        })
        .collect();
    let usages = summary.usages();
    let active: Vec<ActivePod<'_>> = candidates
        .iter()
        .map(|candidate| ActivePod {
            candidate,
            usage: usages.get(&candidate.uid),
        })
        .collect();
    let at = Timestamp::from_rfc3339("2026-01-01T00:08:00Z").unwrap();
    let observation = summary.observation();
    let input = Input::Observed {
        observation: &observation,
        pods: &active,
    };
    recorder.step(&mut engine, at, input);
    let mut record = recorder.records().next().unwrap().clone();
    record.outcomes = Some(vec![OutcomeRecord {
        uid: "uid-hog".to_owned(),
        outcome: "killed".to_owned(),
    }]);
    record
}

#[test]
fn evicted_pod_shows_the_whole_decision() {
    let mut hog = pod("hog", Some("n1"), &json!({ "memory": "100Mi" }));
    hog["status"] = json!({
        "phase": "Failed", "reason": "Evicted",
        "message": "The node was low on resource: memory. ",
    });
    let mut found = found("hog", Some(hog));
    found.records = vec![("n1".to_owned(), eviction())];
    found.events = vec![event(
        "hog",
        "Evicted",
        "The node was low on resource: memory. ",
    )];
    insta::assert_snapshot!("evicted_80", shown(&found, 80));
    insta::assert_snapshot!("evicted_140", shown(&found, 140));
    let report = explained(&found);
    assert_eq!(report.headline, "was evicted from node n1");
    assert!(report.ended.is_none());
    assert!(report.evicted.unwrap().ranking[0].is_evicted);
}

/// The same node, where the agent holds what is short and evicting all pods cannot help.
fn eviction_in_vain() -> Record {
    let mut record = eviction();
    let until = Timestamp::from_rfc3339("2026-01-01T00:13:00Z");
    record.decision.shortfall = Some(ShortfallRecord {
        signal: "memory.available".to_owned(),
        threshold: 100 << 20,
        available: 60 << 20,
        pods: 3,
        evictable: 6 << 20,
        exempt: 0,
        back_off_nanos: 300_000_000_000,
        until,
        is_new: true,
    });
    record.consumers = Some(vec![
        Consumer {
            name: "kubelet".to_owned(),
            working_set: 372 << 20,
            kernel: Some(249 << 20),
        },
        Consumer {
            name: "/system.slice".to_owned(),
            working_set: 40 << 20,
            kernel: None,
        },
    ]);
    record
}

const HELD_BY_THE_AGENT: &str = "Evicting pods cannot bring memory.available (60 Mi) back above \
    its threshold (100 Mi): all 3 pods that may be evicted hold 6 Mi together. Memory is held by \
    kubelet (372 Mi, 249 Mi of it kernel memory), /system.slice (40 Mi). No other pod is evicted \
    for it before 2026-01-01T00:13:00Z.";

#[test]
fn eviction_without_effect_names_the_memory_consumer() {
    let mut found = found("hog", None);
    found.records = vec![("n1".to_owned(), eviction_in_vain())];
    let evicted = explained(&found).evicted.unwrap();
    assert_eq!(evicted.why.last().unwrap(), HELD_BY_THE_AGENT);
    let shown = shown(&found, 2000);
    assert!(shown.contains(HELD_BY_THE_AGENT), "{shown}");
}

#[test]
fn node_names_the_consumers_of_non_pod_memory() {
    let reading = Reading {
        node: typed(node("n1", "4", &json!({}))),
        pods: Vec::new(),
        config: Err("not read".to_owned()),
        samples: Vec::new(),
        no_sample: None,
        lines: None,
    };
    let report = explain_node(&FoundNode {
        reading,
        rankings: Vec::new(),
        records: Ok(vec![eviction_in_vain()]),
    });
    assert_eq!(report.decisions[0].consumers[0].name, "kubelet");
    let shown = render::node(&report, now(), screen(2000));
    assert!(shown.contains(HELD_BY_THE_AGENT), "{shown}");
}

#[test]
fn deleted_pod_is_explained_by_its_record_alone() {
    let mut found = found("hog", None);
    found.records = vec![("n1".to_owned(), eviction())];
    let report = explained(&found);
    assert_eq!(report.headline, "was evicted from node n1");
    assert_eq!(report.phase, None);
    assert_eq!(report.uid.as_deref(), Some("uid-hog"));
    assert!(report.evicted.unwrap().is_recorded);
}

#[test]
fn message_is_shown_without_a_record() {
    let mut hog = pod("hog", Some("n1"), &json!({}));
    hog["status"] = json!({ "phase": "Failed", "reason": "Evicted", "message": "It was low. " });
    let mut found = found("hog", Some(hog));
    found.unknown = vec!["what node n1 recorded of the decision: not found".to_owned()];
    insta::assert_snapshot!(shown(&found, 80));
}

#[test]
fn preempted_pod_names_its_preemptor() {
    let mut low = pod("low", Some("n1"), &json!({}));
    low["status"]["conditions"] = json!([{
        "type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler",
        "message": "default-scheduler: preempting to accommodate a higher priority pod",
    }]);
    let mut preempted = event("low", "Preempted", "Preempted by pod uid-high on node n1");
    let by = json!({ "namespace": "default", "name": "high" });
    preempted.related = Some(typed(by));
    let mut here = found("low", Some(low));
    here.events = vec![preempted.clone()];
    insta::assert_snapshot!(shown(&here, 80));
    let mut gone = found("low", None);
    gone.events = vec![preempted];
    let report = explained(&gone);
    assert_eq!(report.headline, "was preempted by a pod of higher priority");
}

#[test]
fn rejected_pod_shows_the_nodes_reason() {
    let mut late = pod("late", Some("n1"), &json!({}));
    late["status"] = json!({
        "phase": "Failed", "reason": "OutOfcpu",
        "message": "Pod was rejected: Node didn't have enough resource: cpu, requested: 3000, \
                    used: 2000, capacity: 4000",
    });
    insta::assert_snapshot!(shown(&found("late", Some(late)), 80));
}

#[test]
fn oom_killed_container_shows_its_limit() {
    let mut leaky = pod("leaky", Some("n1"), &json!({}));
    leaky["spec"]["containers"][0]["resources"] = json!({ "limits": { "memory": "64Mi" } });
    let ended = json!({ "terminated": {
        "reason": "OOMKilled", "exitCode": 137, "finishedAt": "2026-01-01T00:09:00Z",
    } });
    leaky["status"]["containerStatuses"] = json!([{
        "name": "main", "image": "", "imageID": "", "ready": true, "restartCount": 3,
        "state": { "running": {} }, "lastState": ended,
    }]);
    let mut found = found("leaky", Some(leaky));
    found.usage = Some(typed(json!({
        "podRef": { "name": "leaky", "namespace": "default", "uid": "uid-leaky" },
        "containers": [{ "name": "main", "memory": { "time": null, "workingSetBytes": 48 * MI } }],
    })));
    insta::assert_snapshot!(shown(&found, 80));
}

#[test]
fn pod_on_its_node_shows_its_waiting_reason() {
    let mut web = pod("web", Some("n1"), &json!({}));
    web["status"] = json!({ "phase": "Pending", "containerStatuses": [{
        "name": "main", "image": "", "imageID": "", "ready": false, "restartCount": 0,
        "state": { "waiting": { "reason": "ContainerCreating" } },
    }] });
    let headline = "is Pending on node n1: container main waits, ContainerCreating";
    assert_eq!(explained(&found("web", Some(web))).headline, headline);
}

#[test]
fn node_shows_thresholds_ranking_and_decisions() {
    let mut n1 = node(
        "n1",
        "4",
        &json!({
            "taints": [{ "key": "node.kubernetes.io/memory-pressure", "effect": "NoSchedule" }],
        }),
    );
    n1["status"]["capacity"] = json!({ "cpu": "4", "memory": "1Gi", "pods": "110" });
    n1["status"]["allocatable"] = json!({ "cpu": "4", "memory": "924Mi", "pods": "110" });
    n1["status"]["conditions"] = json!([
        {
            "type": "MemoryPressure", "status": "True", "reason": "KubeletHasInsufficientMemory",
            "lastTransitionTime": "2026-01-01T00:08:00Z",
        },
        {
            "type": "Ready", "status": "True", "reason": "KubeletReady",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        },
    ]);
    let record = eviction();
    let config = json!({
        "kind": "KubeletConfiguration", "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "evictionHard": { "memory.available": "100Mi" },
    });
    let pods =
        ["web", "calm"].map(|name| typed(pod(name, Some("n1"), &json!({ "memory": "100Mi" }))));
    let sample: Summary = typed(json!({
        "node": {
            "cpu": { "time": "2026-01-01T00:09:50Z", "usageNanoCores": 250_000_000 },
            "memory": {
                "time": "2026-01-01T00:09:50Z", "workingSetBytes": 400 * MI,
                "availableBytes": 624 * MI,
            },
        },
        "pods": [
            {
                "podRef": { "name": "web", "namespace": "default", "uid": "uid-web" },
                "containers": [], "memory": { "time": null, "workingSetBytes": 250 * MI },
            },
            {
                "podRef": { "name": "calm", "namespace": "default", "uid": "uid-calm" },
                "containers": [], "memory": { "time": null, "workingSetBytes": 40 * MI },
            },
        ],
    }));
    let reading = Reading {
        node: typed(n1),
        pods: pods.to_vec(),
        config: Ok(configuration(&config)),
        samples: vec![sample],
        no_sample: None,
        lines: None,
    };
    let mut found = FoundNode {
        reading,
        rankings: Vec::new(),
        records: Ok(vec![record]),
    };
    let report = explain_node(&found);
    assert_eq!(report.decisions[0].evicted, ["default/hog"]);
    assert_eq!(report.next[0].ranking[0].pod, "default/web");
    assert!(!report.next[0].is_agents);
    insta::assert_snapshot!(render::node(&report, now(), screen(100)));

    // The agent's ranking takes precedence over its statistics.
    let place = |pod: &str| {
        json!({
            "pod": pod, "usage": "1Mi", "exceedsRequest": false, "excess": "0", "priority": 0,
            "qosClass": "Burstable", "isExempt": false, "request": "100Mi",
        })
    };
    found.rankings = vec![typed(json!({
        "signal": "memory.available", "items": [place("default/calm"), place("default/web")],
    }))];
    let report = explain_node(&found);
    assert!(report.next[0].is_agents);
    assert_eq!(report.next[0].ranking[0].pod, "default/calm");
}
