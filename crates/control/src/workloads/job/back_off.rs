//! How long a job waits before it replaces failed pods.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use plimsoll_core::object::timestamp::Timestamp;

use crate::workloads::pod_state::{self, after, until};

const FIRST_WAIT: Duration = Duration::from_secs(10);
const LONGEST_WAIT: Duration = Duration::from_mins(10);

/// The failures of a job since its last success. Kept in memory only; a controller that restarts
/// starts from zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackOff {
    failures: u32,
    last_failure: Option<Timestamp>,
}

impl BackOff {
    /// After more pods ended. A success forgives the failures before it.
    #[must_use]
    pub(super) fn after(self, succeeded: &[&Pod], failed: &[&Pod]) -> BackOff {
        let last_success = succeeded.iter().map(|pod| finish_time(pod)).max();
        let mut times: Vec<Timestamp> = failed.iter().map(|pod| finish_time(pod)).collect();
        let before = match last_success {
            Some(success) => {
                times.retain(|time| *time > success);
                BackOff::default()
            }
            None => self,
        };
        let more = u32::try_from(times.len()).unwrap_or(u32::MAX);
        BackOff {
            failures: before.failures.saturating_add(more),
            last_failure: times.into_iter().max().or(before.last_failure),
        }
    }

    /// How long to wait still.
    pub(super) fn remaining(self, now: Timestamp) -> Duration {
        self.last_failure
            .map_or(Duration::ZERO, |last| remaining(self.failures, last, now))
    }
}

/// `10 s * 2^(failures - 1)`, at most ten minutes, from the last failure.
pub(super) fn remaining(failures: u32, last_failure: Timestamp, now: Timestamp) -> Duration {
    let Some(doublings) = failures.checked_sub(1) else {
        return Duration::ZERO;
    };
    let factor = 2_u32.checked_pow(doublings).unwrap_or(u32::MAX);
    let wait = FIRST_WAIT.saturating_mul(factor).min(LONGEST_WAIT);
    let end = after(
        last_failure,
        i64::try_from(wait.as_secs()).unwrap_or(i64::MAX),
    );
    until(now, end)
}

/// When a pod ended: with its last container; else when it stopped being ready; else at its
/// deletion timestamp; else, for lack of a better time, when it was created.
pub(super) fn finish_time(pod: &Pod) -> Timestamp {
    let of_containers = || -> Option<Timestamp> {
        let regular = pod_state::container_statuses(pod).iter();
        let statuses = regular.chain(pod_state::sidecar_statuses(pod));
        let times: Option<Vec<Timestamp>> = statuses.map(end_of).collect();
        times?.into_iter().max()
    };
    let of_readiness = || -> Option<Timestamp> {
        let ready = pod_state::condition(pod, "Ready").filter(|c| c.status == "False")?;
        ready.last_transition_time.as_ref().map(Timestamp::from_api)
    };
    let of_deletion = || -> Option<Timestamp> {
        let deletion = pod.metadata.deletion_timestamp.as_ref()?;
        let grace = pod.metadata.deletion_grace_period_seconds.unwrap_or(0);
        Some(after(Timestamp::from_api(deletion), grace.saturating_neg()))
    };
    of_containers()
        .or_else(of_readiness)
        .or_else(of_deletion)
        .or_else(|| pod_state::created(pod))
        .unwrap_or_default()
}

fn end_of(status: &ContainerStatus) -> Option<Timestamp> {
    let terminated = status.state.as_ref()?.terminated.as_ref()?;
    terminated.finished_at.as_ref().map(Timestamp::from_api)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn pod(value: Value) -> Pod {
        serde_json::from_value(value).unwrap()
    }

    fn ended(second: i64) -> Pod {
        let time = Timestamp::from_secs(second).to_string();
        let state = json!({"terminated": {"exitCode": 1, "finishedAt": time}});
        let container = json!({"name": "c", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state});
        pod(json!({"status": {"containerStatuses": [container]}}))
    }

    #[test]
    fn waits_double_up_to_ten_minutes() {
        let at = Timestamp::from_secs;
        let seconds = |failures, now| remaining(failures, at(100), at(now)).as_secs();
        assert_eq!(seconds(0, 100), 0);
        assert_eq!(seconds(1, 100), 10);
        assert_eq!(seconds(1, 104), 6);
        assert_eq!(seconds(1, 110), 0);
        assert_eq!(seconds(3, 100), 40);
        assert_eq!(seconds(7, 100), 600);
        assert_eq!(seconds(4_000_000_000, 100), 600);
    }

    #[test]
    fn success_resets_earlier_failures() {
        let (a, b, c) = (ended(10), ended(20), ended(30));
        let failed = BackOff::default().after(&[], &[&b, &a]);
        assert_eq!(
            failed,
            BackOff {
                failures: 2,
                last_failure: Some(Timestamp::from_secs(20))
            }
        );
        assert_eq!(failed.after(&[&c], &[]), BackOff::default());
        assert_eq!(failed.after(&[], &[]), failed);
        let after_success = failed.after(&[&b], &[&a, &c]);
        assert_eq!(
            after_success,
            BackOff {
                failures: 1,
                last_failure: Some(Timestamp::from_secs(30))
            }
        );
    }

    #[test]
    fn finish_time_of_pod_has_fallbacks() {
        let at = |text: &str| Timestamp::from_rfc3339(text).unwrap();
        let not_ready = json!([{"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-01T00:00:05Z"}]);
        let deleted = json!({"deletionTimestamp": "2026-01-01T00:01:00Z", "deletionGracePeriodSeconds": 30, "creationTimestamp": "2025-01-01T00:00:00Z"});
        assert_eq!(
            finish_time(&pod(
                json!({"status": {"conditions": not_ready}, "metadata": deleted})
            )),
            at("2026-01-01T00:00:05Z")
        );
        assert_eq!(
            finish_time(&pod(json!({"metadata": deleted}))),
            at("2026-01-01T00:00:30Z")
        );
        assert_eq!(
            finish_time(&pod(
                json!({"metadata": {"creationTimestamp": "2025-01-01T00:00:00Z"}})
            )),
            at("2025-01-01T00:00:00Z")
        );
    }
}
