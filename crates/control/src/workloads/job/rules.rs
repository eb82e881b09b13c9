//! The rules in the spec of a job.

use k8s_openapi::api::batch::v1::{Job, PodFailurePolicy, SuccessPolicy};
use k8s_openapi::api::core::v1::Pod;

use crate::workloads::pod_state;

/// The spec with defaults filled in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules<'a> {
    pub(super) parallelism: i32,
    /// `None`: one success is enough, and the others may finish.
    pub(super) completions: Option<i32>,
    pub(super) is_indexed: bool,
    pub(super) backoff_limit: i32,
    pub(super) backoff_limit_per_index: Option<i32>,
    pub(super) max_failed_indexes: Option<i32>,
    pub(super) failure_policy: Option<&'a PodFailurePolicy>,
    pub(super) success_policy: Option<&'a SuccessPolicy>,
    pub(super) active_deadline_seconds: Option<i64>,
    pub(super) is_suspended: bool,
    /// Whether a pod that is being deleted is replaced only once it has failed.
    pub(super) replaces_only_failed: bool,
    pub(super) restarts_on_failure: bool,
}

impl<'a> Rules<'a> {
    pub(super) fn of(job: &'a Job) -> Rules<'a> {
        let spec = job.spec.as_ref();
        let template = spec.and_then(|spec| spec.template.spec.as_ref());
        let policy = spec.and_then(|spec| spec.pod_failure_policy.as_ref());
        let replacement = spec.and_then(|spec| spec.pod_replacement_policy.as_deref());
        let is_indexed = spec.and_then(|spec| spec.completion_mode.as_deref()) == Some("Indexed");
        Rules {
            parallelism: spec.and_then(|spec| spec.parallelism).unwrap_or(1),
            completions: spec.and_then(|spec| spec.completions),
            is_indexed,
            backoff_limit: spec.and_then(|spec| spec.backoff_limit).unwrap_or(6),
            backoff_limit_per_index: spec.and_then(|spec| spec.backoff_limit_per_index),
            max_failed_indexes: spec.and_then(|spec| spec.max_failed_indexes),
            failure_policy: policy,
            success_policy: spec.and_then(|spec| spec.success_policy.as_ref()),
            active_deadline_seconds: spec.and_then(|spec| spec.active_deadline_seconds),
            is_suspended: spec.and_then(|spec| spec.suspend).unwrap_or(false),
            replaces_only_failed: replacement == Some("Failed") || policy.is_some(),
            restarts_on_failure: template.and_then(|spec| spec.restart_policy.as_deref())
                == Some("OnFailure"),
        }
    }

    /// The number of indexes of an indexed job.
    pub(super) fn index_count(&self) -> i64 {
        i64::from(self.completions.unwrap_or(0))
    }

    /// Whether the pod counts as failed. One that is being deleted does, because its end may never
    /// be reported; unless only failed pods are replaced, which are waited for.
    pub(super) fn is_failed(&self, pod: &Pod) -> bool {
        match pod_state::phase(pod) {
            "Failed" => true,
            "Succeeded" => false,
            _ => !self.replaces_only_failed && pod.metadata.deletion_timestamp.is_some(),
        }
    }
}
