//! How long containers are given to end.
//!
//! Matches v1.36 pkg/kubelet/pod_workers.go, `calculateEffectiveGracePeriod`, and
//! kuberuntime_container.go, `setTerminationGracePeriod`.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, Pod};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::pod_fields;
use crate::pods::plan::KillReason;

/// What the API gives pods that do not say.
const DEFAULT_SECS: i64 = 30;
/// The least a pod is given.
const MIN_POD_SECS: i64 = 1;
/// The shortest grace period for the runtime, so that no container dies needlessly by force.
pub(crate) const MIN_STOP: Duration = Duration::from_secs(2);

/// What the pod says itself.
pub(crate) fn of_pod(pod: &Pod) -> i64 {
    let own = pod_fields::spec(pod).and_then(|spec| spec.termination_grace_period_seconds);
    own.unwrap_or(DEFAULT_SECS)
}

/// The grace period of a pod that ends, in seconds: it can only become shorter, never longer.
///
/// `current` is what it was given before, if it is ending already; `wanted` is what a component of
/// the node requests.
pub(crate) fn shorten(current: Option<i64>, pod: &Pod, wanted: Option<i64>) -> i64 {
    let of_api = pod.metadata.deletion_grace_period_seconds;
    let candidates = [current, of_api, wanted];
    let shortest = candidates.into_iter().flatten().min();
    shortest.unwrap_or_else(|| of_pod(pod)).max(MIN_POD_SECS)
}

/// The grace period of one container that is stopped while its pod keeps running.
pub(super) fn of_container(pod: &Pod, container: &Container, reason: KillReason) -> i64 {
    if let Some(secs) = pod.metadata.deletion_grace_period_seconds {
        return secs;
    }
    let probe = match reason {
        KillReason::StartupProbe => container.startup_probe.as_ref(),
        KillReason::LivenessProbe => container.liveness_probe.as_ref(),
        KillReason::Other => None,
    };
    let of_probe = probe.and_then(|probe| probe.termination_grace_period_seconds);
    of_probe.unwrap_or_else(|| of_pod(pod))
}

/// When patience ends. It may come nearer while one waits for it.
#[derive(Clone, Debug)]
pub(super) struct Deadline(watch::Receiver<Instant>);

impl Deadline {
    /// A deadline, and the means to bring it nearer.
    pub(super) fn at(time: Instant) -> (watch::Sender<Instant>, Deadline) {
        let (sender, receiver) = watch::channel(time);
        (sender, Deadline(receiver))
    }

    /// How long it is until then.
    pub(super) fn remaining(&self) -> Duration {
        self.0.borrow().saturating_duration_since(Instant::now())
    }

    /// Waits until then.
    pub(super) async fn passed(&mut self) {
        loop {
            let until = *self.0.borrow_and_update();
            tokio::select! {
                () = sleep_until(until) => return,
                () = nearer(&mut self.0) => {}
            }
        }
    }

    /// Waits until it comes nearer, which it may never do.
    pub(super) async fn brought_nearer(&mut self) {
        nearer(&mut self.0).await;
    }
}

/// A sender that is gone will bring nothing nearer.
async fn nearer(receiver: &mut watch::Receiver<Instant>) {
    if receiver.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Seconds that may be negative, which is none.
pub(super) fn seconds(secs: i64) -> Duration {
    Duration::from_secs(u64::try_from(secs).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(spec_secs: Option<i64>, deletion_secs: Option<i64>) -> Pod {
        serde_json::from_value(json!({
            "metadata": {"deletionGracePeriodSeconds": deletion_secs},
            "spec": {"containers": [], "terminationGracePeriodSeconds": spec_secs},
        }))
        .unwrap()
    }

    #[test]
    fn shortest_grace_period_counts_and_is_at_least_one_second() {
        for (current, spec, deletion, wanted, expected) in [
            (None, None, None, None, 30),
            (None, Some(60), None, None, 60),
            (None, Some(60), Some(10), None, 10),
            (None, Some(60), Some(10), Some(1), 1),
            (None, Some(60), None, Some(0), 1),
            (None, Some(0), None, None, 1),
            (Some(10), Some(60), Some(20), None, 10),
            (Some(10), Some(60), Some(5), Some(20), 5),
            (Some(5), Some(60), None, None, 5),
        ] {
            let pod = pod(spec, deletion);
            assert_eq!(shorten(current, &pod, wanted), expected);
        }
    }

    #[test]
    fn probe_grace_period_overrides_the_pods() {
        let container: Container = serde_json::from_value(json!({
            "name": "a",
            "livenessProbe": {"terminationGracePeriodSeconds": 3},
            "startupProbe": {},
        }))
        .unwrap();
        for (reason, deletion, expected) in [
            (KillReason::LivenessProbe, None, 3),
            (KillReason::StartupProbe, None, 60),
            (KillReason::Other, None, 60),
            (KillReason::LivenessProbe, Some(7), 7),
        ] {
            let pod = pod(Some(60), deletion);
            assert_eq!(of_container(&pod, &container, reason), expected);
        }
    }
}
