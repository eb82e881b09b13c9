//! Invariants. Each rule returns the violations that it finds.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_core::eviction::record::Record;
use plimsoll_core::eviction::record::decision::{DecisionRecord, EvictionRecord};
use serde_json::Value;

use crate::manifest::is_disrupted;
use crate::workload::Role;

/// What a pod that is gone may still be charged for: the kernel's own records of it.
const RESIDUE: i64 = 4 << 20;

/// The prefix of the message of a pod whose agent was killed at the moment of the eviction.
const UNRECORDED: &str = "The pod was evicted by an agent that was stopped";

/// The prefix of the message of a pod that was rejected.
const REFUSED: &str = "The node had condition: ";

fn name(pod: &Value) -> &str {
    pod["metadata"]["name"].as_str().unwrap_or_default()
}

fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    let all = pod["status"]["containerStatuses"].as_array();
    all.into_iter().flatten()
}

/// Whether a pod was turned away because the node was short already.
pub(crate) fn is_refused(pod: &Value) -> bool {
    let message = pod["status"]["message"].as_str().unwrap_or_default();
    pod["status"]["reason"] == "Evicted" && message.starts_with(REFUSED)
}

/// Whether a pod had to leave.
pub(crate) fn is_evicted(pod: &Value) -> bool {
    pod["status"]["reason"] == "Evicted" && !is_refused(pod)
}

/// Whether the kernel ended a container of it for want of memory.
pub(crate) fn is_oom_killed(pod: &Value) -> bool {
    containers(pod).any(|status| {
        let states = [&status["state"], &status["lastState"]];
        let mut states = states.into_iter();
        states.any(|state| state["terminated"]["reason"] == "OOMKilled")
    })
}

