//! A node with 500 pods that may be short of memory.

use plimsoll_core::config::Profile;
use plimsoll_core::eviction::usage::PodUsage;
use plimsoll_core::eviction::{ActivePod, Candidate, Engine};
use plimsoll_core::testing::{eviction_settings, memory_usage, pod};

const PODS: i64 = 500;
const MIB: i64 = 1 << 20;

/// Pods of four priorities and mixed requests, with limits on their disk.
pub(crate) fn pods() -> Vec<(Candidate, PodUsage)> {
    let one = |i: i64| {
        let spread = i * 7919 % PODS;
        let priority = i32::try_from(spread % 4).expect("a remainder of four fits");
        let builder = pod(&format!("pod-{i}"))
            .memory(&format!("{}Mi", 32 + spread % 100))
            .limit("ephemeral-storage", "1Gi")
            .priority(priority)
            .created_at(spread);
        (
            builder.candidate(Profile::Kubernetes136),
            memory_usage((16 + spread % 150) * MIB),
        )
    };
    (0..PODS).map(one).collect()
}

/// The pods as the engine takes them.
pub(crate) fn active(pods: &[(Candidate, PodUsage)]) -> Vec<ActivePod<'_>> {
    let active = pods.iter().map(|(candidate, usage)| ActivePod {
        candidate,
        usage: Some(usage),
    });
    active.collect()
}

/// An engine with the default thresholds.
pub(crate) fn engine() -> Engine {
    let profile = Profile::Kubernetes136;
    Engine::new(eviction_settings(
        profile,
        profile.default_eviction_hard(),
        &[],
    ))
}
