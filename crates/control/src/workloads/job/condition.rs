//! The conditions of a job.

use k8s_openapi::api::batch::v1::{Job, JobCondition, JobStatus};
use plimsoll_core::object::timestamp::Timestamp;

pub(super) const COMPLETE: &str = "Complete";
pub(super) const FAILED: &str = "Failed";
/// The job will be `Failed` when its pods are gone.
pub(super) const FAILURE_TARGET: &str = "FailureTarget";
/// The job will be `Complete` when its pods are gone.
pub(super) const SUCCESS_CRITERIA_MET: &str = "SuccessCriteriaMet";
pub(super) const SUSPENDED: &str = "Suspended";

/// A condition that is true from now on.
pub(super) fn new(type_: &str, reason: &str, message: &str, now: Timestamp) -> JobCondition {
    JobCondition {
        type_: type_.to_owned(),
        status: "True".to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_probe_time: Some(now.to_api_seconds()),
        last_transition_time: Some(now.to_api_seconds()),
    }
}

/// The condition of that type if it is true.
pub(super) fn find_true<'a>(job: &'a Job, type_: &str) -> Option<&'a JobCondition> {
    let conditions = job.status.as_ref()?.conditions.as_deref()?;
    let mut conditions = conditions
        .iter()
        .filter(|condition| condition.status == "True");
    conditions.find(|condition| condition.type_ == type_)
}

/// Whether the job has ended, well or not.
pub fn is_finished(job: &Job) -> bool {
    find_true(job, COMPLETE).is_some() || find_true(job, FAILED).is_some()
}

/// Puts a condition in its place; returns whether that changed anything. A condition that never was
/// true is not written as false.
pub(super) fn ensure(status: &mut JobStatus, condition: JobCondition) -> bool {
    let conditions = status.conditions.get_or_insert_default();
    let known = conditions
        .iter_mut()
        .find(|known| known.type_ == condition.type_);
    match known {
        Some(known)
            if known.status == condition.status
                && known.reason == condition.reason
                && known.message == condition.message =>
        {
            false
        }
        Some(known) => {
            *known = condition;
            true
        }
        None if condition.status == "False" => false,
        None => {
            conditions.push(condition);
            true
        }
    }
}
