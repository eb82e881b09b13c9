//! The status of a budget.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::{
    PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use plimsoll_core::object::timestamp::Timestamp;

use crate::workloads::fraction::{FractionError, Rounding, scaled};
use crate::workloads::pod_state::{self, after, until};

/// How long an eviction that was allowed may take to show as a deletion. After that it is taken
/// not to have happened.
const DELETION_TIMEOUT_SECONDS: i64 = 120;
const DISRUPTION_ALLOWED: &str = "DisruptionAllowed";

/// The input of the status.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// The budget.
    pub budget: &'a PodDisruptionBudget,
    /// The pods it selects.
    pub pods: &'a [&'a Pod],
    /// How many pods there should be by the specs of their controllers; used only where
    /// [`Budget::needs_scale`] says so.
    pub expected_scale: i32,
    /// The time.
    pub now: Timestamp,
}

/// The result of a pass.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The status to be written; `None` if it is written already.
    pub status: Option<PodDisruptionBudgetStatus>,
    /// Names of pods that were to be deleted and were not.
    pub not_deleted: Vec<String>,
    /// When the next eviction is to be given up.
    pub again_after: Option<Duration>,
}

/// The requirement of a budget.
#[derive(Clone, Copy, Debug)]
pub struct Budget<'a>(&'a PodDisruptionBudgetSpec);

