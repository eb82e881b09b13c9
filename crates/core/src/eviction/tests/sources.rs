//! Statements of the documents this engine was written after, one test each.

use super::super::usage::{ContainerUsage, FsUsage, PodUsage, VolumeUsage};
use super::super::{
    Action, FsObservation, MemoryObservation, NodeReclaim, PidObservation, Room, Verdict,
};
use super::*;
use crate::object::node::NodeCondition;
use crate::object::pod::{PodView, QosClass};
use crate::object::taint::ComparisonOperators;
use crate::resources::{Bytes, Count};
use crate::testing::pod;
use crate::threshold::{DiskLayout, Signal, ThresholdValue};

pub(super) fn disk(available: i64, capacity: i64) -> FsObservation {
    FsObservation {
        bytes: Some(Room {
            available: Bytes(available),
            capacity: Bytes(capacity),
        }),
        inodes: None,
        time: None,
    }
}

fn disks(node_fs: i64, image_fs: i64) -> Observation {
    Observation {
        node_fs: Some(disk(node_fs, 100 * GIB)),
        image_fs: Some(disk(image_fs, 100 * GIB)),
        ..Observation::default()
    }
}

fn on_layout(layout: DiskLayout, lines: &[(&str, &str)]) -> Node {
    let settings = eviction_settings(Profile::Kubernetes136, lines, &[]);
    let mut node = Node::new(Settings { layout, ..settings });
    // Derived lines on the containerfs count from the second pass on.
    node.observe(0, &Observation::default());
    node
}

#[test]
fn a_threshold_on_the_containerfs_is_replaced_by_that_of_its_disk() {
    let lines = [
        ("containerfs.available", "1Gi"),
        ("nodefs.available", "2Gi"),
    ];
    let node = Node::hard(&lines);
    let warning = "found containerfs.available for hard eviction. ignoring";
    assert_eq!(node.engine.warning(), Some(warning));
    let thresholds = node.engine.thresholds().iter();
    let of_container_fs = thresholds.filter(|t| t.signal == Signal::ContainerFsAvailable);
    let values: Vec<&ThresholdValue> = of_container_fs.map(|t| &t.value).collect();
    let expected = ThresholdValue::Quantity("2Gi".parse().unwrap());
    assert_eq!(values[0], &expected);
}

#[test]
fn derived_thresholds_count_from_the_second_pass_on() {
    let mut node = Node::hard(&[("nodefs.available", "2Gi")]);
    let observation = Observation {
        container_fs: Some(disk(GIB, 10 * GIB)),
        ..Observation::default()
    };
    assert_eq!(node.observe(0, &observation).observed.len(), 0);
    assert_eq!(node.observe(10, &observation).observed.len(), 1);
}

fn reclaims(decision: &Decision) -> Vec<NodeReclaim> {
    decision.reclaims().collect()
}

#[test]
fn memory_available_is_capacity_minus_working_set() {
    let observation = memory_observation(3 * GIB, 8 * GIB, Timestamp::from_secs(0));
    assert_eq!(observation.memory.unwrap().working_set, Bytes(5 * GIB));
    let reading = observation
        .readings(Default::default())
        .get(Signal::MemoryAvailable)
        .unwrap();
    assert_eq!((reading.available, reading.capacity), (3 * GIB, 8 * GIB));
}

#[test]
fn a_percentage_is_available_by_capacity() {
    let mut node = Node::hard(&[("memory.available", "25%")]);
    node.run_using(pod("p"), 100);
    assert_eq!(node.pass(0, 2048), None, "equal is not below");
    assert_eq!(node.pass(1, 2047), Some(("p".to_owned(), 1)));
}

#[test]
fn cpu_is_no_reason_to_evict() {
    assert!(
        Signal::ALL
            .iter()
            .all(|signal| !signal.as_str().contains("cpu"))
    );
}

#[test]
fn hard_eviction_acts_at_once_and_kills_one_pod_per_pass() {
    let mut node = Node::hard(&[("memory.available", "1Gi")]);
    for name in ["a", "b", "c"] {
        node.run_using(pod(name), 100);
    }
    for second in 0..3 {
        assert!(node.pass(second, 500).is_some());
    }
    assert!(node.pods.is_empty());
}

