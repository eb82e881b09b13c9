//! The status of a deployment.

use std::time::Duration;

use k8s_openapi::api::apps::v1::{DeploymentCondition, DeploymentStatus, ReplicaSetStatus};
use plimsoll_core::object::timestamp::Timestamp;

use crate::workloads::pod_state::{after, until};

use super::condition::{
    self, AVAILABLE, NEW_REPLICA_SET_AVAILABLE, PROGRESS_DEADLINE_EXCEEDED, PROGRESSING,
    REPLICA_FAILURE, REPLICA_SET_UPDATED,
};
use super::rollout::{Progress, Rollout, SetState, replicas};

/// The status at the end of a pass. Sizes are those the sets were found with.
pub(super) fn compute(rollout: &Rollout<'_>, progress: Progress) -> DeploymentStatus {
    let mut status = count(rollout);
    let availability = match number(status.available_replicas) >= rollout.wanted.min_available() {
        true => (
            "True",
            "MinimumReplicasAvailable",
            "Deployment has minimum availability.",
        ),
        false => (
            "False",
            "MinimumReplicasUnavailable",
            "Deployment does not have minimum availability.",
        ),
    };
    let (is_available, reason, message) = availability;
    let available = condition::new(AVAILABLE, is_available, reason, message, rollout.view.now);
    condition::set(&mut status, available);
    if progress == Progress::Estimated {
        estimate_progress(rollout, &mut status);
        match replica_failure(rollout) {
            Some(failure) => condition::set(&mut status, failure),
            None => condition::remove(&mut status, REPLICA_FAILURE),
        }
    }
    status
        .conditions
        .take_if(|conditions| conditions.is_empty());
    status
}

fn count(rollout: &Rollout<'_>) -> DeploymentStatus {
    let sum = |value: &dyn Fn(&SetState) -> i32| {
        let values = rollout.sets.iter().map(value);
        values.fold(0, i32::saturating_add)
    };
    let reported = |set: &SetState| set.found.status.clone().unwrap_or_default();
    let available = sum(&SetState::available);
    let asked = sum(&|set| replicas(&set.found));
    let updated = rollout
        .newest
        .map_or(0, |index| reported(&rollout.sets[index]).replicas);
    let found = rollout.deployment.status.clone().unwrap_or_default();
    DeploymentStatus {
        observed_generation: rollout.deployment.metadata.generation,
        replicas: nonzero(sum(&|set| reported(set).replicas)),
        updated_replicas: nonzero(updated),
        ready_replicas: nonzero(sum(&|set| number(reported(set).ready_replicas))),
        available_replicas: nonzero(available),
        unavailable_replicas: nonzero(asked.saturating_sub(available).max(0)),
        terminating_replicas: terminating(rollout.sets.iter().map(reported)),
        collision_count: found.collision_count,
        conditions: found.conditions,
    }
}

/// Unknown if any managed set lacks it.
fn terminating(sets: impl Iterator<Item = ReplicaSetStatus>) -> Option<i32> {
    let mut sum: i32 = 0;
    for status in sets {
        match status.terminating_replicas {
            Some(count) => sum = sum.saturating_add(count),
            None if number64(status.observed_generation) == 0 => {}
            None => return None,
        }
    }
    Some(sum)
}

/// Whether all pods are of the newest set and available, and none is left of the old ones.
pub(super) fn is_complete(rollout: &Rollout<'_>, status: &DeploymentStatus) -> bool {
    let wanted = rollout.wanted.replicas;
    number(status.updated_replicas) == wanted
        && number(status.replicas) == wanted
        && number(status.available_replicas) == wanted
        && number64(status.observed_generation) >= number64(rollout.deployment.metadata.generation)
}

