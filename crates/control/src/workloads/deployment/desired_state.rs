//! The desired state in the spec of a deployment, with percentages resolved.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::workloads::fraction::{FractionError, Rounding, scaled};

/// How old pods give way to new ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strategy {
    /// A few at a time.
    RollingUpdate,
    /// All old ones first.
    Recreate,
}

/// The spec in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DesiredState {
    /// How many pods.
    pub(super) replicas: i32,
    /// The way of change.
    pub(super) strategy: Strategy,
    /// How many pods there may be beyond `replicas`; zero unless rolling.
    pub(super) max_surge: i32,
    /// How many of `replicas` may be missing; zero unless rolling.
    pub(super) max_unavailable: i32,
    /// How long an available pod must have been ready.
    pub(super) min_ready_seconds: Option<i32>,
    /// How long without progress is too long; `None` without a deadline.
    pub(super) progress_deadline_seconds: Option<i32>,
    /// How many old sets are kept; `None` for all.
    pub(super) revision_history_limit: Option<i32>,
    /// Whether nothing but the size may change.
    pub(super) is_paused: bool,
}

impl DesiredState {
    /// Reads the spec. Numbers that the server would refuse count as zero.
    pub(super) fn from_deployment(deployment: &Deployment) -> DesiredState {
        let spec = deployment.spec.clone().unwrap_or_default();
        let replicas = spec.replicas.unwrap_or(1);
        let strategy = spec.strategy.unwrap_or_default();
        let rolling = strategy.rolling_update.unwrap_or_default();
        let is_limit = |limit: &i32| *limit != i32::MAX;
        let mut wanted = DesiredState {
            replicas,
            strategy: Strategy::RollingUpdate,
            max_surge: 0,
            max_unavailable: 0,
            min_ready_seconds: spec.min_ready_seconds,
            progress_deadline_seconds: spec.progress_deadline_seconds.filter(is_limit),
            revision_history_limit: spec.revision_history_limit.filter(is_limit),
            is_paused: spec.paused.unwrap_or(false),
        };
        if strategy.type_.as_deref() == Some("Recreate") {
            wanted.strategy = Strategy::Recreate;
            return wanted;
        }
        let fenceposts = resolve_fenceposts(
            rolling.max_surge.as_ref(),
            rolling.max_unavailable.as_ref(),
            replicas,
        );
        if let Ok((surge, unavailable)) = fenceposts {
            wanted.max_surge = surge;
            wanted.max_unavailable = if replicas == 0 {
                0
            } else {
                unavailable.min(replicas)
            };
        }
        wanted
    }

    /// The fewest pods that must be available.
    pub(super) fn min_available(&self) -> i32 {
        self.replicas.saturating_sub(self.max_unavailable)
    }

    /// The most pods there may be.
    pub(super) fn max_total(&self) -> i32 {
        self.replicas.saturating_add(self.max_surge)
    }
}

/// Surge is rounded up and absence down. Where both come to nothing, one pod may be missing:
/// something must give, and surge may fail for lack of quota.
fn resolve_fenceposts(
    max_surge: Option<&IntOrString>,
    max_unavailable: Option<&IntOrString>,
    replicas: i32,
) -> Result<(i32, i32), FractionError> {
    let none = IntOrString::Int(0);
    let surge = scaled(max_surge.unwrap_or(&none), replicas, Rounding::Up)?;
    let unavailable = scaled(max_unavailable.unwrap_or(&none), replicas, Rounding::Down)?;
    match (surge, unavailable) {
        (0, 0) => Ok((0, 1)),
        both => Ok(both),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn wanted(replicas: i32, surge: Value, unavailable: Value) -> DesiredState {
        let rolling = json!({"maxSurge": surge, "maxUnavailable": unavailable});
        let strategy = json!({"type": "RollingUpdate", "rollingUpdate": rolling});
        let deployment = json!({"spec": {
            "replicas": replicas, "strategy": strategy, "selector": {}, "template": {},
            "progressDeadlineSeconds": i32::MAX, "revisionHistoryLimit": 3,
        }});
        DesiredState::from_deployment(&serde_json::from_value(deployment).unwrap())
    }

    #[test]
    fn fenceposts_are_resolved_together() {
        let cases = [
            (2, json!("0%"), json!("1%"), (0, 1)),
            (1, json!("0%"), json!("1%"), (0, 1)),
            (2, json!("1%"), json!("25%"), (1, 0)),
            (10, json!("25%"), json!("25%"), (3, 2)),
            (4, json!(1), json!(0), (1, 0)),
            (3, json!(0), json!(10), (0, 3)),
            (0, json!("25%"), json!("25%"), (0, 0)),
            (5, json!("rubbish"), json!(1), (0, 0)),
        ];
        for (replicas, surge, unavailable, expected) in cases {
            let wanted = wanted(replicas, surge.clone(), unavailable.clone());
            let found = (wanted.max_surge, wanted.max_unavailable);
            assert_eq!(found, expected, "{replicas} {surge} {unavailable}");
        }
    }

    #[test]
    fn the_greatest_number_means_no_limit() {
        let wanted = wanted(1, json!(1), json!(0));
        assert_eq!(wanted.progress_deadline_seconds, None);
        assert_eq!(wanted.revision_history_limit, Some(3));
    }
}