#[test]
fn soft_eviction_waits_for_its_grace_period_of_1m30s() {
    let soft = [("memory.available", "500Mi", "1m30s")];
    let mut node = Node::new(eviction_settings(Profile::Kubernetes136, &[], &soft));
    node.run_using(pod("p").termination_grace(60), 100);
    assert_eq!(node.pass(0, 400), None);
    assert_eq!(node.pass(89, 400), None);
    let kill_at_once = Some(("p".to_owned(), 0));
    assert_eq!(
        node.pass(90, 400),
        kill_at_once,
        "no eviction-max-pod-grace-period is set"
    );
}

#[test]
fn oscillation_around_a_soft_threshold_never_evicts_but_keeps_the_condition() {
    let soft = [("memory.available", "500Mi", "30s")];
    let mut node = Node::new(eviction_settings(Profile::Kubernetes136, &[], &soft));
    node.run_using(pod("p"), 100);
    for tens in 0..30 {
        let mib = if tens % 2 == 0 { 499 } else { 501 };
        let decision = node.memory_left(tens * 10, mib);
        assert_eq!(evicted(&decision), [""; 0]);
        assert!(decision.conditions.contains(&NodeCondition::MemoryPressure));
    }
}

#[test]
fn the_transition_period_delays_leaving_pressure_not_reclaiming() {
    let mut node = Node::hard(&[("memory.available", "1Gi")]);
    node.run_using(pod("p"), 100);
    assert!(node.pass(0, 500).is_some(), "in the very first pass");
    assert!(!node.memory_left(299, 2000).conditions.is_empty());
    assert!(node.memory_left(300, 2000).conditions.is_empty());
}

#[test]
fn after_reclaim_the_threshold_plus_the_minimum_reclaim_must_be_free() {
    let mut settings = eviction_settings(
        Profile::Kubernetes136,
        &[("memory.available", "500Mi")],
        &[],
    );
    settings.thresholds[0].min_reclaim = Some(ThresholdValue::Quantity("200Mi".parse().unwrap()));
    let mut node = Node::new(settings);
    for name in ["a", "b"] {
        node.run_using(pod(name), 100);
    }
    assert_eq!(node.pass(0, 600), None, "not before the threshold was met");
    assert!(node.pass(1, 400).is_some());
    assert!(
        node.pass(2, 600).is_some(),
        "600Mi are free, 700Mi have to be"
    );
    assert_eq!(node.memory_left(3, 700).verdict, Verdict::NotStarved);
}

#[test]
fn memory_is_reclaimed_before_every_other_resource() {
    let mut node = Node::hard(&[
        ("nodefs.available", "10Gi"),
        ("pid.available", "100"),
        ("memory.available", "1Gi"),
    ]);
    node.run_using(pod("p"), 100);
    let mut observation = memory_observation(MIB, CAPACITY, Timestamp::from_secs(0));
    observation.node_fs = Some(disk(GIB, 100 * GIB));
    observation.pids = Some(PidObservation {
        max: Count(1000),
        running: Count(999),
        time: None,
    });
    let decision = node.observe(0, &observation);
    assert_eq!(decision.conditions.len(), 3);
    let announced = Action::Announce("Attempting to reclaim memory".to_owned());
    assert_eq!(decision.actions[0], announced);
}

#[test]
fn ranking_is_by_excess_of_request_priority_and_amount() {
    let mut node = Node::hard(&[("memory.available", "1Gi")]);
    node.run_using(pod("within").memory("2Gi").priority(-10), 1900);
    node.run_using(pod("above-important").memory("1Gi").priority(100), 2000);
    node.run_using(pod("above-a-little").memory("1Gi"), 1100);
    node.run_using(pod("above-a-lot").memory("100Mi"), 500);
    let order: Vec<String> = (0..4)
        .filter_map(|second| node.pass(second, 1))
        .map(|v| v.0)
        .collect();
    assert_eq!(
        order,
        ["above-a-lot", "above-a-little", "above-important", "within"]
    );
}

#[test]
fn a_daemon_should_not_be_best_effort_and_is_safest_as_critical() {
    let mut node = Node::hard(&[("memory.available", "1Gi")]);
    node.run_using(pod("guaranteed-daemon").memory("200Mi"), 150);
    node.run_using(pod("best-effort-daemon"), 20);
    node.run_using(pod("critical-daemon").priority(2_000_001_000), 900);
    assert_eq!(node.pass(0, 1).unwrap().0, "best-effort-daemon");
    assert_eq!(node.pass(1, 1).unwrap().0, "guaranteed-daemon");
    let decision = node.memory_left(2, 1);
    assert!(
        matches!(decision.verdict, Verdict::NoPodToEvict(_)),
        "never the critical one"
    );
}

