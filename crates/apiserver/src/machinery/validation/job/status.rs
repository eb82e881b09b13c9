//! Job status updates.

use std::collections::BTreeSet;

use k8s_openapi::api::batch::v1::{Job, JobSpec, JobStatus};

use super::super::path::Path;
use super::super::problems::{FIELD_IS_IMMUTABLE, Problems, json};
use super::super::text;
use super::policy::count_indexes;
use super::{invalid_without_value, is_indexed};

pub(super) fn is_true(status: &JobStatus, condition: &str) -> bool {
    status
        .conditions
        .iter()
        .flatten()
        .any(|c| c.type_ == condition && c.status == "True")
}

/// Validates a job's status.
pub(super) fn check_status(new: &Job, old: &Job, problems: &mut Problems) {
    let spec = new.spec.clone().unwrap_or_default();
    let (status, old) = (
        new.status.clone().unwrap_or_default(),
        old.status.clone().unwrap_or_default(),
    );
    let path = Path::new("status");
    for (field, count) in [
        ("active", status.active),
        ("succeeded", status.succeeded),
        ("failed", status.failed),
        ("ready", status.ready),
        ("terminating", status.terminating),
    ] {
        problems.nonnegative(&path.child(field), count.unwrap_or_default());
    }
    check_uncounted(&status, &path.child("uncountedTerminatedPods"), problems);
    check_terminal_conditions(&spec, &status, &old, &path, problems);
    check_indexes(&spec, &status, &old, &path, problems);
    let count = |value: Option<i32>| value.unwrap_or_default();
    if count(status.ready) > count(status.active)
        && (status.ready, status.active) != (old.ready, old.active)
    {
        let detail = "cannot set more ready pods than active";
        problems.invalid(&path.child("ready"), count(status.ready), detail);
    }
    if count(status.failed) < count(old.failed) {
        let detail = "cannot decrease the failed counter";
        problems.invalid(&path.child("failed"), count(status.failed), detail);
    }
    let may_shrink = is_indexed(&spec) && spec.completions == spec.parallelism;
    if !may_shrink && count(status.succeeded) < count(old.succeeded) {
        let detail = "cannot decrease the succeeded counter";
        problems.invalid(&path.child("succeeded"), count(status.succeeded), detail);
    }
    if status.completion_time.is_some()
        && old.completion_time.is_some()
        && status.completion_time != old.completion_time
    {
        problems.invalid(
            &path.child("completionTime"),
            json(&status.completion_time),
            FIELD_IS_IMMUTABLE,
        );
    }
    let is_resuming = is_true(&old, "Suspended")
        && status
            .conditions
            .iter()
            .flatten()
            .any(|c| c.type_ == "Suspended" && c.status == "False");
    let is_start_changed = old.start_time.is_some() && old.start_time != status.start_time;
    if is_start_changed && !is_resuming && spec.suspend != Some(true) {
        let detail = "field is immutable for unsuspended job once set";
        problems.invalid(&path.child("startTime"), json(&status.start_time), detail);
    }
}

fn check_uncounted(status: &JobStatus, path: &Path<'_>, problems: &mut Problems) {
    let Some(uncounted) = &status.uncounted_terminated_pods else {
        return;
    };
    let mut seen = BTreeSet::new();
    for (field, uids) in [
        ("succeeded", &uncounted.succeeded),
        ("failed", &uncounted.failed),
    ] {
        let list = path.child(field);
        for (index, uid) in uids.iter().flatten().enumerate() {
            if uid.is_empty() {
                problems.invalid(&list.index(index), json(uid), "must not be empty");
            } else if !seen.insert(uid) {
                problems.duplicate(&list.index(index), uid);
            }
        }
    }
}

