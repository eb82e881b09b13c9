//! When a pass begins, and how soon the node is measured again.

use super::super::{FsObservation, News, Next, Ready, Remains};
use super::*;
use crate::testing::pod;

const QUIET: News = News {
    is_measured: false,
    is_reclaimed: false,
};

/// Milliseconds.
fn at(millis: i64) -> Timestamp {
    Timestamp::from_nanos(millis * 1_000_000)
}

fn left(millis: i64, mib: i64) -> Observation {
    memory_observation(mib * MIB, CAPACITY, at(millis))
}

impl Node {
    fn look(&mut self, millis: i64, mib: i64) -> Next {
        self.engine
            .look(at(millis), QUIET, Some(&left(millis, mib)))
    }

    fn ready(&mut self, millis: i64, mib: i64, remains: Remains) -> Ready {
        let observation = left(millis, mib);
        self.engine.ready(at(millis), &observation, |_| remains)
    }

    fn pass_at(&mut self, millis: i64, mib: i64) -> Decision {
        let pods = self.pods.iter().map(|(candidate, usage)| ActivePod {
            candidate,
            usage: usage.as_ref(),
        });
        let (pods, observation) = (pods.collect::<Vec<_>>(), left(millis, mib));
        let input = Input::Observed {
            observation: &observation,
            pods: &pods,
        };
        self.engine.step(at(millis), input)
    }
}

fn node() -> Node {
    let mut node = Node::hard(&[("memory.available", "100Mi")]);
    node.run_using(pod("large"), 600);
    node.run_using(pod("small"), 100);
    node
}

#[test]
fn far_from_a_threshold_a_look_is_a_pass_only_every_ten_seconds() {
    let mut node = node();
    assert_eq!(node.look(0, 7000), Next::Pass { lists_anew: false });
    assert_eq!(node.ready(0, 7000, Remains::Nothing), Ready::Observe);
    node.pass_at(0, 7000);
    assert_eq!(node.look(1500, 7000), Next::Nothing);
    assert_eq!(node.look(10_000, 7000), Next::Pass { lists_anew: false });
}

#[test]
fn measurement_or_nearly_exhausted_memory_begins_a_pass() {
    let mut node = node();
    node.look(0, 7000);
    node.pass_at(0, 7000);
    let news = News {
        is_measured: true,
        ..QUIET
    };
    let next = node.engine.look(at(100), news, Some(&left(100, 7000)));
    assert_eq!(next, Next::Pass { lists_anew: true });
    // 100 MiB at one GiB per second and four looks ahead are less than 100 ms.
    assert_eq!(node.look(200, 200), Next::Pass { lists_anew: false });
    assert_eq!(node.ready(200, 200, Remains::Nothing), Ready::Observe);
}

#[test]
fn beyond_a_threshold_everything_is_measured_again_before_a_pod_is_chosen() {
    let mut node = node();
    assert_eq!(node.look(0, 90), Next::Pass { lists_anew: true });
    assert_eq!(node.ready(0, 90, Remains::Nothing), Ready::Measure);
}

#[test]
fn next_victim_waits_for_figures_after_the_last_kill() {
    let mut node = node();
    node.look(0, 90);
    assert_eq!(evicted(&node.pass_at(0, 90)), ["large"]);
    node.outcome(0, "large", KillOutcome::Killed);
    assert_eq!(
        node.engine.pause(at(0)),
        std::time::Duration::from_millis(15)
    );
    node.look(15, 90);
    assert_eq!(node.ready(15, 90, Remains::Memory), Ready::Observe);
    node.look(30, 90);
    assert_eq!(node.ready(30, 90, Remains::NoMemory), Ready::Wait);
    assert_eq!(
        node.engine.pause(at(30)),
        std::time::Duration::from_millis(50)
    );
    node.look(80, 90);
    assert_eq!(node.ready(80, 90, Remains::NoMemory), Ready::Measure);
}

#[test]
fn oom_kill_by_the_kernel_has_half_a_second_to_take_effect() {
    let mut node = node();
    node.look(0, 90);
    node.pass_at(0, 90);
    node.outcome(0, "large", KillOutcome::OomKilled);
    node.look(499, 90);
    assert_eq!(node.ready(499, 90, Remains::Memory), Ready::Wait);
    node.look(500, 90);
    assert_eq!(node.ready(500, 90, Remains::Memory), Ready::Measure);
}

#[test]
fn disk_figures_from_before_a_pods_removal_are_ignored() {
    let mut node = node();
    node.look(0, 90);
    node.pass_at(0, 90);
    node.outcome(0, "large", KillOutcome::Killed);
    node.look(1000, 7000);
    assert_eq!(
        node.ready(1000, 7000, Remains::Nothing),
        Ready::Wait,
        "it settles"
    );
    let measured = |seconds| Observation {
        node_fs: Some(FsObservation {
            time: Some(Timestamp::from_secs(seconds)),
            ..super::sources::disk(0, GIB)
        }),
        ..left(2000, 7000)
    };
    for (time, expected) in [(0, Ready::Wait), (2, Ready::Observe)] {
        let observation = measured(time);
        node.engine.look(at(2000), QUIET, Some(&observation));
        let ready = node
            .engine
            .ready(at(2000), &observation, |_| Remains::Nothing);
        assert_eq!(ready, expected);
    }
    // Not forever.
    node.look(11_000, 7000);
    let ready = node
        .engine
        .ready(at(11_000), &measured(0), |_| Remains::Nothing);
    assert_eq!(ready, Ready::Observe);
}

#[test]
fn while_the_node_frees_disk_only_a_hard_memory_threshold_begins_a_pass() {
    let hard = [("memory.available", "100Mi"), ("nodefs.available", "1Gi")];
    let soft = [("memory.available", "500Mi", "1s")];
    let settings = eviction_settings(Profile::Kubernetes136, &hard, &soft);
    let mut node = Node::new(settings);
    node.run_using(pod("large"), 600);
    let full = |millis, mib| Observation {
        node_fs: Some(super::sources::disk(0, 10 * GIB)),
        ..left(millis, mib)
    };
    node.engine.look(at(0), QUIET, Some(&full(0, 7000)));
    let decision = node.observe(0, &full(0, 7000));
    assert!(decision.reclaims().count() > 0);
    assert!(!decision.is_recorded(), "the pass is not over");
    assert_eq!(node.look(1000, 400), Next::Nothing);
    let done = News {
        is_reclaimed: true,
        ..QUIET
    };
    let mut other = Node::new(node.engine.settings().clone());
    other.engine = node.engine.clone();
    let next = other.engine.look(at(2000), done, Some(&left(2000, 7000)));
    assert_eq!(next, Next::Reclaimed);
    assert_eq!(node.look(2000, 90), Next::Pass { lists_anew: true });
}

#[test]
fn a_node_that_cannot_be_read_is_tried_again_every_second() {
    let mut node = node();
    assert_eq!(node.engine.look(at(0), QUIET, None), Next::NotObserved);
    node.engine.step(at(0), Input::NotObserved);
    assert_eq!(node.engine.look(at(1000), QUIET, None), Next::Nothing);
    assert_eq!(
        node.engine.pause(at(1000)),
        std::time::Duration::from_secs(1)
    );
}
