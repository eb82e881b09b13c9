//! No pod after the other is evicted for memory that no pod holds.

use super::super::Verdict;
use super::super::record::{Record, Recorder};
use super::*;
use crate::object::node::NodeCondition;
use crate::resources::Bytes;
use crate::testing::pod;

/// A node that backs off, with these hard thresholds.
fn hard(thresholds: &[(&str, &str)]) -> Node {
    let settings = eviction_settings(Profile::Kubernetes136, thresholds, &[]);
    Node::new(Settings {
        back_off: true,
        ..settings
    })
}

/// 500 MiB are short, and three pods hold 6 MiB: system daemons have the rest.
fn node() -> Node {
    let mut node = hard(&[("memory.available", "1Gi")]);
    for name in ["a", "b", "c"] {
        node.run_using(pod(name), 2);
    }
    node
}

/// Passes at these seconds, with 500 MiB short at each; counts the evictions.
fn evictions(node: &mut Node, seconds: impl Iterator<Item = i64>) -> usize {
    seconds.filter_map(|second| node.pass(second, 524)).count()
}

#[test]
fn one_pod_is_evicted_for_memory_held_outside_of_pods_and_none_for_five_minutes() {
    let mut node = node();
    let decision = node.memory_left(0, 524);
    assert_eq!(evicted(&decision).len(), 1);
    let shortfall = decision.shortfall.unwrap();
    assert_eq!(shortfall.evictable, Bytes(6 * MIB));
    assert_eq!((shortfall.pods, shortfall.exempt), (3, Bytes(0)));
    assert_eq!(shortfall.threshold - shortfall.available, Bytes(500 * MIB));
    assert_eq!(shortfall.until, Timestamp::from_secs(300));
    node.pods.remove(0);
    for second in 1..300 {
        let decision = node.memory_left(second, 524);
        assert_eq!(evicted(&decision), [""; 0], "after {second} s");
        assert!(matches!(decision.verdict, Verdict::BackingOff(_)));
        assert!(decision.actions.is_empty(), "nothing is announced");
        let pressure = NodeCondition::MemoryPressure;
        assert!(decision.conditions.contains(&pressure), "it stays");
        assert_eq!(decision.shortfall.unwrap().until, shortfall.until);
    }
    assert_eq!(evicted(&node.memory_left(300, 524)).len(), 1);
}

#[test]
fn back_off_doubles_up_to_an_hour_and_resets_after_one_without() {
    let mut node = hard(&[("memory.available", "1Gi")]);
    for index in 0..10 {
        node.run_using(pod(&format!("p{index}")), 1);
    }
    let mut seconds = Vec::new();
    for second in (0..15_000).step_by(10) {
        if node.pass(second, 524).is_some() {
            seconds.push(second);
        }
    }
    assert_eq!(seconds, [0, 300, 900, 2100, 4500, 8100, 11_700]);
    // The last ends after 15,300 s. An hour later everything is forgotten.
    for second in (15_000..18_900).step_by(10) {
        assert_eq!(node.pass(second, 2000), None);
    }
    assert!(node.pass(18_900, 524).is_some());
    assert_eq!(node.pass(19_190, 524), None);
    assert!(node.pass(19_200, 524).is_some());
}

#[test]
fn pods_that_hold_the_short_resource_are_evicted_in_turn() {
    let mut node = node();
    node.run_using(pod("hog"), 400);
    node.run_using(pod("other"), 300);
    assert_eq!(node.pass(0, 524).unwrap().0, "hog");
    assert_eq!(node.pass(1, 924).unwrap().0, "other");
    assert_eq!(node.pass(2, 1224), None);
}

#[test]
fn pod_that_takes_the_short_resource_is_evicted_during_back_off() {
    let mut node = node();
    assert!(node.pass(0, 524).is_some());
    assert_eq!(node.pass(1, 524), None);
    node.run_using(pod("hog"), 900);
    assert_eq!(node.pass(2, 200).unwrap().0, "hog", "824 MiB are short");
}

#[test]
fn a_pod_that_was_evicted_just_before_is_the_only_one() {
    let mut node = node();
    assert!(node.pass(0, 1020).is_some(), "4 MiB are short, 6 held");
    let decision = node.memory_left(9, 524);
    assert_eq!(evicted(&decision), [""; 0]);
    assert!(!decision.is_news(), "its memory may still come back");
    let decision = node.memory_left(10, 524);
    assert_eq!(evicted(&decision), [""; 0]);
    assert!(decision.is_news(), "it is recorded why");
    let shortfall = decision.shortfall.unwrap();
    assert_eq!(shortfall.until, Timestamp::from_secs(300));
    assert!(!node.memory_left(11, 524).is_news(), "once");
    assert_eq!(evictions(&mut node, 12..300), 0);
    assert_eq!(evictions(&mut node, 300..900), 1);
}

#[test]
fn memory_that_grows_outside_of_pods_takes_one_pod_in_ten_seconds() {
    let mut node = hard(&[("memory.available", "1Gi")]);
    for index in 0..10 {
        node.run_using(pod(&format!("p{index}")), 2);
    }
    // 5 MiB go in each second, and what pods give back with them: 20 MiB are gone in four.
    let mut left = 1023;
    let mut count = 0;
    for second in 0..300 {
        if node.pass(second, left).is_some() {
            count += 1;
            left += 2;
        }
        left -= 5;
    }
    assert_eq!(count, 1);
}