fn estimate_progress(rollout: &Rollout<'_>, status: &mut DeploymentStatus) {
    let Some(deadline) = rollout.wanted.progress_deadline_seconds else {
        condition::remove(status, PROGRESSING);
        return;
    };
    let before = rollout.deployment.status.clone().unwrap_or_default();
    let current = condition::get(&before, PROGRESSING);
    let was_complete = condition::has_reason(&before, PROGRESSING, NEW_REPLICA_SET_AVAILABLE);
    if was_complete && number(status.replicas) == number(status.updated_replicas) {
        return;
    }
    let subject = match rollout.newest {
        Some(index) => format!("ReplicaSet {:?}", rollout.sets[index].name()),
        None => format!("Deployment {:?}", rollout.name()),
    };
    let now = rollout.view.now;
    let new = |is: &str, reason: &str, message: String| {
        condition::new(PROGRESSING, is, reason, message, now)
    };
    if is_complete(rollout, status) {
        let message = format!("{subject} has successfully progressed.");
        condition::set(status, new("True", NEW_REPLICA_SET_AVAILABLE, message));
    } else if has_progressed(&before, status) {
        let message = format!("{subject} is progressing.");
        let mut progressing = new("True", REPLICA_SET_UPDATED, message);
        // Every step renews the update time, which the deadline is counted from.
        if let Some(current) = current {
            if current.status == "True" {
                progressing
                    .last_transition_time
                    .clone_from(&current.last_transition_time);
            }
            condition::remove(status, PROGRESSING);
        }
        condition::set(status, progressing);
    } else if is_timed_out(status, deadline, now) {
        let message = format!("{subject} has timed out progressing.");
        condition::set(status, new("False", PROGRESS_DEADLINE_EXCEEDED, message));
    }
}

fn has_progressed(before: &DeploymentStatus, now: &DeploymentStatus) -> bool {
    let old = |status: &DeploymentStatus| number(status.replicas) - number(status.updated_replicas);
    number(now.updated_replicas) > number(before.updated_replicas)
        || old(now) < old(before)
        || number(now.ready_replicas) > number(before.ready_replicas)
        || number(now.available_replicas) > number(before.available_replicas)
}

/// A finished roll-out cannot time out, however long ago it was.
fn is_timed_out(status: &DeploymentStatus, deadline: i32, now: Timestamp) -> bool {
    let Some(condition) = condition::get(status, PROGRESSING) else {
        return false;
    };
    match condition.reason.as_deref() {
        Some(NEW_REPLICA_SET_AVAILABLE) => false,
        Some(PROGRESS_DEADLINE_EXCEEDED) => true,
        _ => last_update(condition).is_none_or(|from| after(from, deadline.into()) < now),
    }
}

fn last_update(condition: &DeploymentCondition) -> Option<Timestamp> {
    condition.last_update_time.as_ref().map(Timestamp::from_api)
}

/// How long until a stalled roll-out is checked again. A second is added,
/// because times are stored in whole seconds.
pub(super) fn until_deadline(rollout: &Rollout<'_>, status: &DeploymentStatus) -> Option<Duration> {
    let deadline = rollout.wanted.progress_deadline_seconds?;
    let condition = condition::get(status, PROGRESSING)?;
    let is_late = condition.reason.as_deref() == Some(PROGRESS_DEADLINE_EXCEEDED);
    if is_late || is_complete(rollout, status) {
        return None;
    }
    let end = after(last_update(condition)?, deadline.into());
    Some(until(rollout.view.now, end) + Duration::from_secs(1))
}

/// The failure of the newest set, or of the first other set that has one.
fn replica_failure(rollout: &Rollout<'_>) -> Option<DeploymentCondition> {
    let newest = rollout.newest.map(|index| &rollout.sets[index]);
    let sets = newest.into_iter().chain(&rollout.sets);
    let mut conditions = sets.flat_map(|set| {
        let status = set.found.status.iter();
        status.flat_map(|status| status.conditions.iter().flatten())
    });
    let failure = conditions.find(|condition| condition.type_ == REPLICA_FAILURE)?;
    Some(DeploymentCondition {
        type_: failure.type_.clone(),
        status: failure.status.clone(),
        reason: failure.reason.clone(),
        message: failure.message.clone(),
        last_transition_time: failure.last_transition_time.clone(),
        last_update_time: failure.last_transition_time.clone(),
    })
}

fn number(value: Option<i32>) -> i32 {
    value.unwrap_or(0)
}

fn number64(value: Option<i64>) -> i64 {
    value.unwrap_or(0)
}

/// The API leaves zeros out, so that statuses can be compared as they are stored.
fn nonzero(value: i32) -> Option<i32> {
    (value != 0).then_some(value)
}
