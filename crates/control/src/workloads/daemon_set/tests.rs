//! Daemon sets on small clusters.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet};
use k8s_openapi::api::core::v1::{Node, Pod};
use plimsoll_core::object::timestamp::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::workloads::pod_state;
use crate::workloads::revision::REVISION_HASH;

fn set(strategy: Value) -> DaemonSet {
    serde_json::from_value(json!({
        "metadata": {"name": "d", "namespace": "n", "uid": "u", "generation": 2},
        "spec": {
            "selector": {}, "updateStrategy": strategy, "minReadySeconds": 0,
            "template": {"metadata": {"labels": {"app": "d"}}, "spec": {"containers": []}},
        },
    }))
    .unwrap()
}

fn rolling(surge: Value, unavailable: Value) -> Value {
    json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}})
}

fn node(name: &str) -> Node {
    serde_json::from_value(json!({"metadata": {"name": name}})).unwrap()
}

fn pod(name: &str, node: &str, hash: &str, phase: &str, is_ready: bool) -> Pod {
    let ready = if is_ready { "True" } else { "False" };
    serde_json::from_value(json!({
        "metadata": {"name": name, "namespace": "n", "labels": {REVISION_HASH: hash}},
        "spec": {"containers": [], "nodeName": node},
        "status": {"phase": phase, "conditions": [{"type": "Ready", "status": ready}]},
    }))
    .unwrap()
}

fn managed(set: &DaemonSet, nodes: &[Node], pods: &[Pod], failed: &mut FailedPods) -> Managed {
    let (nodes, pods): (Vec<&Node>, Vec<&Pod>) = (nodes.iter().collect(), pods.iter().collect());
    let placed = placement(&pods, TerminatedPods::Left);
    manage(
        set,
        &nodes,
        &placed,
        "new",
        failed,
        Timestamp::from_secs(100),
    )
}

fn rolled(set: &DaemonSet, nodes: &[Node], pods: &[Pod]) -> Work {
    let (nodes, pods): (Vec<&Node>, Vec<&Pod>) = (nodes.iter().collect(), pods.iter().collect());
    let placed = placement(&pods, TerminatedPods::Left);
    roll(set, &nodes, &placed, "new", Timestamp::from_secs(100))
}

#[test]
fn every_fitting_node_gets_one_pod_and_others_none() {
    let set = set(rolling(json!(0), json!(1)));
    let mut tainted = node("c");
    tainted.spec =
        serde_json::from_value(json!({"taints": [{"key": "k", "effect": "NoExecute"}]})).unwrap();
    let nodes = [node("a"), node("b"), tainted];
    let pods = [
        pod("p1", "b", "new", "Running", true),
        pod("p2", "b", "new", "Running", true),
        pod("p3", "c", "new", "Running", true),
    ];
    let managed = managed(&set, &nodes, &pods, &mut FailedPods::default());
    assert_eq!(
        managed.work,
        Work {
            create: vec!["a".into()],
            delete: vec!["p2".into(), "p3".into()]
        }
    );
}

#[test]
fn pods_that_ended_are_replaced_failed_ones_with_back_off() {
    let set = set(rolling(json!(0), json!(1)));
    let nodes = [node("a"), node("b")];
    let pods = [
        pod("p1", "a", "new", "Failed", false),
        pod("p2", "b", "new", "Succeeded", false),
    ];
    let mut failed = FailedPods::default();
    let first = managed(&set, &nodes, &pods, &mut failed);
    assert_eq!(first.work.delete, ["p1", "p2"]);
    let messages: Vec<&str> = first
        .notes
        .iter()
        .map(|note| note.message.as_str())
        .collect();
    assert_eq!(
        messages,
        [
            "Found failed daemon pod n/p1 on node a, will try to kill it",
            "Found succeeded daemon pod n/p2 on node b, will try to delete it",
        ]
    );
    let second = managed(&set, &nodes, &pods, &mut failed);
    assert_eq!(second.work.delete, ["p2"]);
    assert!(second.again_after.is_some());
}

#[test]
fn unbound_pods_of_vanished_nodes_are_deleted() {
    let set = set(rolling(json!(0), json!(1)));
    let mut waiting = pod("p", "", "new", "Pending", false);
    plimsoll_core::admission::daemon_set::assign_to_node(
        waiting.spec.as_mut().unwrap(),
        &"gone".into(),
    );
    let bound = pod("q", "gone", "new", "Running", true);
    let managed = managed(&set, &[], &[waiting, bound], &mut FailedPods::default());
    assert_eq!(managed.work.delete, ["p"]);
}

