//! The engine on nodes small enough to follow.

mod back_off;
mod look;
mod pending;
mod profile;
mod record;
mod sources;
mod timeline;

use crate::config::Profile;
use crate::object::timestamp::Timestamp;
use crate::testing::{PodBuilder, eviction_settings, memory_observation, memory_usage};

use super::usage::PodUsage;
use super::{
    ActivePod, Candidate, Decision, Engine, Eviction, Input, KillOutcome, Observation, Settings,
};

const MIB: i64 = 1 << 20;
const GIB: i64 = 1 << 30;
/// The node's memory.
const CAPACITY: i64 = 8 * GIB;

/// An engine, its pods, and a clock in seconds.
struct Node {
    engine: Engine,
    pods: Vec<(Candidate, Option<PodUsage>)>,
}

impl Node {
    fn new(settings: Settings) -> Node {
        Node {
            engine: Engine::new(settings),
            pods: Vec::new(),
        }
    }

    /// A 1.36 node with these hard thresholds and no others.
    fn hard(thresholds: &[(&str, &str)]) -> Node {
        Node::new(eviction_settings(Profile::Kubernetes136, thresholds, &[]))
    }

    fn run(&mut self, pod: PodBuilder, usage: PodUsage) {
        let candidate = pod.candidate(self.engine.settings().profile);
        self.pods.push((candidate, Some(usage)));
    }

    /// A pod that uses that many MiB of memory.
    fn run_using(&mut self, pod: PodBuilder, mib: i64) {
        self.run(pod, memory_usage(mib * MIB));
    }

    fn observe(&mut self, second: i64, observation: &Observation) -> Decision {
        let pods: Vec<ActivePod<'_>> = self
            .pods
            .iter()
            .map(|(candidate, usage)| ActivePod {
                candidate,
                usage: usage.as_ref(),
            })
            .collect();
        let input = Input::Observed {
            observation,
            pods: &pods,
        };
        self.engine.step(Timestamp::from_secs(second), input)
    }

    /// What came of killing a pod.
    fn outcome(&mut self, second: i64, name: &str, outcome: KillOutcome) -> Decision {
        let mut pods = self.pods.iter();
        let found = pods.find(|(pod, _)| pod.pod_ref.name == name);
        let uid = &found.unwrap().0.uid.clone();
        let input = Input::Outcome { uid, outcome };
        self.engine.step(Timestamp::from_secs(second), input)
    }

    /// A pass at that second with that much memory left, measured just then.
    fn memory_left(&mut self, second: i64, mib: i64) -> Decision {
        let time = Timestamp::from_secs(second);
        self.observe(second, &memory_observation(mib * MIB, CAPACITY, time))
    }

    /// The same; victims are gone at once. Returns which pod was evicted, with which grace.
    fn pass(&mut self, second: i64, mib: i64) -> Option<(String, i64)> {
        let decision = self.memory_left(second, mib);
        let evicted: Vec<&Eviction> = decision.evictions().collect();
        self.pods
            .retain(|(pod, _)| evicted.iter().all(|eviction| eviction.uid != pod.uid));
        assert!(evicted.len() <= 1, "one pod per pass");
        let only = evicted.first()?;
        Some((only.pod_ref.name.clone(), only.grace_period_seconds))
    }
}

/// Names of the evicted.
fn evicted(decision: &Decision) -> Vec<&str> {
    decision
        .evictions()
        .map(|eviction| eviction.pod_ref.name.as_str())
        .collect()
}
