//! What differs between the releases.

use super::*;
use crate::object::pod::{PodView, QosClass};
use crate::object::taint::ComparisonOperators;
use crate::testing::pod;

/// `guaranteed` is furthest above its request, `besteffort` the least; priorities are against it.
fn order(profile: Profile) -> Vec<String> {
    let mut node = Node::new(eviction_settings(
        profile,
        &[("memory.available", "1Gi")],
        &[],
    ));
    let limited = pod("guaranteed").cpu("1").limit("cpu", "1");
    node.run_using(limited.memory("100Mi").limit("memory", "100Mi"), 500);
    node.run_using(pod("burstable").memory("100Mi").priority(10), 400);
    node.run_using(pod("besteffort").priority(20), 50);
    node.run_using(pod("within").memory("1Gi").priority(-5), 1000);
    let passes = (0..4).map(|second| node.pass(second, 500));
    passes.flatten().map(|(name, _)| name).collect()
}

#[test]
fn rank_in_1_36_is_request_priority_excess() {
    let order = order(Profile::Kubernetes136);
    assert_eq!(order, ["guaranteed", "burstable", "besteffort", "within"]);
}

#[test]
fn okd_3_9_ranks_without_priority() {
    let mut node = Node::new(eviction_settings(
        Profile::Okd39,
        &[("memory.available", "1Gi")],
        &[],
    ));
    node.run_using(pod("important").priority(1000), 500);
    node.run_using(pod("unimportant").priority(-1000), 400);
    assert_eq!(node.pass(0, 500), Some(("important".to_owned(), 0)));
}

#[test]
fn okd_3_6_ranks_by_qos_class_and_then_by_consumption() {
    let order = order(Profile::Okd36);
    assert_eq!(order, ["besteffort", "burstable", "within", "guaranteed"]);
}

fn soft_grace(profile: Profile) -> i64 {
    let settings = Settings {
        max_pod_grace_period_seconds: 60,
        ..eviction_settings(profile, &[], &[("memory.available", "1Gi", "10s")])
    };
    let mut node = Node::new(settings);
    node.run_using(pod("p").termination_grace(20), 500);
    assert_eq!(node.pass(0, 500), None);
    node.pass(10, 500).unwrap().1
}

#[test]
fn soft_eviction_heeds_the_pods_own_grace_only_in_1_36() {
    assert_eq!(soft_grace(Profile::Kubernetes136), 20);
    assert_eq!(soft_grace(Profile::Okd39), 60);
    assert_eq!(soft_grace(Profile::Okd36), 60);
}

#[test]
fn hard_eviction_grants_one_second_in_1_36_and_none_before() {
    for (profile, grace) in [
        (Profile::Kubernetes136, 1),
        (Profile::Okd39, 0),
        (Profile::Okd36, 0),
    ] {
        let mut node = Node::new(eviction_settings(
            profile,
            &[("memory.available", "1Gi")],
            &[],
        ));
        node.run_using(pod("p").termination_grace(20), 500);
        assert_eq!(
            node.pass(0, 500),
            Some(("p".to_owned(), grace)),
            "{profile}"
        );
    }
}

fn with_soft_and_hard_due(profile: Profile) -> i64 {
    let settings = Settings {
        max_pod_grace_period_seconds: 60,
        thresholds: {
            let soft = [("memory.available", "1Gi", "10s")];
            let mut all = eviction_settings(profile, &[], &soft).thresholds;
            let hard = [("allocatableMemory.available", "1Gi")];
            all.extend(eviction_settings(profile, &hard, &[]).thresholds);
            all
        },
        ..eviction_settings(profile, &[], &[])
    };
    let mut node = Node::new(settings);
    node.run_using(pod("p"), 500);
    let observation = |second, pods_left| {
        let time = Timestamp::from_secs(second);
        let mut observation = memory_observation(500 * MIB, CAPACITY, time);
        let pods = memory_observation(pods_left, CAPACITY, time);
        observation.pods_memory = pods.memory;
        observation
    };
    node.observe(0, &observation(0, 2 * GIB));
    let decision = node.observe(10, &observation(10, 500 * MIB));
    let mut evictions = decision.evictions();
    evictions.next().unwrap().grace_period_seconds
}

#[test]
fn one_hard_threshold_makes_the_eviction_hard() {
    assert_eq!(with_soft_and_hard_due(Profile::Kubernetes136), 1);
    assert_eq!(with_soft_and_hard_due(Profile::Okd39), 0);
}

const CRITICAL_POD: &str = "scheduler.alpha.kubernetes.io/critical-pod";
const CONFIG_SOURCE: &str = "kubernetes.io/config.source";

#[test]
fn critical_is_by_priority_or_static_in_1_36_and_by_annotation_before() {
    let is_exempt = |profile, builder: PodBuilder| builder.candidate(profile).is_exempt;
    let by_priority = || pod("p").priority(2_000_000_000);
    let by_file = || pod("p").annotation(CONFIG_SOURCE, "file");
    let annotated = || by_file().annotation(CRITICAL_POD, "");
    let (new, old) = (Profile::Kubernetes136, Profile::Okd39);
    assert!(is_exempt(new, by_priority()) && !is_exempt(old, by_priority()));
    assert!(is_exempt(new, by_file()) && !is_exempt(old, by_file()));
    assert!(!is_exempt(old, annotated()), "only in kube-system");
    assert!(is_exempt(old, annotated().namespace("kube-system")));
}

#[test]
fn defaults_are_five_lines_four_and_one() {
    for (profile, count) in [
        (Profile::Kubernetes136, 5),
        (Profile::Okd39, 4),
        (Profile::Okd36, 1),
    ] {
        let settings = eviction_settings(profile, profile.default_eviction_hard(), &[]);
        assert_eq!(settings.thresholds.len(), count, "{profile}");
    }
}

#[test]
fn admission_under_memory_and_disk_pressure_differs() {
    let is_admitted = |profile| {
        let lines = [("memory.available", "1Gi"), ("nodefs.available", "1Gi")];
        let mut node = Node::new(eviction_settings(profile, &lines, &[]));
        let mut observation = memory_observation(MIB, CAPACITY, Timestamp::from_secs(0));
        observation.node_fs = Some(super::sources::disk(MIB, 10 * GIB));
        node.observe(0, &observation);
        let burstable = PodView {
            stored_qos_class: Some(QosClass::Burstable),
            ..PodView::default()
        };
        node.engine
            .admit(&burstable, ComparisonOperators::Disabled)
            .is_ok()
    };
    assert!(!is_admitted(Profile::Kubernetes136));
    assert!(is_admitted(Profile::Okd39));
}