#[test]
fn growing_pods_are_evicted_without_a_pause() {
    let mut node = hard(&[("memory.available", "1Gi")]);
    node.run_using(pod("small"), 20);
    node.pods[0].0.priority = -1;
    node.run_using(pod("hog"), 600);
    assert_eq!(node.pass(0, 1000).unwrap().0, "small");
    node.pods[0].1 = Some(memory_usage(900 * MIB));
    assert_eq!(node.pass(1, 720).unwrap().0, "hog");
}

#[test]
fn memory_of_pods_that_may_not_be_evicted_does_not_count() {
    let mut node = node();
    node.run_using(pod("critical").priority(2_000_001_000), 4000);
    let decision = node.memory_left(0, 524);
    assert_eq!(decision.shortfall.unwrap().exempt, Bytes(4000 * MIB));
    assert_eq!(evicted(&decision).len(), 1);
    node.pods.remove(0);
    assert_eq!(evictions(&mut node, 1..300), 0);
}

#[test]
fn pod_without_stats_may_hold_the_memory() {
    let mut node = node();
    node.run(pod("new"), PodUsage::default());
    for second in 0..4 {
        assert!(node.pass(second, 524).is_some());
    }
}

#[test]
fn without_back_off_every_pass_evicts_as_upstream() {
    let mut node = Node::hard(&[("memory.available", "1Gi")]);
    for name in ["a", "b", "c"] {
        node.run_using(pod(name), 2);
    }
    assert_eq!(evictions(&mut node, 0..5), 3);
}

#[test]
fn back_off_for_one_resource_does_not_delay_another() {
    let mut node = hard(&[
        ("memory.available", "1Gi"),
        ("allocatableMemory.available", "100Mi"),
    ]);
    node.run_using(pod("a"), 2);
    node.run_using(pod("hog"), 400);
    let look = |node: &mut Node, second: i64, pods_left: i64| {
        let time = Timestamp::from_secs(second);
        let mut observation = memory_observation(524 * MIB, CAPACITY, time);
        observation.pods_memory = memory_observation(pods_left * MIB, GIB, time).memory;
        let decision = node.observe(second, &observation);
        let names: Vec<String> = evicted(&decision).into_iter().map(str::to_owned).collect();
        node.pods
            .retain(|(pod, _)| !names.contains(&pod.pod_ref.name));
        names
    };
    assert_eq!(look(&mut node, 0, 622), ["hog"], "500 MiB are short");
    node.run_using(pod("new"), 450);
    assert_eq!(look(&mut node, 1, 574), [""; 0]);
    assert_eq!(look(&mut node, 2, 50), ["new"], "for what pods share");
}

#[test]
fn record_has_the_shortfall_and_replays_with_back_off() {
    let mut node = node();
    let mut recorder = Recorder::new(8);
    let mut step = |node: &mut Node, second: i64| {
        let now = Timestamp::from_secs(second);
        let pods: Vec<ActivePod<'_>> = node
            .pods
            .iter()
            .map(|(candidate, usage)| ActivePod {
                candidate,
                usage: usage.as_ref(),
            })
            .collect();
        let input = Input::Observed {
            observation: &memory_observation(524 * MIB, CAPACITY, now),
            pods: &pods,
        };
        recorder.step(&mut node.engine, now, input);
    };
    step(&mut node, 0);
    node.pods.clear();
    for name in ["d", "e"] {
        node.run_using(pod(name), 3);
    }
    step(&mut node, 100);
    step(&mut node, 301);
    let records: Vec<&Record> = recorder.records().collect();
    assert_eq!(records.len(), 2, "a pass that backs off leaves no record");
    for record in &records {
        let json = serde_json::to_string(record).unwrap();
        let read: Record = serde_json::from_str(&json).unwrap();
        assert_eq!(read.replay().as_ref(), Ok(&record.decision));
    }
    let shortfall = records[1].decision.shortfall.as_ref().unwrap();
    assert_eq!(shortfall.until, Some(Timestamp::from_secs(901)));
    assert_eq!(shortfall.evictable, 6 * MIB);

    // A restarted agent continues the back-off.
    let mut again = Engine::new(node.engine.settings().clone());
    again.resume_back_off(shortfall.back_off(), shortfall.until.unwrap());
    node.engine = again;
    assert_eq!(node.pass(600, 524), None);
    assert!(node.pass(901, 524).is_some());
    let next = node.engine.state.back_off.unwrap();
    assert_eq!(next.until, Timestamp::from_secs(901 + 1200));
}

#[test]
fn record_without_back_off_replays_without_it() {
    let mut node = Node::hard(&[("memory.available", "1Gi")]);
    node.run_using(pod("a"), 2);
    let mut recorder = Recorder::new(1);
    let (candidate, usage) = &node.pods[0];
    let pods = [ActivePod {
        candidate,
        usage: usage.as_ref(),
    }];
    let now = Timestamp::from_secs(0);
    let input = Input::Observed {
        observation: &memory_observation(524 * MIB, CAPACITY, now),
        pods: &pods,
    };
    recorder.step(&mut node.engine, now, input);
    let record = recorder.records().next().unwrap();
    let mut json = serde_json::to_value(record).unwrap();
    json["settings"].as_object_mut().unwrap().remove("backOff");
    json["before"].as_object_mut().unwrap().remove("backOff");
    let read: Record = serde_json::from_value(json).unwrap();
    assert_eq!(read.replay().as_ref(), Ok(&record.decision));
}