fn check_terminal_conditions(
    spec: &JobSpec,
    status: &JobStatus,
    old: &JobStatus,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let [complete, failed, failing, succeeding] =
        ["Complete", "Failed", "FailureTarget", "SuccessCriteriaMet"].map(|c| is_true(status, c));
    let [was_complete, was_failed, _, was_succeeding] =
        ["Complete", "Failed", "FailureTarget", "SuccessCriteriaMet"].map(|c| is_true(old, c));
    let is_finished = complete || failed;
    let conditions = path.child("conditions");
    let refuse = |is_wrong: bool, detail: &str, problems: &mut Problems| {
        if is_wrong {
            invalid_without_value(&conditions, detail, problems);
        }
    };
    refuse(
        complete && failed,
        "cannot set Complete=True and Failed=true conditions",
        problems,
    );
    refuse(
        complete && failing,
        "cannot set Complete=True and FailureTarget=true conditions",
        problems,
    );
    let completion = path.child("completionTime");
    match &status.completion_time {
        Some(time) if !complete => {
            let detail = "cannot set completionTime when there is no Complete=True condition";
            problems.invalid(&completion, json(time), detail);
        }
        None if complete && !was_complete => {
            problems.required(&completion, "completionTime is required for Complete jobs");
        }
        _ => {}
    }
    if let (Some(start), Some(end)) = (&status.start_time, &status.completion_time)
        && end < start
    {
        problems.invalid(
            &completion,
            json(end),
            "must be equal to or after `startTime`",
        );
    }
    refuse(
        failed && !failing && !was_failed,
        "cannot set Failed=True condition without the FailureTarget=true condition",
        problems,
    );
    refuse(
        complete && !succeeding && !was_complete,
        "cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
        problems,
    );
    let active = status.active.unwrap_or_default();
    if active > 0 && is_finished {
        problems.invalid(
            &path.child("active"),
            active,
            "active>0 is invalid for finished job",
        );
    }
    let is_empty_and_suspended = spec.suspend == Some(true) && spec.completions == Some(0);
    if is_finished && status.start_time.is_none() && !is_empty_and_suspended {
        problems.required(
            &path.child("startTime"),
            "startTime is required for finished job",
        );
    }
    refuse(
        succeeding && failed,
        "cannot set SuccessCriteriaMet=True and Failed=true conditions",
        problems,
    );
    refuse(
        succeeding && failing,
        "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions",
        problems,
    );
    for condition in ["Failed", "Complete", "FailureTarget"] {
        if is_true(old, condition) && !is_true(status, condition) {
            let detail = format!("cannot disable the terminal {condition}=True condition");
            refuse(true, &detail, problems);
        }
    }
    refuse(
        was_succeeding && !succeeding,
        "cannot disable the SuccessCriteriaMet=True condition",
        problems,
    );
    refuse(
        was_complete && !was_succeeding && succeeding,
        "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions",
        problems,
    );
}

fn check_indexes(
    spec: &JobSpec,
    status: &JobStatus,
    old: &JobStatus,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let completed = text(&status.completed_indexes);
    let completed_path = path.child("completedIndexes");
    if completed != text(&old.completed_indexes) {
        if let Some(Err(reason)) = spec.completions.map(|c| count_indexes(completed, c)) {
            let detail = format!("error parsing completedIndexes: {reason}");
            problems.invalid(&completed_path, completed, detail);
        }
        if !completed.is_empty() && !is_indexed(spec) {
            let detail = "cannot set non-empty completedIndexes when non-indexed completion mode";
            problems.invalid(&completed_path, completed, detail);
        }
    }
    if let Some(failed) = status
        .failed_indexes
        .as_ref()
        .filter(|_| status.failed_indexes != old.failed_indexes)
    {
        let failed_path = path.child("failedIndexes");
        if spec.backoff_limit_per_index.is_none() {
            let detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null";
            problems.invalid(&failed_path, failed, detail);
        } else if let Some(Err(reason)) = spec.completions.map(|c| count_indexes(failed, c)) {
            let detail = format!("error parsing failedIndexes: {reason}");
            problems.invalid(&failed_path, json(failed), detail);
        }
    }
}
