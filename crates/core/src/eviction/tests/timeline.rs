//! A story of memory pressure from beginning to end: hard 100Mi, soft 500Mi for 90 s, longest
//! grace 30 s, transition period 5 min.

use super::*;
use crate::object::node::NodeCondition;
use crate::testing::pod;
use crate::threshold::Signal;

fn node() -> Node {
    let settings = Settings {
        max_pod_grace_period_seconds: 30,
        ..eviction_settings(
            Profile::Kubernetes136,
            &[("memory.available", "100Mi")],
            &[("memory.available", "500Mi", "90s")],
        )
    };
    let mut node = Node::new(settings);
    for (name, mib, grace) in [
        ("a", 400, 600),
        ("b", 300, 10),
        ("c", 200, 600),
        ("d", 100, 600),
    ] {
        node.run_using(pod(name).termination_grace(grace), mib);
    }
    node
}

/// At `second` with `mib` left: which thresholds are met and due (`h`ard, `s`oft), whether the
/// condition is reported, and which pod is evicted with which grace.
type Row = (
    i64,
    i64,
    &'static str,
    &'static str,
    bool,
    Option<(&'static str, i64)>,
);

#[test]
fn the_timeline_of_soft_and_hard_memory_eviction() {
    let mut node = node();
    let mut rows: Vec<Row> = vec![(0, 450, "s", "", true, None)];
    rows.extend((1..=8).map(|tens| (tens * 10, 450, "s", "", true, None)));
    rows.extend([
        // The grace is over: the largest pod goes, with min(30, its own 600).
        (90, 450, "s", "s", true, Some(("a", 30))),
        // The timer belongs to the threshold, not to the pod; min(30, its own 10).
        (92, 480, "s", "s", true, Some(("b", 10))),
        // Above the line the timer is forgotten, the condition is not.
        (100, 520, "", "", true, None),
        (110, 490, "s", "", true, None),
        (190, 490, "s", "", true, None),
        // Soft and hard at once: hard goes first, with its second of grace.
        (200, 80, "hs", "hs", true, Some(("c", 1))),
        (210, 600, "", "", true, None),
        (490, 600, "", "", true, None),
        // Five minutes after the last sighting.
        (500, 600, "", "", false, None),
    ]);
    for (second, mib, met, due, is_under_pressure, victim) in rows {
        let decision = node.memory_left(second, mib);
        let letters = |ids: &[super::super::ThresholdId]| -> String {
            let is_hard = ids.iter().map(|id| node.engine.threshold(*id).is_hard());
            is_hard
                .map(|is_hard| if is_hard { 'h' } else { 's' })
                .collect()
        };
        assert_eq!(letters(&decision.observed), met, "met at {second}");
        assert_eq!(letters(&decision.due), due, "due at {second}");
        let condition = decision.conditions.contains(&NodeCondition::MemoryPressure);
        assert_eq!(condition, is_under_pressure, "condition at {second}");
        let gone = decision.evictions().next();
        let gone = gone.map(|e| (e.pod_ref.name.clone(), e.grace_period_seconds));
        let want = victim.map(|(name, grace)| (name.to_owned(), grace));
        assert_eq!(gone, want, "victim at {second}");
        node.pods
            .retain(|(pod, _)| Some(&pod.pod_ref.name) != gone.as_ref().map(|(n, _)| n));
    }
}

#[test]
fn next_step_is_due_when_a_grace_or_transition_period_ends() {
    let mut node = node();
    let next = |decision: &Decision| decision.next_step_by.as_nanos() / 1_000_000_000;
    assert_eq!(next(&node.memory_left(0, 450)), 10, "the usual interval");
    assert_eq!(next(&node.memory_left(85, 450)), 90, "the grace ends");
    assert_eq!(next(&node.memory_left(88, 5000)), 98);
    assert_eq!(
        next(&node.memory_left(380, 5000)),
        385,
        "the condition ends"
    );
}

#[test]
fn falling_signal_is_measured_before_it_reaches_its_threshold() {
    let mut node = Node::hard(&[("memory.available", "100Mi")]);
    node.memory_left(0, 900);
    let decision = node.memory_left(1, 800);
    let wait = decision.next_step_by - Timestamp::from_secs(1);
    assert_eq!(
        wait.to_string(),
        "3.5s",
        "700 MiB at 100 MiB/s, and half of that"
    );
    let time = Timestamp::from_secs(2);
    let observation = memory_observation(700 * MIB, CAPACITY, time);
    node.observe(2, &observation);
    let forecast = &node.engine.forecast(&observation)[0];
    assert_eq!(forecast.signal, Signal::MemoryAvailable);
    assert_eq!(forecast.distance, 600 * MIB);
    assert_eq!(forecast.reached_in.unwrap().to_string(), "6s");
}

#[test]
fn engine_state_does_not_grow_with_time() {
    let mut node = node();
    let mut remembered = |passes: std::ops::Range<i64>| {
        for second in passes {
            node.pass(second, 90 + second % 500);
            node.run_using(pod(&format!("late-{second}")), 10);
            node.pods.truncate(4);
        }
        let state = super::super::record::StateRecord::of(&node.engine.state);
        serde_json::to_string(&state).unwrap().len()
    };
    let early = remembered(0..1_000);
    let late = remembered(1_000..5_000);
    assert!(late < early + 200, "{late} against {early}");
}
