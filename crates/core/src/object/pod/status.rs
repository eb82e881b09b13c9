//! The status that a node writes for a pod it ends.

use k8s_openapi::api::core::v1::{PodCondition, PodStatus};

use crate::object::timestamp::Timestamp;

/// The condition that marks a pod as ended from outside, for controllers.
pub const DISRUPTION_TARGET: &str = "DisruptionTarget";
/// Its reason where the node ends the pod.
pub const TERMINATION_BY_KUBELET: &str = "TerminationByKubelet";

/// Why a pod has failed.
#[derive(Clone, Copy, Debug)]
pub struct Failure<'a> {
    /// Goes to `status.reason`.
    pub reason: &'a str,
    /// Goes to `status.message`.
    pub message: &'a str,
    /// Whether the pod is ended for the sake of others; it then gets the condition
    /// `DisruptionTarget` with the same message.
    pub is_disruption: bool,
    /// The generation of the pod that the decision is about; zero for unknown.
    pub generation: i64,
}

impl Failure<'_> {
    /// Writes it into the status.
    pub fn apply(&self, status: &mut PodStatus, now: Timestamp) {
        status.phase = Some("Failed".to_owned());
        status.reason = Some(self.reason.to_owned());
        status.message = Some(self.message.to_owned());
        if self.is_disruption {
            let condition = PodCondition {
                type_: DISRUPTION_TARGET.to_owned(),
                status: "True".to_owned(),
                reason: Some(TERMINATION_BY_KUBELET.to_owned()),
                message: Some(self.message.to_owned()),
                observed_generation: (self.generation != 0).then_some(self.generation),
                ..PodCondition::default()
            };
            set_condition(status, condition, now);
        }
    }
}

/// Puts the condition in the place of the one of its type, or last. Its transition time is `now`
/// unless its status stays the same. Matches v1.36 pkg/api/v1/pod/util.go, `UpdatePodCondition`.
pub fn set_condition(status: &mut PodStatus, mut condition: PodCondition, now: Timestamp) {
    condition.last_transition_time = Some(now.to_api());
    let conditions = status.conditions.get_or_insert_default();
    let same_type = conditions.iter_mut().find(|c| c.type_ == condition.type_);
    match same_type {
        Some(existing) => {
            if existing.status == condition.status {
                condition.last_transition_time = existing.last_transition_time.take();
            }
            *existing = condition;
        }
        None => conditions.push(condition),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(status: &str) -> PodCondition {
        PodCondition {
            type_: DISRUPTION_TARGET.to_owned(),
            status: status.to_owned(),
            ..PodCondition::default()
        }
    }

    #[test]
    fn the_transition_time_changes_with_the_status_only() {
        let mut status = PodStatus::default();
        let (first, second) = (Timestamp::from_secs(1), Timestamp::from_secs(2));
        set_condition(&mut status, condition("True"), first);
        set_condition(&mut status, condition("True"), second);
        let time_of = |status: &PodStatus| {
            let conditions = status.conditions.as_deref().unwrap_or_default();
            assert_eq!(conditions.len(), 1);
            conditions[0].last_transition_time.clone()
        };
        assert_eq!(time_of(&status), Some(first.to_api()));
        set_condition(&mut status, condition("False"), second);
        assert_eq!(time_of(&status), Some(second.to_api()));
    }

    #[test]
    fn a_disruption_carries_the_message_and_the_generation() {
        let failure = Failure {
            reason: "Evicted",
            message: "low",
            is_disruption: true,
            generation: 7,
        };
        let mut status = PodStatus::default();
        failure.apply(&mut status, Timestamp::default());
        assert_eq!(status.phase.as_deref(), Some("Failed"));
        let condition = &status.conditions.unwrap()[0];
        assert_eq!(condition.message.as_deref(), Some("low"));
        assert_eq!(condition.observed_generation, Some(7));
    }
}
