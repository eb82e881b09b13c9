//! Whether a job has ended, and how.

use std::time::Duration;

use k8s_openapi::api::batch::v1::JobCondition;
use k8s_openapi::api::core::v1::Pod;
use plimsoll_core::object::timestamp::Timestamp;

use crate::workloads::pod_state::{self, after, until};

use super::condition::{self, FAILED, FAILURE_TARGET, SUCCESS_CRITERIA_MET};
use super::context::Context;
use super::failure_policy::{Verdict, match_policy};
use super::success_policy;

/// The condition that ends the job, if it has ended: what was decided before stays so, failures
/// come before successes.
pub(super) fn verdict(context: &Context<'_>, start: Option<Timestamp>) -> Option<JobCondition> {
    decided(context)
        .or_else(|| failed_by_policy(context))
        .or_else(|| failed_by_limit(context, start))
        .or_else(|| failed_by_index(context))
        .or_else(|| succeeded_by_policy(context))
}

fn decided(context: &Context<'_>) -> Option<JobCondition> {
    let job = context.view.job;
    if let Some(met) = condition::find_true(job, SUCCESS_CRITERIA_MET) {
        return Some(met.clone());
    }
    let target = condition::find_true(job, FAILURE_TARGET)?;
    Some(to_failed(target, context.view.now))
}

/// The final condition of a job that was to fail, once its pods are gone.
pub(super) fn to_failed(target: &JobCondition, now: Timestamp) -> JobCondition {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    condition::new(FAILED, &text(&target.reason), &text(&target.message), now)
}

fn failed_by_policy(context: &Context<'_>) -> Option<JobCondition> {
    let policy = context.rules.failure_policy?;
    let failed = context
        .view
        .pods
        .iter()
        .filter(|pod| context.rules.is_failed(pod));
    let message = failed
        .into_iter()
        .find_map(|pod| match match_policy(Some(policy), pod) {
            Verdict::FailJob(message) => Some(message),
            _ => None,
        })?;
    Some(fails(context, "PodFailurePolicy", &message))
}

fn failed_by_limit(context: &Context<'_>, start: Option<Timestamp>) -> Option<JobCondition> {
    let rules = &context.rules;
    if context.failed > rules.backoff_limit || has_restarted_too_often(context) {
        let message = "Job has reached the specified backoff limit";
        return Some(fails(context, "BackoffLimitExceeded", message));
    }
    let left = until_deadline(context, start)?;
    left.is_zero().then(|| {
        let message = "Job was active longer than specified deadline";
        fails(context, "DeadlineExceeded", message)
    })
}

/// How long the job may still run; `None` for as long as it likes.
pub(super) fn until_deadline(context: &Context<'_>, start: Option<Timestamp>) -> Option<Duration> {
    let seconds = context.rules.active_deadline_seconds?;
    let start = start.filter(|_| !context.rules.is_suspended)?;
    Some(until(context.view.now, after(start, seconds)))
}

/// Pods that are restarted in place do not fail, but their restarts count.
fn has_restarted_too_often(context: &Context<'_>) -> bool {
    let restarts = |pod: &&Pod| -> i32 {
        let statuses = pod_state::init_container_statuses(pod).iter();
        let statuses = statuses.chain(pod_state::container_statuses(pod));
        statuses
            .map(|status| status.restart_count)
            .fold(0, i32::saturating_add)
    };
    let running = context.view.pods.iter().copied();
    let running = running.filter(|pod| matches!(pod_state::phase(pod), "Running" | "Pending"));
    let total = running
        .map(|pod| restarts(&pod))
        .fold(0, i32::saturating_add);
    context.rules.restarts_on_failure
        && match context.rules.backoff_limit {
            0 => total > 0,
            limit => total >= limit,
        }
}

fn failed_by_index(context: &Context<'_>) -> Option<JobCondition> {
    let failed = context.failed_indexes.as_ref()?.count();
    let most = context.rules.max_failed_indexes;
    if most.is_some_and(|most| failed > i64::from(most)) {
        let message = "Job has exceeded the specified maximal number of failed indexes";
        return Some(fails(context, "MaxFailedIndexesExceeded", message));
    }
    let ended = failed.saturating_add(context.succeeded_indexes.count());
    (failed > 0 && ended >= context.rules.index_count())
        .then(|| fails(context, "FailedIndexes", "Job has failed indexes"))
}

fn succeeded_by_policy(context: &Context<'_>) -> Option<JobCondition> {
    let end = context.rules.index_count();
    let policy = context
        .rules
        .success_policy
        .filter(|_| context.rules.is_indexed);
    let message = success_policy::met(policy, end, &context.succeeded_indexes)?;
    Some(condition::new(
        SUCCESS_CRITERIA_MET,
        "SuccessPolicy",
        &message,
        context.view.now,
    ))
}

fn fails(context: &Context<'_>, reason: &str, message: &str) -> JobCondition {
    condition::new(FAILURE_TARGET, reason, message, context.view.now)
}