#[test]
fn a_surge_keeps_the_old_pod_until_the_new_one_serves() {
    let set = set(rolling(json!(1), json!(0)));
    let nodes = [node("a")];
    let cases = [
        (true, false, vec![]),
        (true, true, vec!["old"]),
        (false, false, vec!["old"]),
    ];
    for (old_ready, new_ready, deleted) in cases {
        let pods = [
            pod("old", "a", "x", "Running", old_ready),
            pod("new", "a", "new", "Running", new_ready),
        ];
        let managed = managed(&set, &nodes, &pods, &mut FailedPods::default());
        assert_eq!(managed.work.delete, deleted, "{old_ready} {new_ready}");
    }
}

#[test]
fn without_surge_max_unavailable_bounds_missing_pods() {
    let nodes: Vec<Node> = ["a", "b", "c", "d"].map(node).into();
    let pods = |ready: [bool; 4]| -> Vec<Pod> {
        let names = ["a", "b", "c", "d"];
        (0..4)
            .map(|i| {
                pod(
                    &format!("p{}", names[i]),
                    names[i],
                    "old",
                    "Running",
                    ready[i],
                )
            })
            .collect()
    };
    let two = set(rolling(json!(0), json!("50%")));
    assert_eq!(rolled(&two, &nodes, &pods([true; 4])).delete, ["pa", "pb"]);
    // Pods that do not serve are replaced first, and count.
    assert_eq!(
        rolled(&two, &nodes, &pods([true, false, true, true])).delete,
        ["pb", "pa"]
    );
    assert_eq!(rolled(&two, &nodes, &pods([false; 4])).delete.len(), 4);
    let on_delete = set(json!({"type": "OnDelete"}));
    assert!(rolled(&on_delete, &nodes, &pods([true; 4])).is_empty());
    // Limits that come to nothing allow one.
    let none = set(rolling(json!(0), json!(0)));
    assert_eq!(rolled(&none, &nodes, &pods([true; 4])).delete, ["pa"]);
}

#[test]
fn surge_creates_new_pods_first() {
    let nodes: Vec<Node> = ["a", "b", "c"].map(node).into();
    let set = set(rolling(json!(1), json!(0)));
    let pods = [
        pod("pa", "a", "old", "Running", true),
        pod("pb", "b", "old", "Running", true),
        pod("pc", "c", "old", "Running", false),
    ];
    assert_eq!(rolled(&set, &nodes, &pods).create, ["c", "a"]);
    let surging = [
        pod("pa", "a", "old", "Running", true),
        pod("na", "a", "new", "Running", false),
        pod("pb", "b", "old", "Running", true),
        pod("pc", "c", "new", "Running", true),
    ];
    assert!(rolled(&set, &nodes, &surging).is_empty());
}

#[test]
fn status_counts_nodes_not_pods() {
    let set = set(rolling(json!(0), json!(1)));
    let mut unfit = node("c");
    unfit.spec =
        serde_json::from_value(json!({"taints": [{"key": "k", "effect": "NoSchedule"}]})).unwrap();
    let nodes = [node("a"), node("b"), unfit, node("d")];
    let pods = [
        pod("pa", "a", "new", "Running", true),
        pod("pb", "b", "old", "Running", false),
        pod("pc", "c", "new", "Running", true),
    ];
    let (nodes, pods): (Vec<&Node>, Vec<&Pod>) = (nodes.iter().collect(), pods.iter().collect());
    let placed = placement(&pods, TerminatedPods::Left);
    let status = compute_status(&set, &nodes, &placed, "new", true, Timestamp::default());
    assert_eq!(
        serde_json::to_value(&status).unwrap(),
        json!({
            "desiredNumberScheduled": 3, "currentNumberScheduled": 2, "numberMisscheduled": 1,
            "numberReady": 1, "numberAvailable": 1, "numberUnavailable": 2,
            "updatedNumberScheduled": 1, "observedGeneration": 2,
        })
    );
    assert!(is_status_current(Some(&status), &status));
    let looked_at = compute_status(&set, &nodes, &placed, "new", false, Timestamp::default());
    assert_eq!(looked_at.observed_generation, None);
}

