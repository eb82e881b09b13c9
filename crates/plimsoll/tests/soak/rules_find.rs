//! The rules detect violations.

use plimsoll_core::config::{NodeConfig, Profile};
use plimsoll_core::eviction::record::{OutcomeRecord, Record, Recorder};
use plimsoll_core::eviction::usage::{MemoryUsage, PodUsage};
use plimsoll_core::eviction::{
    ActivePod, Candidate, Engine, Input, MemoryObservation, Observation, Settings,
};
use plimsoll_core::object::pod::PodView;
use plimsoll_core::object::timestamp::Timestamp;
use plimsoll_core::resources::Bytes;
use plimsoll_core::threshold::DiskLayout;
use serde_json::{Value, json};

use crate::rules;
use crate::workload::Role;

const MIB: i64 = 1 << 20;

fn pod(role: Role, status: &Value) -> Value {
    let labels = json!({ "role": role.to_string() });
    json!({ "metadata": { "name": "p", "uid": "u1", "labels": labels }, "status": status })
}

fn with_container(id: &str, restarts: u32) -> Value {
    let main = json!({ "name": "main", "containerID": id, "restartCount": restarts });
    pod(
        Role::Calm,
        &json!({ "phase": "Running", "containerStatuses": [main] }),
    )
}

/// Whether something is found that mentions that; nothing else may be.
fn finds(found: &[String], what: Option<&str>) {
    match what {
        Some(what) => assert!(
            matches!(found, [only] if only.contains(what)),
            "{what}: {found:#?}"
        ),
        None => assert_eq!(found, [""; 0]),
    }
}

#[test]
fn a_container_that_is_started_twice_is_found() {
    let before = with_container("plimsoll://a", 0);
    let changed =
        |id: &str, restarts: u32| rules::of_changes(&before, &with_container(id, restarts));
    finds(&changed("plimsoll://a", 0), None);
    finds(&changed("plimsoll://b", 1), None);
    finds(&changed("plimsoll://b", 0), Some("without a restart"));
    let later = with_container("plimsoll://b", 1);
    finds(&rules::of_changes(&later, &before), Some("went back"));
}

#[test]
fn reverted_termination_is_detected() {
    let ended = pod(
        Role::Hog,
        &json!({ "phase": "Failed", "reason": "Evicted" }),
    );
    let runs = pod(
        Role::Hog,
        &json!({ "phase": "Running", "reason": "Evicted" }),
    );
    finds(
        &rules::of_changes(&ended, &runs),
        Some("was Failed and is Running"),
    );
    let other = pod(Role::Hog, &json!({ "phase": "Failed" }));
    finds(
        &rules::of_changes(&ended, &other),
        Some("was \"Evicted\" and is null"),
    );
}

#[test]
fn wrong_termination_reason_is_detected() {
    let disrupted = json!([{
        "type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet",
    }]);
    let evicted = json!({
        "phase": "Failed", "reason": "Evicted", "message": "low", "conditions": disrupted,
    });
    finds(&rules::of_pod(&pod(Role::Hog, &evicted)), None);
    let found = rules::of_pod(&pod(Role::Failure, &evicted));
    finds(&found, Some("without having taken too much"));
    let mut silent = evicted.clone();
    silent["conditions"] = json!([]);
    finds(
        &rules::of_pod(&pod(Role::Hog, &silent)),
        Some("without DisruptionTarget"),
    );
    let mut late = evicted.clone();
    let killed = json!({ "terminated": { "reason": "OOMKilled", "exitCode": 137 } });
    late["containerStatuses"] = json!([{ "name": "main", "restartCount": 0, "state": killed }]);
    finds(
        &rules::of_pod(&pod(Role::Hog, &late)),
        Some("the kernel was first"),
    );
    let mut refused = evicted.clone();
    refused["message"] = json!("The node had condition: [MemoryPressure]. ");
    refused["qosClass"] = json!("Burstable");
    finds(
        &rules::of_pod(&pod(Role::Calm, &refused)),
        Some("only BestEffort"),
    );
    refused["qosClass"] = json!("BestEffort");
    finds(&rules::of_pod(&pod(Role::Calm, &refused)), None);
    let failed = json!({ "phase": "Failed" });
    finds(
        &rules::of_pod(&pod(Role::Calm, &failed)),
        Some("without a reason"),
    );
    finds(&rules::of_pod(&pod(Role::Failure, &failed)), None);
}