#[test]
fn without_an_imagefs_both_dead_containers_and_images_are_reclaimed_first() {
    let lines = [("nodefs.available", "10Gi"), ("imagefs.available", "10Gi")];
    let mut node = on_layout(DiskLayout::Single, &lines);
    node.run_using(pod("p"), 1);
    let decision = node.observe(10, &disks(GIB, 50 * GIB));
    assert_eq!(
        reclaims(&decision),
        [NodeReclaim::ContainerGc, NodeReclaim::ImageGc]
    );
    assert_eq!(
        evicted(&decision),
        [""; 0],
        "pods only if that does not help"
    );
    let relieved = Input::Reclaimed {
        observation: Some(&disks(20 * GIB, 50 * GIB)),
    };
    let decision = node.engine.step(Timestamp::from_secs(11), relieved);
    assert!(matches!(decision.verdict, Verdict::Relieved(_)));
}

#[test]
fn with_an_imagefs_images_are_deleted_only_when_the_imagefs_is_short() {
    let lines = [("nodefs.available", "10Gi"), ("imagefs.available", "10Gi")];
    let mut node = on_layout(DiskLayout::DedicatedImageFs, &lines);
    node.run_using(pod("p"), 1);
    let decision = node.observe(10, &disks(50 * GIB, GIB));
    assert_eq!(
        reclaims(&decision),
        [NodeReclaim::ContainerGc, NodeReclaim::ImageGc]
    );
    let decision = node.observe(20, &disks(GIB, 50 * GIB));
    assert_eq!(reclaims(&decision), []);
    assert_eq!(
        evicted(&decision),
        ["p"],
        "nothing on the nodefs is the node's to delete"
    );
}

#[test]
fn insufficient_reclaim_evicts_a_pod_in_the_same_pass() {
    let mut node = on_layout(DiskLayout::Single, &[("nodefs.available", "10Gi")]);
    node.run_using(pod("p"), 1);
    node.observe(10, &disks(GIB, GIB));
    let input = Input::Reclaimed { observation: None };
    let decision = node.engine.step(Timestamp::from_secs(11), input);
    assert_eq!(
        evicted(&decision),
        ["p"],
        "neither is a node that cannot be looked at relieved"
    );
    let decision = node.engine.step(Timestamp::from_secs(12), input);
    assert_eq!(decision.verdict, Verdict::NoPassUnderWay);
}

#[test]
fn memory_pressure_rejects_best_effort_and_disk_pressure_all_pods() {
    let admitted = |node: &Node, class| {
        let pod = PodView {
            stored_qos_class: Some(class),
            ..PodView::default()
        };
        node.engine
            .admit(&pod, ComparisonOperators::Disabled)
            .is_ok()
    };
    let mut node = Node::hard(&[("memory.available", "1Gi"), ("nodefs.available", "1Gi")]);
    assert!(admitted(&node, QosClass::BestEffort));
    node.memory_left(0, 1);
    assert!(!admitted(&node, QosClass::BestEffort) && admitted(&node, QosClass::Burstable));
    node.observe(10, &disks(MIB, GIB));
    assert!(!admitted(&node, QosClass::Guaranteed));
}

fn with_disk(names: &[(&str, i64)]) -> PodUsage {
    let container = |(name, mib): &(&str, i64)| ContainerUsage {
        name: (*name).to_owned(),
        logs: FsUsage {
            used: Some(Bytes(mib * MIB)),
            inodes: None,
        },
        ..ContainerUsage::default()
    };
    PodUsage {
        ephemeral_storage: Some(Bytes(names.iter().map(|(_, mib)| mib * MIB).sum())),
        containers: names.iter().map(container).collect(),
        ..PodUsage::default()
    }
}

#[test]
fn all_pods_above_their_disk_limit_are_evicted_in_one_pass() {
    let mut node = Node::hard(&[("memory.available", "1Gi")]);
    let limited = |name| pod(name).limit("ephemeral-storage", "100Mi");
    node.run(limited("one"), with_disk(&[("c", 200)]));
    node.run(
        limited("two").container("d"),
        with_disk(&[("c", 101), ("d", 0)]),
    );
    node.run(limited("fine"), with_disk(&[("c", 100)]));
    node.run_using(pod("hog"), 4000);
    let decision = node.memory_left(0, 1);
    assert_eq!(
        evicted(&decision),
        ["one", "two"],
        "the hog waits for the next pass"
    );
    assert_eq!(decision.verdict, Verdict::LocalLimits);
    let eviction = decision.evictions().next().unwrap();
    assert!(!eviction.failure().is_disruption);
    assert_eq!(
        eviction.message,
        "Pod ephemeral local storage usage exceeds the total limit of containers 100Mi. "
    );
}

