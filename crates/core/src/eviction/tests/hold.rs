//! Nobody goes while the last victim still holds on.

use super::super::Verdict;
use super::*;
use crate::testing::pod;
use crate::threshold::DiskLayout;

fn node() -> Node {
    let mut node = Node::hard(&[("memory.available", "1Gi")]);
    node.run_using(pod("large"), 600);
    node.run_using(pod("small"), 100);
    node
}

#[test]
fn the_next_pod_is_not_chosen_before_the_memory_of_the_last_is_back() {
    let mut node = node();
    assert_eq!(evicted(&node.memory_left(0, 500)), ["large"]);
    let waiting = node.memory_left(1, 500);
    assert!(matches!(waiting.verdict, Verdict::WaitingFor(_)));
    assert!(
        !waiting.conditions.is_empty(),
        "conditions are kept up meanwhile"
    );
    // Its containers are dead, its volumes are not yet unmounted: memory is back.
    node.pods[0].1 = Some(memory_usage(0));
    assert_eq!(evicted(&node.memory_left(2, 500)), ["small"]);
}

#[test]
fn disk_is_back_only_when_the_pod_is_gone() {
    let settings = Settings {
        layout: DiskLayout::DedicatedImageFs,
        ..eviction_settings(Profile::Kubernetes136, &[("nodefs.available", "1Gi")], &[])
    };
    let mut node = Node::new(settings);
    node.run_using(pod("a"), 10);
    node.run_using(pod("b"), 10);
    let observation = Observation {
        node_fs: Some(super::sources::disk(MIB, 10 * GIB)),
        ..Observation::default()
    };
    assert_eq!(evicted(&node.observe(0, &observation)), ["a"]);
    node.pods[0].1 = Some(memory_usage(0));
    let waiting = node.observe(1, &observation);
    assert!(matches!(waiting.verdict, Verdict::WaitingFor(_)));
    node.pods.remove(0);
    assert_eq!(evicted(&node.observe(2, &observation)), ["b"]);
}

#[test]
fn a_victim_that_will_not_die_is_waited_for_no_longer_than_a_kill_and_a_clean_up_may_take() {
    let mut node = node();
    node.memory_left(0, 500);
    assert_eq!(evicted(&node.memory_left(39, 500)), [""; 0]);
    assert_eq!(
        evicted(&node.memory_left(40, 500)),
        ["small"],
        "and not chosen again"
    );
}

#[test]
fn a_victim_that_is_gone_releases_the_hold_at_once() {
    let mut node = node();
    assert_eq!(node.pass(0, 500), Some(("large".to_owned(), 1)));
    assert_eq!(node.pass(1, 500), Some(("small".to_owned(), 1)));
    assert_eq!(node.pass(2, 500), None);
}

#[test]
fn a_pod_that_could_not_be_killed_may_be_chosen_again() {
    let mut node = node();
    assert_eq!(evicted(&node.memory_left(0, 500)), ["large"]);
    let uid = node.pods[0].0.uid.clone();
    node.engine.kill_failed(&uid);
    assert_eq!(evicted(&node.memory_left(1, 500)), ["large"]);
}

#[test]
fn memory_that_came_back_ends_it() {
    let mut node = node();
    node.memory_left(0, 500);
    let decision = node.memory_left(1, 1100);
    assert_eq!(decision.verdict, Verdict::NotStarved);
}

#[test]
fn a_kill_shows_when_its_grace_would_be_outrun() {
    let settings = Settings {
        max_pod_grace_period_seconds: 30,
        ..eviction_settings(
            Profile::Kubernetes136,
            &[],
            &[("memory.available", "500Mi", "2s")],
        )
    };
    let mut node = Node::new(settings);
    node.run_using(pod("hog"), 4000);
    for (second, mib) in [(0, 490), (1, 440), (2, 390)] {
        for eviction in node.memory_left(second, mib).evictions() {
            assert_eq!(
                eviction.exhausted_in.unwrap().to_string(),
                "7.8s",
                "50 MiB/s"
            );
            assert!(eviction.is_grace_outrun(), "30 s are too long");
        }
    }
    assert!(node.engine.state.hold.is_some());
}

#[test]
fn a_victim_of_an_earlier_engine_is_waited_for_too() {
    let mut node = node();
    let large = node.pods[0].0.uid.clone();
    node.engine.resume(&large, Timestamp::from_secs(0), 1);
    let waiting = node.memory_left(1, 500);
    assert!(matches!(waiting.verdict, Verdict::WaitingFor(_)));
    node.pods[0].1 = Some(memory_usage(0));
    assert_eq!(evicted(&node.memory_left(2, 500)), ["small"]);
}
