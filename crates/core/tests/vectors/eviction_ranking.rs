//! `node/eviction-ranking.json`.

use plimsoll_core::config::{EvictionRank, Profile};
use plimsoll_core::eviction::rank::{Ranked, compare, rank};
use plimsoll_core::eviction::summary::Summary;
use plimsoll_core::eviction::{ActivePod, Candidate};
use plimsoll_core::object::pod::PodView;
use plimsoll_core::threshold::{DiskLayout, Signal};
use plimsoll_testkit::vectors::{Outcome, compare as compare_values};
use serde_json::{Value, json};

/// Up to this many pods upstream's sort keeps the order of equal ones.
const STABLE: usize = 12;

pub(crate) fn check(case: &Value) -> Outcome {
    let candidates: Vec<Candidate> = case["pods"]
        .as_array()
        .unwrap()
        .iter()
        .map(candidate)
        .collect();
    let summary: Summary = serde_json::from_value(json!({"pods": case["podStats"]})).unwrap();
    let usages = summary.usages();
    let pods = candidates.iter().map(|candidate| ActivePod {
        candidate,
        usage: usages.get(&candidate.uid),
    });
    let signal = Signal::from_name(case["signal"].as_str().unwrap()).unwrap();
    let order = Profile::Kubernetes136.eviction_rank();
    let ranking = rank(signal, layout(case), order, pods);
    let groups = groups(&ranking, signal, order);
    let mut got = json!({"order": groups.concat(), "groups": groups});
    let mut want = case["expect"].clone();
    if candidates.len() > STABLE {
        for answer in [&mut got, &mut want] {
            forget_order_in_groups(answer);
        }
    }
    compare_values(&got, &want)
}

pub(crate) fn candidate(pod: &Value) -> Candidate {
    let pod = serde_json::from_value(pod.clone()).unwrap();
    Candidate::new(&PodView::from_api(&pod).unwrap(), Profile::Kubernetes136)
}

pub(crate) fn layout(settings: &Value) -> DiskLayout {
    let is = |key: &str| settings[key].as_bool().unwrap_or_default();
    DiskLayout::from_dedicated(is("dedicatedImageFs"), is("dedicatedContainerFs"))
}

fn groups(ranking: &[Ranked<'_>], signal: Signal, order: EvictionRank) -> Vec<Vec<String>> {
    let is_pids = signal == Signal::PidAvailable;
    let equal = ranking.chunk_by(|a, b| compare(a, b, order, is_pids).is_eq());
    let name = |ranked: &Ranked<'_>| ranked.pod.candidate.pod_ref.name.clone();
    equal
        .map(|group| group.iter().map(name).collect())
        .collect()
}

fn forget_order_in_groups(answer: &mut Value) {
    for group in answer["groups"].as_array_mut().unwrap() {
        let names = group.as_array_mut().unwrap();
        names.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
    }
    answer["order"] = Value::Null;
}