/// The passes of a node with a line at 200 MiB and these pods: name, request and use in MiB.
fn decided(pods: &[(&str, i64, i64)], left: i64) -> Record {
    let mut config = NodeConfig::defaults(Profile::Kubernetes136);
    let line = ("memory.available".to_owned(), "200Mi".to_owned());
    config.eviction_hard.value = [line].into_iter().collect();
    let settings = Settings::new(&config, DiskLayout::Single).unwrap();
    let (mut engine, mut recorder) = (Engine::new(settings), Recorder::new(1));
    let pods: Vec<(Candidate, PodUsage)> = pods.iter().map(|pod| candidate(*pod)).collect();
    let active = pods.iter().map(|(candidate, usage)| ActivePod {
        candidate,
        usage: Some(usage),
    });
    let active: Vec<ActivePod<'_>> = active.collect();
    let now = Timestamp::from_secs(1);
    let memory = MemoryObservation {
        available: Bytes(left * MIB),
        working_set: Bytes((700 - left) * MIB),
        time: Some(now),
        ..MemoryObservation::default()
    };
    let observation = Observation {
        memory: Some(memory),
        ..Observation::default()
    };
    let input = Input::Observed {
        observation: &observation,
        pods: &active,
    };
    recorder.step(&mut engine, now, input);
    recorder.records().next().unwrap().clone()
}

fn candidate((name, request, used): (&str, i64, i64)) -> (Candidate, PodUsage) {
    let requests = json!({ "requests": { "memory": format!("{request}Mi") } });
    let pod = json!({
        "metadata": { "name": name, "namespace": "default", "uid": name },
        "spec": { "containers": [{ "name": "main", "resources": requests }] },
    });
    let pod = serde_json::from_value(pod).unwrap();
    let view = PodView::from_api(&pod).unwrap();
    let usage = PodUsage {
        memory: Some(MemoryUsage {
            working_set: Some(Bytes(used * MIB)),
        }),
        ..PodUsage::default()
    };
    (Candidate::new(&view, Profile::Kubernetes136), usage)
}

#[test]
fn correct_decision_passes() {
    let record = decided(&[("keeper", 40, 20), ("hog", 24, 500)], 150);
    assert_eq!(record.decision.evictions[0].pod, "default/hog");
    finds(&rules::of_decisions([&record].into_iter()), None);
}

#[test]
fn wrong_decision_is_detected() {
    let right = decided(&[("keeper", 40, 20), ("hog", 24, 500)], 150);
    let changed = |change: &dyn Fn(&mut Record)| {
        let mut wrong = right.clone();
        change(&mut wrong);
        rules::of_decisions([&wrong].into_iter())
    };
    let mentions = |found: &[String], what: &str| {
        let is_found = found.iter().any(|one| one.contains(what));
        assert!(is_found, "{what}: {found:#?}");
    };
    let other = changed(&|record| record.decision.evictions[0].pod = "default/keeper".to_owned());
    mentions(&other, "comes out otherwise");
    mentions(&other, "\"default/hog\") was first");
    let enough = changed(&|record| record.decision.lines[0].available = 201 * MIB);
    mentions(&enough, "evicted with enough left");
    let within = changed(&|record| {
        record.decision.evictions[0].pod = "default/keeper".to_owned();
        record.decision.ranking.reverse();
    });
    mentions(&within, "within its request, while another pod was not");
    let two = changed(&|record| {
        let one = record.decision.evictions[0].clone();
        record.decision.evictions.push(one);
    });
    mentions(&two, "more than one in one pass");
}

#[test]
fn eviction_before_the_last_victim_ended_is_detected() {
    let pods = [("first", 24, 400), ("second", 24, 100)];
    let first = decided(&pods, 150);
    assert_eq!(first.decision.evictions[0].pod, "default/first");
    finds(
        &rules::of_decisions([&first, &decided(&[("second", 24, 400)], 150)].into_iter()),
        None,
    );
    // The engine that decided this knew nothing of the first decision.
    let again = rules::of_decisions([&first, &first].into_iter());
    for what in ["evicted twice", "had been evicted and still held"] {
        assert!(again.iter().any(|one| one.contains(what)), "{again:#?}");
    }
}

#[test]
fn api_and_records_agree() {
    let record = decided(&[("hog", 24, 500)], 150);
    let mut evicted = pod(
        Role::Hog,
        &json!({
            "reason": "Evicted", "message": record.decision.evictions[0].message,
        }),
    );
    evicted["metadata"]["uid"] = json!("hog");
    let agree = |pods: &[Value], records: &[&Record]| rules::of_agreement(pods.iter(), records);
    finds(&agree(&[evicted.clone()], &[&record]), None);
    finds(&agree(&[evicted.clone()], &[]), Some("without a record"));
    finds(&agree(&[], &[&record]), None);
    let mut killed = record.clone();
    killed.outcomes = Some(vec![OutcomeRecord {
        uid: "hog".to_owned(),
        outcome: "killed".to_owned(),
    }]);
    finds(&agree(&[], &[&killed]), Some("is not reported as Evicted"));
    evicted["status"]["message"] = json!("something else");
    finds(&agree(&[evicted], &[&record]), Some("has the message"));
}
