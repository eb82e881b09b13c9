//! The conditions of a deployment.

use k8s_openapi::api::apps::v1::{DeploymentCondition, DeploymentStatus};
use plimsoll_core::object::timestamp::Timestamp;

pub(super) const AVAILABLE: &str = "Available";
pub(super) const PROGRESSING: &str = "Progressing";
pub(super) const REPLICA_FAILURE: &str = "ReplicaFailure";

/// Reasons of `Progressing`.
pub(super) const REPLICA_SET_UPDATED: &str = "ReplicaSetUpdated";
pub(super) const REPLICA_SET_CREATE_ERROR: &str = "ReplicaSetCreateError";
pub(super) const NEW_REPLICA_SET_CREATED: &str = "NewReplicaSetCreated";
pub(super) const FOUND_NEW_REPLICA_SET: &str = "FoundNewReplicaSet";
pub(super) const NEW_REPLICA_SET_AVAILABLE: &str = "NewReplicaSetAvailable";
pub(super) const PROGRESS_DEADLINE_EXCEEDED: &str = "ProgressDeadlineExceeded";
pub(super) const DEPLOYMENT_PAUSED: &str = "DeploymentPaused";
pub(super) const DEPLOYMENT_RESUMED: &str = "DeploymentResumed";

/// A condition that begins now.
pub(super) fn new(
    type_: &str,
    status: &str,
    reason: &str,
    message: impl Into<String>,
    now: Timestamp,
) -> DeploymentCondition {
    DeploymentCondition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.into()),
        last_transition_time: Some(now.to_api_seconds()),
        last_update_time: Some(now.to_api_seconds()),
    }
}

/// The condition of that type.
pub(super) fn get<'a>(
    status: &'a DeploymentStatus,
    type_: &str,
) -> Option<&'a DeploymentCondition> {
    let conditions = status.conditions.as_deref().unwrap_or_default();
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Whether the condition of that type has that reason.
pub(super) fn has_reason(status: &DeploymentStatus, type_: &str, reason: &str) -> bool {
    get(status, type_).is_some_and(|condition| condition.reason.as_deref() == Some(reason))
}

/// Puts the condition last, unless one of its type, status and reason is there already. The
/// transition time stays where the status does.
pub(super) fn set(status: &mut DeploymentStatus, mut condition: DeploymentCondition) {
    if let Some(current) = get(status, &condition.type_)
        && current.status == condition.status
    {
        if current.reason == condition.reason {
            return;
        }
        condition.last_transition_time = current.last_transition_time.clone();
    }
    remove(status, &condition.type_);
    status.conditions.get_or_insert_default().push(condition);
}

/// Removes the condition of that type.
pub(super) fn remove(status: &mut DeploymentStatus, type_: &str) {
    if let Some(conditions) = &mut status.conditions {
        conditions.retain(|condition| condition.type_ != type_);
    }
}