#[test]
fn empty_dir_above_its_size_limit_evicts_the_pod() {
    let mut api = pod("p").build();
    let volumes = serde_json::json!([{"name": "cache", "emptyDir": {"sizeLimit": "1Mi"}}]);
    api.spec.as_mut().unwrap().volumes = serde_json::from_value(volumes).unwrap();
    let view = PodView::from_api(&api).unwrap();
    let mut node = Node::hard(&[("memory.available", "1Gi")]);
    let usage = PodUsage {
        volumes: vec![VolumeUsage {
            name: "cache".to_owned(),
            fs: FsUsage {
                used: Some(Bytes(MIB + 1)),
                inodes: None,
            },
        }],
        ..PodUsage::default()
    };
    node.pods
        .push((Candidate::new(&view, Profile::Kubernetes136), Some(usage)));
    let decision = node.memory_left(0, 5000);
    let eviction = decision.evictions().next().unwrap();
    assert_eq!(eviction.cause.metric_label(), "emptydirfs.limit");
    let message = "Usage of EmptyDir volume \"cache\" exceeds the limit \"1Mi\". ";
    assert_eq!(eviction.message, message);
}

#[test]
fn measurements_are_acted_upon_only_once() {
    let mut node = Node::hard(&[("memory.available", "1Gi")]);
    node.run_using(pod("a"), 100);
    node.run_using(pod("b"), 90);
    let observation = memory_observation(MIB, CAPACITY, Timestamp::from_secs(0));
    assert_eq!(evicted(&node.observe(0, &observation)), ["a"]);
    node.pods.remove(0);
    let decision = node.observe(10, &observation);
    assert_eq!(decision.verdict, Verdict::StaleStats);
    assert_eq!(decision.due.len(), 1);
}

/// Capacity 100, daemons use 5, hard 5, soft 10. `reserved` is what daemons are granted.
fn case(reserved: i64, pods_use: i64) -> Decision {
    let soft = [("memory.available", "10", "0s")];
    let mut settings = eviction_settings(Profile::Kubernetes136, &[], &soft);
    let twin = [("allocatableMemory.available", "5")];
    settings
        .thresholds
        .extend(eviction_settings(Profile::Kubernetes136, &twin, &[]).thresholds);
    let memory = |available, working_set| MemoryObservation {
        available: Bytes(available),
        working_set: Bytes(working_set),
        ..MemoryObservation::default()
    };
    let used = pods_use + 5;
    let observation = Observation {
        memory: Some(memory(100 - used, used)),
        pods_memory: Some(memory(100 - reserved - pods_use, pods_use)),
        ..Observation::default()
    };
    Node::new(settings).observe(0, &observation)
}

#[test]
fn pods_within_allocatable_trigger_an_uncovered_soft_threshold() {
    let met = |reserved, pods_use| -> Vec<usize> {
        let decision = case(reserved, pods_use);
        decision.observed.iter().map(|id| id.index()).collect()
    };
    const SOFT: usize = 0;
    const TWIN: usize = 1;
    // Case 1: allocatable is 90, yet soft eviction begins above 85.
    assert_eq!(met(5, 85), [0; 0]);
    assert_eq!(met(5, 86), [SOFT]);
    assert_eq!(met(5, 91), [SOFT, TWIN]);
    // Case 2: allocatable is 80, and pods never get to the soft line.
    assert_eq!(met(15, 80), [0; 0]);
    assert_eq!(met(15, 81), [TWIN]);
}

#[test]
fn on_32_gi_with_3_gi_reserved_pods_are_evicted_above_28_902_gi() {
    let twin = [("allocatableMemory.available", "100Mi")];
    let is_starved = |pods_use: i64| {
        let limit = 29 * GIB;
        let observation = Observation {
            pods_memory: Some(MemoryObservation {
                available: Bytes(limit - pods_use),
                working_set: Bytes(pods_use),
                ..MemoryObservation::default()
            }),
            ..Observation::default()
        };
        !Node::hard(&twin)
            .observe(0, &observation)
            .observed
            .is_empty()
    };
    assert!(!is_starved(31_033_655_296));
    assert!(is_starved(31_033_655_297));
}