impl<'a> Budget<'a> {
    /// The demand of a spec.
    pub fn new(spec: &'a PodDisruptionBudgetSpec) -> Budget<'a> {
        Budget(spec)
    }

    /// Whether the number of pods that there should be matters. A plain least number of available
    /// pods needs to know only the pods there are.
    pub fn needs_scale(self) -> bool {
        self.0.max_unavailable.is_some()
            || matches!(self.0.min_available, Some(IntOrString::String(_)))
    }

    /// How many pods there should be, and how many of them healthy.
    fn demand(self, pod_count: usize, scale: i32) -> Result<(i32, i32), FractionError> {
        if let Some(most) = &self.0.max_unavailable {
            let unavailable = scaled(most, scale, Rounding::Up)?;
            return Ok((scale, scale.saturating_sub(unavailable).max(0)));
        }
        match &self.0.min_available {
            Some(IntOrString::Int(least)) => {
                Ok((i32::try_from(pod_count).unwrap_or(i32::MAX), *least))
            }
            Some(least) => Ok((scale, scaled(least, scale, Rounding::Up)?)),
            None => Ok((0, 0)),
        }
    }
}

/// Computes the status.
pub fn compute(input: Input<'_>) -> Result<Outcome, FractionError> {
    let spec = input.budget.spec.clone().unwrap_or_default();
    let (expected, desired) = Budget(&spec).demand(input.pods.len(), input.expected_scale)?;
    let disrupted = disrupted_pods(input);
    let healthy = input.pods.iter().filter(|pod| {
        let is_leaving = pod.metadata.deletion_timestamp.is_some();
        !is_leaving
            && !disrupted.kept.contains_key(pod_state::name(pod))
            && pod_state::is_ready(pod)
    });
    let healthy = i32::try_from(healthy.count()).unwrap_or(i32::MAX);
    // Without pods nothing is allowed: the first pods may appear before this runs again.
    let allowed = match expected > 0 {
        true => healthy.saturating_sub(desired).max(0),
        false => 0,
    };
    let generation = input.budget.metadata.generation;
    let found = input.budget.status.clone().unwrap_or_default();
    let mut status = PodDisruptionBudgetStatus {
        current_healthy: Some(healthy),
        desired_healthy: Some(desired),
        expected_pods: Some(expected),
        disruptions_allowed: Some(allowed),
        disrupted_pods: (!disrupted.kept.is_empty()).then_some(disrupted.kept),
        observed_generation: generation,
        conditions: found.conditions.clone(),
    };
    let (is, reason) = match allowed > 0 {
        true => ("True", "SufficientPods"),
        false => ("False", "InsufficientPods"),
    };
    let is_current = is_same(&found, &status) && has_condition(&found, is, reason);
    set_condition(&mut status, is, reason, "", input.now);
    Ok(Outcome {
        status: (!is_current).then_some(status),
        not_deleted: disrupted.given_up,
        again_after: disrupted.next.map(|time| until(input.now, time)),
    })
}

/// The status that forbids everything, for when nothing can be computed.
pub fn fail_safe(
    budget: &PodDisruptionBudget,
    error: &str,
    now: Timestamp,
) -> PodDisruptionBudgetStatus {
    let mut status = budget.status.clone().unwrap_or_default();
    status.disruptions_allowed = Some(0);
    set_condition(&mut status, "False", "SyncFailed", error, now);
    status
}

#[derive(Default)]
struct Disrupted {
    kept: BTreeMap<String, Time>,
    given_up: Vec<String>,
    next: Option<Timestamp>,
}

/// Pods whose eviction was allowed and does not show yet.
fn disrupted_pods(input: Input<'_>) -> Disrupted {
    let status = input.budget.status.as_ref();
    let noted = status.and_then(|status| status.disrupted_pods.as_ref());
    let mut disrupted = Disrupted::default();
    for pod in input
        .pods
        .iter()
        .filter(|pod| pod.metadata.deletion_timestamp.is_none())
    {
        let name = pod_state::name(pod);
        let Some(time) = noted.and_then(|noted| noted.get(name)) else {
            continue;
        };
        let end = after(Timestamp::from_api(time), DELETION_TIMEOUT_SECONDS);
        if end < input.now {
            disrupted.given_up.push(name.to_owned());
        } else {
            disrupted.kept.insert(name.to_owned(), time.clone());
            disrupted.next = Some(disrupted.next.map_or(end, |next| next.min(end)));
        }
    }
    disrupted
}

fn is_same(a: &PodDisruptionBudgetStatus, b: &PodDisruptionBudgetStatus) -> bool {
    let number = Option::unwrap_or_default;
    let pods =
        |status: &PodDisruptionBudgetStatus| status.disrupted_pods.clone().unwrap_or_default();
    number(a.current_healthy) == number(b.current_healthy)
        && number(a.desired_healthy) == number(b.desired_healthy)
        && number(a.expected_pods) == number(b.expected_pods)
        && number(a.disruptions_allowed) == number(b.disruptions_allowed)
        && a.observed_generation.unwrap_or(0) == b.observed_generation.unwrap_or(0)
        && pods(a) == pods(b)
}

fn has_condition(status: &PodDisruptionBudgetStatus, is: &str, reason: &str) -> bool {
    let mut conditions = status.conditions.iter().flatten();
    conditions.any(|c| c.type_ == DISRUPTION_ALLOWED && c.status == is && c.reason == reason)
}

/// Matches v1.36 apimachinery/pkg/api/meta/conditions.go, `SetStatusCondition`.
fn set_condition(
    status: &mut PodDisruptionBudgetStatus,
    is: &str,
    reason: &str,
    message: &str,
    now: Timestamp,
) {
    let observed_generation = status.observed_generation;
    let conditions = status.conditions.get_or_insert_default();
    let mut condition = Condition {
        type_: DISRUPTION_ALLOWED.to_owned(),
        status: is.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        observed_generation,
        last_transition_time: now.to_api_seconds(),
    };
    match conditions
        .iter_mut()
        .find(|known| known.type_ == DISRUPTION_ALLOWED)
    {
        Some(known) => {
            if known.status == is {
                condition.last_transition_time = known.last_transition_time.clone();
            }
            *known = condition;
        }
        None => conditions.push(condition),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn budget(spec: Value, status: Value) -> PodDisruptionBudget {
        serde_json::from_value(json!({
            "metadata": {"name": "b", "namespace": "n", "generation": 3}, "spec": spec, "status": status,
        }))
        .unwrap()
    }

    fn pods(ready: usize, unready: usize) -> Vec<Pod> {
        let pod = |index: usize, is: &str| {
            serde_json::from_value(json!({
                "metadata": {"name": format!("p{index}")},
                "status": {"conditions": [{"type": "Ready", "status": is}]},
            }))
            .unwrap()
        };
        (0..ready)
            .map(|i| pod(i, "True"))
            .chain((ready..ready + unready).map(|i| pod(i, "False")))
            .collect()
    }

    fn outcome(budget: &PodDisruptionBudget, pods: &[Pod], scale: i32) -> Outcome {
        let pods: Vec<&Pod> = pods.iter().collect();
        compute(Input {
            budget,
            pods: &pods,
            expected_scale: scale,
            now: Timestamp::from_rfc3339("2026-01-01T00:05:00Z").unwrap(),
        })
        .unwrap()
    }

    #[test]
    fn budgets_are_counted_from_pods_or_from_scale() {
        let cases = [
            // spec, ready, unready, scale, expected, desired, allowed
            (json!({"minAvailable": 2}), 3, 1, 0, 4, 2, 1),
            (json!({"minAvailable": 2}), 1, 0, 0, 1, 2, 0),
            (json!({"minAvailable": 0}), 0, 0, 0, 0, 0, 0),
            (json!({"minAvailable": "50%"}), 3, 0, 5, 5, 3, 0),
            (json!({"minAvailable": "50%"}), 5, 0, 5, 5, 3, 2),
            (json!({"maxUnavailable": 1}), 4, 0, 5, 5, 4, 0),
            (json!({"maxUnavailable": "30%"}), 5, 0, 5, 5, 3, 2),
            (json!({"maxUnavailable": 9}), 2, 0, 5, 5, 0, 2),
            (json!({}), 3, 0, 5, 0, 0, 0),
        ];
        for (spec, ready, unready, scale, expected, desired, allowed) in cases {
            let budget = budget(spec.clone(), json!({}));
            let status = outcome(&budget, &pods(ready, unready), scale)
                .status
                .unwrap();
            let found = (
                status.expected_pods,
                status.desired_healthy,
                status.disruptions_allowed,
            );
            assert_eq!(
                found,
                (Some(expected), Some(desired), Some(allowed)),
                "{spec}"
            );
            assert_eq!(status.current_healthy, Some(i32::try_from(ready).unwrap()));
            let condition = &status.conditions.unwrap()[0];
            let (is, reason) = if allowed > 0 {
                ("True", "SufficientPods")
            } else {
                ("False", "InsufficientPods")
            };
            assert_eq!(
                (condition.status.as_str(), condition.reason.as_str()),
                (is, reason)
            );
            assert_eq!(condition.observed_generation, Some(3));
        }
    }

    #[test]
    fn unchanged_status_is_not_written() {
        let mut budget = budget(json!({"minAvailable": 1}), json!({}));
        budget.status = outcome(&budget, &pods(2, 0), 0).status;
        assert_eq!(outcome(&budget, &pods(2, 0), 0).status, None);
        assert!(outcome(&budget, &pods(1, 1), 0).status.is_some());
    }

    #[test]
    fn evictions_count_until_observed_or_for_two_minutes() {
        let noted = json!({"disruptedPods": {
            "p0": "2026-01-01T00:04:00Z", "p1": "2026-01-01T00:02:00Z", "gone": "2026-01-01T00:04:00Z",
        }});
        let outcome = outcome(&budget(json!({"minAvailable": 1}), noted), &pods(3, 0), 0);
        let status = outcome.status.unwrap();
        assert_eq!(status.current_healthy, Some(2));
        let kept: Vec<String> = status.disrupted_pods.unwrap().into_keys().collect();
        assert_eq!(kept, ["p0"]);
        assert_eq!(outcome.not_deleted, ["p1"]);
        assert_eq!(outcome.again_after, Some(Duration::from_secs(60)));
    }

    #[test]
    fn no_disruption_is_allowed_if_the_controller_is_unknown() {
        let budget = budget(
            json!({"maxUnavailable": 1}),
            json!({"disruptionsAllowed": 4, "observedGeneration": 2}),
        );
        let status = fail_safe(
            &budget,
            "found no controllers for pod \"p\"",
            Timestamp::default(),
        );
        assert_eq!(status.disruptions_allowed, Some(0));
        let condition = &status.conditions.unwrap()[0];
        assert_eq!(condition.reason, "SyncFailed");
        assert_eq!(condition.message, "found no controllers for pod \"p\"");
        assert_eq!(condition.observed_generation, Some(2));
    }

    proptest! {
        /// After as many evictions as are allowed, as many healthy pods are left as desired.
        #[test]
        fn allowed_disruptions_leave_enough(
            ready in 0_usize..20,
            unready in 0_usize..20,
            scale in 0_i32..40,
            number in 0_i32..120,
            kind in 0_u8..4,
        ) {
            let spec = match kind {
                0 => json!({"minAvailable": number}),
                1 => json!({"minAvailable": format!("{}%", number.min(100))}),
                2 => json!({"maxUnavailable": number}),
                _ => json!({"maxUnavailable": format!("{}%", number.min(100))}),
            };
            let status = outcome(&budget(spec, json!({})), &pods(ready, unready), scale).status.unwrap();
            let number = |value: Option<i32>| value.unwrap();
            let (healthy, desired, allowed) =
                (number(status.current_healthy), number(status.desired_healthy), number(status.disruptions_allowed));
            prop_assert!(allowed >= 0 && desired >= 0);
            prop_assert!(allowed == 0 || healthy - allowed >= desired);
            prop_assert!(allowed == 0 || number(status.expected_pods) > 0);
        }
    }
}
