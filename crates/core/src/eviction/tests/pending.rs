//! Pods that are being evicted: no other pod is chosen while one of them still holds on.

use super::super::{Action, EarlierEviction, MemoryObservation, Verdict};
use super::*;
use crate::object::identity::PodUid;
use crate::testing::pod;
use crate::threshold::DiskLayout;

fn node() -> Node {
    let mut node = Node::hard(&[("memory.available", "1Gi")]);
    node.run_using(pod("large"), 600);
    node.run_using(pod("small"), 100);
    node
}

#[test]
fn next_pod_is_not_chosen_before_the_last_releases_its_memory() {
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
fn disk_is_released_only_when_the_pod_is_removed() {
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
fn wait_for_a_victim_is_bounded_by_kill_and_cleanup_times() {
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
fn removed_victim_releases_the_hold_at_once() {
    let mut node = node();
    assert_eq!(node.pass(0, 500), Some(("large".to_owned(), 1)));
    assert_eq!(node.pass(1, 500), Some(("small".to_owned(), 1)));
    assert_eq!(node.pass(2, 500), None);
}

#[test]
fn oom_killed_pod_is_not_terminated_and_may_be_chosen_again() {
    let mut node = node();
    assert_eq!(evicted(&node.memory_left(0, 500)), ["large"]);
    let noted = node.outcome(0, "large", KillOutcome::OomKilled);
    assert_eq!(noted.actions, [], "its status says OOMKilled");
    assert_eq!(evicted(&node.memory_left(1, 500)), ["large"]);
}

#[test]
fn returned_memory_ends_the_hold() {
    let mut node = node();
    node.memory_left(0, 500);
    let decision = node.memory_left(1, 1100);
    assert_eq!(decision.verdict, Verdict::NotStarved);
}

#[test]
fn kill_is_recorded_if_the_grace_period_would_be_too_long() {
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
    assert!(!node.engine.state.evictions.pods.is_empty());
}

#[test]
fn a_victim_of_an_earlier_agent_is_waited_for_too() {
    let mut node = node();
    let large = node.pods[0].0.uid.clone();
    let earlier = |uid: &str| EarlierEviction {
        uid: PodUid::new(uid),
        at: Timestamp::from_secs(0),
        grace_period_seconds: 1,
        is_killed: true,
    };
    node.engine
        .resume(vec![earlier(large.as_str()), earlier("long-gone")]);
    let waiting = node.memory_left(1, 500);
    assert!(matches!(waiting.verdict, Verdict::WaitingFor(_)));
    node.pods[0].1 = Some(memory_usage(0));
    assert_eq!(evicted(&node.memory_left(2, 500)), ["small"]);
}

/// Beyond a soft threshold, with a grace period of 30 s, and a hard one behind it.
fn node_with_grace(always_give_grace: bool) -> Node {
    let settings = Settings {
        max_pod_grace_period_seconds: 30,
        always_give_grace,
        ..eviction_settings(
            Profile::Kubernetes136,
            &[("memory.available", "100Mi")],
            &[("memory.available", "1Gi", "1s")],
        )
    };
    let mut node = Node::new(settings);
    node.run_using(pod("large").termination_grace(60), 600);
    node.run_using(pod("small").termination_grace(60), 100);
    node
}

fn eviction(decision: &Decision) -> &Eviction {
    decision.evictions().next().unwrap()
}

#[test]
fn hard_threshold_kills_at_once_unless_grace_is_always_granted() {
    for always_give_grace in [false, true] {
        let mut node = node_with_grace(always_give_grace);
        let decision = node.memory_left(0, 90);
        assert_eq!(eviction(&decision).is_immediate, !always_give_grace);
    }
}

#[test]
fn soft_threshold_kills_at_once_only_if_grace_would_be_too_long() {
    for (left, is_immediate) in [([900, 890, 880], false), ([900, 700, 500], true)] {
        let mut node = node_with_grace(false);
        let looks = (0..).zip(left);
        let decisions = looks.map(|(second, mib)| node.memory_left(second, mib));
        let decisions: Vec<Decision> = decisions.collect();
        let found = decisions
            .iter()
            .find(|decision| decision.evictions().count() > 0);
        assert_eq!(
            eviction(found.unwrap()).is_immediate,
            is_immediate,
            "{left:?}"
        );
    }
}

#[test]
fn pod_above_its_own_disk_limit_gets_its_grace_period() {
    let settings = Settings {
        always_give_grace: false,
        ..eviction_settings(Profile::Kubernetes136, &[("nodefs.available", "1Gi")], &[])
    };
    let mut node = Node::new(settings);
    let usage = PodUsage {
        ephemeral_storage: Some(crate::resources::Bytes(GIB)),
        ..memory_usage(MIB)
    };
    node.run(pod("writer").limit("ephemeral-storage", "1Mi"), usage);
    let decision = node.memory_left(0, 4000);
    assert!(!eviction(&decision).is_immediate);
}

#[test]
fn a_grace_period_ends_when_the_hard_threshold_is_met_and_only_once() {
    for always_give_grace in [false, true] {
        let mut node = node_with_grace(always_give_grace);
        node.memory_left(0, 900);
        assert_eq!(evicted(&node.memory_left(1, 895)), ["large"]);
        node.outcome(1, "large", KillOutcome::Graceful);
        assert_eq!(node.memory_left(2, 890).actions, []);
        let decision = node.memory_left(3, 90);
        let large = node.pods[0].0.uid.clone();
        let expected = match always_give_grace {
            true => vec![],
            false => vec![Action::Kill(large)],
        };
        assert_eq!(decision.actions, expected);
        assert!(matches!(decision.verdict, Verdict::WaitingFor(_)));
        let noted = node.outcome(3, "large", KillOutcome::Killed);
        assert_eq!(noted.actions, [], "its worker ends it already");
        if !always_give_grace {
            assert_eq!(node.memory_left(4, 80).actions, []);
        }
    }
}

#[test]
fn a_kill_that_failed_is_left_to_the_worker() {
    let mut node = node_with_grace(false);
    assert_eq!(evicted(&node.memory_left(0, 90)), ["large"]);
    let large = node.pods[0].0.uid.clone();
    let noted = node.outcome(0, "large", KillOutcome::Failed);
    assert_eq!(noted.actions, [Action::Terminate(large.clone())]);
    // And tried again, because it still holds memory.
    assert_eq!(node.memory_left(1, 80).actions, [Action::Kill(large)]);
}

/// That the kernel killed in a pod, while so much was left.
fn oom_killed(node: &mut Node, second: i64, left: i64) -> Decision {
    let memory = MemoryObservation {
        available: crate::resources::Bytes(left * MIB),
        time: Some(Timestamp::from_secs(second)),
        ..MemoryObservation::default()
    };
    let observation = Observation {
        memory: Some(memory),
        is_oom_killed: true,
        ..Observation::default()
    };
    node.observe(second, &observation)
}

#[test]
fn memory_of_oom_killed_pods_is_awaited_once_per_shortage() {
    let mut node = node();
    let waiting = oom_killed(&mut node, 0, 500);
    assert_eq!(waiting.verdict, Verdict::WaitingForOomKill);
    assert!(waiting.conditions.is_empty(), "it may be over in a moment");
    // A pod that is killed repeatedly does not delay the others.
    assert_eq!(evicted(&oom_killed(&mut node, 1, 500)), ["large"]);
}

#[test]
fn no_pod_to_evict_is_announced_every_ten_seconds() {
    let mut node = Node::hard(&[("memory.available", "1Gi")]);
    let is_repeated = |node: &mut Node, second| {
        let decision = node.memory_left(second, 500);
        assert!(matches!(decision.verdict, Verdict::NoPodToEvict(_)));
        assert_eq!(
            decision.announcements().count(),
            usize::from(decision.is_recorded())
        );
        decision.is_repeated
    };
    let found = [0, 1, 9, 10, 11].map(|second| is_repeated(&mut node, second));
    assert_eq!(found, [false, true, true, false, true]);
}