/// What a pod may not do from one look to the next.
pub(crate) fn of_changes(before: &Value, now: &Value) -> Vec<String> {
    let mut broken = Vec::new();
    let pod = name(now);
    let phase = |pod: &Value| {
        pod["status"]["phase"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    let (was, is) = (phase(before), phase(now));
    if matches!(was.as_str(), "Failed" | "Succeeded") && was != is {
        broken.push(format!("{pod} was {was} and is {is}"));
    }
    let reason = &before["status"]["reason"];
    if !reason.is_null() && *reason != now["status"]["reason"] {
        broken.push(format!(
            "{pod} was {reason} and is {}",
            now["status"]["reason"]
        ));
    }
    for status in containers(now) {
        let earlier = containers(before).find(|other| other["name"] == status["name"]);
        let Some(earlier) = earlier else { continue };
        let count = |status: &Value| status["restartCount"].as_i64().unwrap_or_default();
        if count(status) < count(earlier) {
            let counts = format!("{} to {}", count(earlier), count(status));
            broken.push(format!("{pod}: restartCount went back from {counts}"));
        }
        let (old, new) = (&earlier["containerID"], &status["containerID"]);
        if old.is_string() && old != new && count(status) == count(earlier) {
            broken.push(format!(
                "{pod}: container {old} became {new} without a restart"
            ));
        }
    }
    broken
}

/// What a pod may not be, at any time.
pub(crate) fn of_pod(pod: &Value) -> Vec<String> {
    let Some(role) = Role::of(pod) else {
        return vec![format!("{} has no role", name(pod))];
    };
    let mut broken = Vec::new();
    let mut must = |holds: bool, what: &str| {
        if !holds {
            broken.push(format!("{}: {what}: {:#}", name(pod), pod["status"]));
        }
    };
    let class = &pod["status"]["qosClass"];
    if is_refused(pod) {
        must(
            class == "BestEffort",
            "only BestEffort pods are turned away",
        );
        return broken;
    }
    let is_restarted = containers(pod).any(|status| status["restartCount"] != 0);
    if is_evicted(pod) {
        must(role == Role::Hog, "evicted without having taken too much");
        must(is_disrupted(pod), "evicted without DisruptionTarget");
        must(
            !is_oom_killed(pod),
            "the kernel was first, and it says Evicted",
        );
        must(!is_restarted, "evicted and started again");
    } else if pod["status"]["phase"] == "Failed" && pod["metadata"]["deletionTimestamp"].is_null() {
        let fails = matches!(role, Role::Failure | Role::Glutton | Role::Hog);
        must(fails, "ended without a reason");
    }
    if role.stays() {
        must(!is_restarted, "started again");
        must(
            !is_oom_killed(pod),
            "killed by the kernel within its limits",
        );
    }
    broken
}

/// What decisions may not be, oldest first.
pub(crate) fn of_decisions<'a>(records: impl Iterator<Item = &'a Record>) -> Vec<String> {
    let mut broken = Vec::new();
    let mut evicted: BTreeMap<String, String> = BTreeMap::new();
    for record in records {
        let decision = &record.decision;
        let whole = || serde_json::to_string(record).unwrap_or_default();
        if record.replay().as_ref() != Ok(decision) {
            broken.push(format!(
                "decided again, it comes out otherwise: {}",
                whole()
            ));
        }
        let [eviction] = decision.evictions.as_slice() else {
            if !decision.evictions.is_empty() {
                broken.push(format!("more than one in one pass: {}", whole()));
            }
            continue;
        };
        let found = of_eviction(record, eviction, &evicted).into_iter();
        broken.extend(found.map(|what| format!("{}: {what}: {}", eviction.pod, whole())));
        evicted.insert(eviction.uid.clone(), eviction.pod.clone());
    }
    broken
}

/// `evicted` are the pods evicted before, by uid.
fn of_eviction(
    record: &Record,
    eviction: &EvictionRecord,
    evicted: &BTreeMap<String, String>,
) -> Vec<String> {
    let mut broken = Vec::new();
    let decision = &record.decision;
    if !is_needed(decision) {
        broken.push("evicted with enough left".to_owned());
    }
    if evicted.contains_key(&eviction.uid) {
        broken.push("evicted twice".to_owned());
    }
    for pod in &record.pods {
        let held = pod
            .usage
            .as_ref()
            .map_or(0, |usage| usage.usage().working_set().0);
        if evicted.contains_key(&pod.pod_ref.uid) && held > RESIDUE {
            let name = &pod.pod_ref.name;
            broken.push(format!(
                "{name} had been evicted and still held {held} bytes"
            ));
        }
    }
    let gone: BTreeSet<&str> = evicted.values().map(String::as_str).collect();
    let may_go = |pod: &str, is_exempt: bool| !is_exempt && !gone.contains(pod);
    let mut ranking = decision.ranking.iter();
    let first = ranking.find(|place| may_go(&place.pod, place.is_exempt));
    if first.is_none_or(|first| first.pod != eviction.pod) {
        broken.push(format!("{:?} was first", first.map(|first| &first.pod)));
    }
    let is_within = first.is_some_and(|first| !first.exceeds_request);
    let mut others = decision.ranking.iter();
    if is_within && others.any(|other| may_go(&other.pod, other.is_exempt) && other.exceeds_request)
    {
        broken.push("within its request, while another pod was not".to_owned());
    }
    broken
}

/// Whether less was left than a due threshold demands.
fn is_needed(decision: &DecisionRecord) -> bool {
    let mut lines = decision.lines.iter();
    lines.any(|line| {
        let is_starved = decision.starved.as_ref() == Some(&line.signal);
        is_starved && line.is_due && line.available < line.line
    })
}

/// The pods evicted according to the API must be those of the records. A pod that was not killed at once
/// may have come to another end meanwhile: the kernel may have been first.
pub(crate) fn of_agreement<'a>(
    pods: impl Iterator<Item = &'a Value>,
    records: &[&Record],
) -> Vec<String> {
    let mut recorded: BTreeMap<&str, (&EvictionRecord, bool)> = BTreeMap::new();
    for record in records {
        for eviction in &record.decision.evictions {
            let is_killed = record.is_killed(&eviction.uid);
            recorded.insert(&eviction.uid, (eviction, is_killed));
        }
    }
    let mut broken = Vec::new();
    for pod in pods.filter(|pod| is_evicted(pod)) {
        let uid = pod["metadata"]["uid"].as_str().unwrap_or_default();
        let message = &pod["status"]["message"];
        match recorded.remove(uid) {
            None if message
                .as_str()
                .is_some_and(|message| message.starts_with(UNRECORDED)) => {}
            None => broken.push(format!("{} was evicted without a record", name(pod))),
            Some((eviction, _)) if *message != eviction.message.as_str() => {
                let expected = &eviction.message;
                broken.push(format!(
                    "{} has the message {message}, expected {expected:?}",
                    name(pod)
                ));
            }
            Some(_) => {}
        }
    }
    let silent = recorded.into_values().filter(|(_, is_killed)| *is_killed);
    broken
        .extend(silent.map(|(eviction, _)| format!("{} is not reported as Evicted", eviction.pod)));
    broken
}
