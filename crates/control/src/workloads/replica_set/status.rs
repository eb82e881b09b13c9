//! The status of a ReplicaSet.

use k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetCondition, ReplicaSetStatus};
use k8s_openapi::api::core::v1::Pod;
use plimsoll_core::object::selector::LabelSelector;
use plimsoll_core::object::timestamp::Timestamp;

use crate::workloads::pod_state;

const REPLICA_FAILURE: &str = "ReplicaFailure";

/// The input of the status.
#[derive(Clone, Copy, Debug)]
pub struct StatusInput<'a> {
    /// The set.
    pub set: &'a ReplicaSet,
    /// Its pods that run or will.
    pub active: &'a [&'a Pod],
    /// The number of its pods that are being deleted; `None` where the kind does not report it.
    pub terminating: Option<usize>,
    /// Why pods could not be made or deleted.
    pub failure: Option<&'a str>,
    /// The time.
    pub now: Timestamp,
}

/// The status the set should have.
pub fn compute_status(input: StatusInput<'_>) -> ReplicaSetStatus {
    let set = input.set;
    let spec = set.spec.as_ref();
    let template = spec.and_then(|spec| spec.template.as_ref());
    let labels = template.and_then(|t| t.metadata.as_ref()?.labels.as_ref());
    let full = labels.map_or(LabelSelector::everything(), LabelSelector::from_set);
    let min_ready = spec.and_then(|spec| spec.min_ready_seconds).unwrap_or(0);
    let count = |is_counted: &dyn Fn(&Pod) -> bool| {
        as_count(input.active.iter().filter(|pod| is_counted(pod)).count())
    };
    let is_fully_labeled = |pod: &Pod| match &pod.metadata.labels {
        Some(labels) => full.matches(labels),
        None => full.is_empty(),
    };
    ReplicaSetStatus {
        replicas: as_count(input.active.len()),
        fully_labeled_replicas: Some(count(&is_fully_labeled)),
        ready_replicas: Some(count(&pod_state::is_ready)),
        available_replicas: Some(count(&|pod| {
            pod_state::is_available(pod, min_ready, input.now)
        })),
        terminating_replicas: input.terminating.map(as_count),
        conditions: conditions(input),
        observed_generation: set.metadata.generation,
    }
}

/// A failure is recorded when it appears and keeps its first message until it is over.
fn conditions(input: StatusInput<'_>) -> Option<Vec<ReplicaSetCondition>> {
    let status = input.set.status.as_ref();
    let mut conditions = status
        .and_then(|s| s.conditions.clone())
        .unwrap_or_default();
    let is_noted = conditions.iter().any(|c| c.type_ == REPLICA_FAILURE);
    match input.failure {
        Some(failure) if !is_noted => {
            let wanted = input.set.spec.as_ref().and_then(|spec| spec.replicas);
            let reason = match as_count(input.active.len()).cmp(&wanted.unwrap_or(1)) {
                std::cmp::Ordering::Less => Some("FailedCreate".to_owned()),
                std::cmp::Ordering::Equal => None,
                std::cmp::Ordering::Greater => Some("FailedDelete".to_owned()),
            };
            conditions.push(ReplicaSetCondition {
                type_: REPLICA_FAILURE.to_owned(),
                status: "True".to_owned(),
                last_transition_time: Some(input.now.to_api_seconds()),
                reason,
                message: Some(failure.to_owned()),
            });
        }
        None => conditions.retain(|c| c.type_ != REPLICA_FAILURE),
        Some(_) => {}
    }
    (!conditions.is_empty()).then_some(conditions)
}