#[test]
fn a_revision_is_made_found_and_counted() {
    let set = set(rolling(json!(0), json!(1)));
    let first = plan_history(&set, &[]);
    assert_eq!((first.current.is_none(), first.revision), (true, 1));
    let mut made = snapshot(&set, first.revision);
    let hash = made.metadata.labels.as_ref().unwrap()[REVISION_HASH].clone();
    assert_eq!(made.metadata.name, Some(format!("d-{hash}")));
    assert_eq!(
        made.data.as_ref().unwrap().0["spec"]["template"]["$patch"],
        "replace"
    );

    let again = plan_history(&set, &[&made]);
    assert_eq!(again.current.as_ref(), Some(&made));
    assert!(again.update.is_empty() && again.old.is_empty());

    let mut other = made.clone();
    other.metadata.name = Some("d-other".to_owned());
    other.metadata.labels = None;
    other.data.as_mut().unwrap().0["spec"]["template"]["spec"]["hostNetwork"] = json!(true);
    other.revision = 4;
    let back = plan_history(&set, &[&made, &other]);
    assert_eq!(back.revision, 5);
    made.revision = 5;
    assert_eq!(back.current, Some(made.clone()));
    let updated: Vec<&str> = back
        .update
        .iter()
        .filter_map(|r| r.metadata.name.as_deref())
        .collect();
    assert_eq!(updated, ["d-other", made.metadata.name.as_deref().unwrap()]);
}

#[test]
fn unused_revisions_beyond_the_limit_are_deleted_oldest_first() {
    let revision = |number: i64| -> ControllerRevision {
        serde_json::from_value(json!({
            "metadata": {"name": number.to_string(), "labels": {REVISION_HASH: format!("h{number}")}},
            "revision": number,
        }))
        .unwrap()
    };
    let old: Vec<ControllerRevision> = [3, 1, 2, 4].map(revision).into();
    let in_use = pod("p", "a", "h1", "Running", true);
    assert_eq!(cleanup(2, &old, &[&in_use]), ["2", "3"]);
    assert!(cleanup(10, &old, &[]).is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Rolling with and without surge ends with every node updated, and never has more available
    /// pods missing than allowed.
    #[test]
    fn rolling_ends_within_its_limits(
        count in 1_usize..8,
        surge in 0_i32..3,
        unavailable in 0_i32..3,
        flips in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        let set = set(rolling(json!(surge), json!(unavailable)));
        let nodes: Vec<Node> = (0..count).map(|i| node(&i.to_string())).collect();
        let mut pods: BTreeMap<String, Pod> = BTreeMap::new();
        for i in 0..count {
            let name = format!("old{i}");
            pods.insert(name.clone(), pod(&name, &i.to_string(), "old", "Running", true));
        }
        let mut flips = flips.into_iter();
        let allowed = usize::try_from(unavailable).unwrap() + usize::from(surge == 0 && unavailable == 0);
        let mut serial = 0;
        for _ in 0..150 {
            let list: Vec<Pod> = pods.values().cloned().collect();
            let mut work = managed(&set, &nodes, &list, &mut FailedPods::default()).work;
            if work.is_empty() {
                work = rolled(&set, &nodes, &list);
                let serving = |pods: &BTreeMap<String, Pod>| (0..count).filter(|i| {
                    pods.values().any(|p| pod_state::node_name(p) == i.to_string() && pod_state::is_ready(p))
                }).count();
                let before = serving(&pods);
                let mut after = pods.clone();
                after.retain(|name, _| !work.delete.contains(name));
                let floor = before.min(count - allowed.min(count));
                prop_assert!(serving(&after) >= floor, "{work:?}");
            }
            for name in &work.delete { pods.remove(name); }
            for on in &work.create {
                serial += 1;
                let name = format!("new{serial}");
                pods.insert(name.clone(), pod(&name, on, "new", "Running", false));
            }
            // New pods become ready at random, and all of them once luck has run out.
            for (name, p) in &mut pods {
                if name.starts_with("new") && flips.next().is_none_or(|flip| flip % 2 == 0) {
                    *p = pod(name, pod_state::node_name(p), "new", "Running", true);
                }
            }
            let per_node = |i: usize| pods.values().filter(|p| pod_state::node_name(p) == i.to_string()).count();
            let most = 1 + usize::from(surge > 0);
            prop_assert!((0..count).all(|i| per_node(i) <= most));
        }
        prop_assert_eq!(pods.len(), count);
        prop_assert!(pods.keys().all(|name| name.starts_with("new")));
    }
}
