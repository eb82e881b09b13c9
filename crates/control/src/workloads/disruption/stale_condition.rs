//! Clears the `DisruptionTarget` condition of pods that were not deleted after all.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, PodCondition};
use plimsoll_core::object::pod::status::{DISRUPTION_TARGET, TERMINATION_BY_KUBELET};
use plimsoll_core::object::timestamp::Timestamp;

use crate::workloads::pod_state::{self, after, until};

const TIMEOUT_SECONDS: i64 = 120;

/// How long until the pod's `DisruptionTarget` is stale; `None` if it cannot become so. A pod that
/// its node ends may take any time, and one that has ended keeps the reason.
pub(super) fn until_stale(pod: &Pod, now: Timestamp) -> Option<Duration> {
    if pod.metadata.deletion_timestamp.is_some() || pod_state::is_terminal(pod) {
        return None;
    }
    let condition = pod_state::condition(pod, DISRUPTION_TARGET)?;
    let is_pending =
        condition.status == "True" && condition.reason.as_deref() != Some(TERMINATION_BY_KUBELET);
    let since = condition
        .last_transition_time
        .as_ref()
        .map(Timestamp::from_api);
    let end = after(since.unwrap_or_default(), TIMEOUT_SECONDS);
    is_pending.then(|| until(now, end))
}

/// The condition that takes it back.
pub(super) fn cleared_condition(pod: &Pod, now: Timestamp) -> PodCondition {
    PodCondition {
        type_: DISRUPTION_TARGET.to_owned(),
        status: "False".to_owned(),
        last_transition_time: Some(now.to_api_seconds()),
        observed_generation: pod.metadata.generation,
        ..PodCondition::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn disruption_target_condition_is_stale_after_two_minutes() {
        let pod = |phase: &str, status: &str, reason: &str| -> Pod {
            let condition = json!({
                "type": "DisruptionTarget", "status": status, "reason": reason,
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            });
            serde_json::from_value(json!({"status": {"phase": phase, "conditions": [condition]}}))
                .unwrap()
        };
        let now = Timestamp::from_rfc3339("2026-01-01T00:01:30Z").unwrap();
        let stale = |phase, status, reason| until_stale(&pod(phase, status, reason), now);
        assert_eq!(
            stale("Running", "True", "EvictionByEvictionAPI"),
            Some(Duration::from_secs(30))
        );
        assert_eq!(stale("Running", "True", TERMINATION_BY_KUBELET), None);
        assert_eq!(stale("Running", "False", "EvictionByEvictionAPI"), None);
        assert_eq!(stale("Failed", "True", "EvictionByEvictionAPI"), None);
    }
}