/// Whether the stored status contains everything in the computed one, so that no write is needed.
/// Absent numbers are zero.
pub fn is_status_current(stored: Option<&ReplicaSetStatus>, computed: &ReplicaSetStatus) -> bool {
    let number = Option::unwrap_or_default;
    let empty = ReplicaSetStatus::default();
    let stored = stored.unwrap_or(&empty);
    let list = |status: &ReplicaSetStatus| status.conditions.clone().unwrap_or_default();
    stored.replicas == computed.replicas
        && number(stored.fully_labeled_replicas) == number(computed.fully_labeled_replicas)
        && number(stored.ready_replicas) == number(computed.ready_replicas)
        && number(stored.available_replicas) == number(computed.available_replicas)
        && stored.terminating_replicas == computed.terminating_replicas
        && stored.observed_generation.unwrap_or(0) == computed.observed_generation.unwrap_or(0)
        && list(stored) == list(computed)
}

fn as_count(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn set(status: Value) -> ReplicaSet {
        serde_json::from_value(json!({
            "metadata": {"generation": 4},
            "spec": {"replicas": 2, "minReadySeconds": 10, "selector": {}, "template": {"metadata": {"labels": {"a": "1", "b": "2"}}}},
            "status": status,
        }))
        .unwrap()
    }

    fn pod(labels: Value, ready_since: Option<&str>) -> Pod {
        let conditions = match ready_since {
            Some(since) => {
                json!([{"type": "Ready", "status": "True", "lastTransitionTime": since}])
            }
            None => json!([]),
        };
        serde_json::from_value(
            json!({"metadata": {"labels": labels}, "status": {"conditions": conditions}}),
        )
        .unwrap()
    }

    fn input<'a>(set: &'a ReplicaSet, active: &'a [&'a Pod]) -> StatusInput<'a> {
        StatusInput {
            set,
            active,
            terminating: Some(1),
            failure: None,
            now: Timestamp::from_rfc3339("2026-01-01T00:00:10Z").unwrap(),
        }
    }

    #[test]
    fn pods_are_counted_by_readiness_and_availability() {
        let pods = [
            pod(
                json!({"a": "1", "b": "2", "c": "3"}),
                Some("2026-01-01T00:00:00Z"),
            ),
            pod(json!({"a": "1"}), Some("2026-01-01T00:00:05Z")),
            pod(json!({"a": "1", "b": "2"}), None),
        ];
        let active: Vec<&Pod> = pods.iter().collect();
        let set = set(json!({"replicas": 0}));
        let status = compute_status(input(&set, &active));
        assert_eq!(
            serde_json::to_value(&status).unwrap(),
            json!({
                "replicas": 3, "fullyLabeledReplicas": 2, "readyReplicas": 2,
                "availableReplicas": 1, "terminatingReplicas": 1, "observedGeneration": 4,
            })
        );
        assert!(!is_status_current(set.status.as_ref(), &status));
        assert!(is_status_current(Some(&status.clone()), &status));
    }

    #[test]
    fn failure_condition_is_set_once_and_removed() {
        let first = set(json!({"replicas": 0}));
        let failed = compute_status(StatusInput {
            failure: Some("quota"),
            ..input(&first, &[])
        });
        let condition = &failed.conditions.as_ref().unwrap()[0];
        assert_eq!(condition.reason.as_deref(), Some("FailedCreate"));
        assert_eq!(condition.message.as_deref(), Some("quota"));

        let second = ReplicaSet {
            status: Some(failed.clone()),
            ..first
        };
        let again = compute_status(StatusInput {
            failure: Some("another"),
            ..input(&second, &[])
        });
        assert_eq!(again.conditions, failed.conditions);
        assert_eq!(compute_status(input(&second, &[])).conditions, None);
    }

    #[test]
    fn surplus_pods_that_cannot_be_deleted_are_failed_delete() {
        let pods: Vec<Pod> = (0..3).map(|_| pod(json!({}), None)).collect();
        let active: Vec<&Pod> = pods.iter().collect();
        let set = set(json!({"replicas": 3}));
        let status = compute_status(StatusInput {
            failure: Some("no"),
            ..input(&set, &active)
        });
        assert_eq!(
            status.conditions.unwrap()[0].reason.as_deref(),
            Some("FailedDelete")
        );
    }
}
