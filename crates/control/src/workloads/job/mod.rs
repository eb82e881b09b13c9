//! Jobs: pods that run to their end.
//!
//! A pass has three parts, with API writes in between. [`plan`] says which pods to create or delete.
//! With the results, [`Sync::conclude`] says what to write into the status and which pods
//! may lose their finalizer after that. With the results of that, [`Accounting::finish`] gives
//! the last status. A pod that ended is first listed in `uncountedTerminatedPods`, then loses its
//! finalizer, then is counted: wherever the controller dies, no pod is counted twice or missed.
//!
//! Reading order: `rules` (the spec), `indexes` (sets of numbers), `indexed_pod` (what an index
//! means for pods), `back_off`, `failure_policy`, `success_policy`, `condition`, `context` (what a
//! pass knows), `finish` (has the job ended), `manage` (pods to make and delete), `template`,
//! `sync` and `accounting` (the pass), `run` (the loop).
//!
//! Matches v1.36 pkg/controller/job.

mod accounting;
mod back_off;
mod condition;
mod context;
mod failure_policy;
mod finish;
mod indexed_pod;
mod indexes;
mod manage;
mod rules;
mod run;
mod success_policy;
mod sync;
mod template;
#[cfg(test)]
mod tests;

pub use accounting::{Accounting, Finished};
pub use back_off::BackOff;
pub use condition::is_finished;
pub use context::View;
pub use manage::PodWork;
pub use run::{SyncError, run};
pub use sync::{Done, Sync, plan};

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::ownership::ControllerKind;

/// The kind of a job.
pub const KIND: ControllerKind = ControllerKind {
    api_version: "batch/v1",
    kind: "Job",
};

/// Keeps a pod from vanishing before it is counted.
pub const TRACKING_FINALIZER: &str = "batch.kubernetes.io/job-tracking";

/// Whether the pod is still to be counted.
pub fn is_tracked(pod: &Pod) -> bool {
    let finalizers = pod.metadata.finalizers.as_deref().unwrap_or_default();
    finalizers
        .iter()
        .any(|finalizer| finalizer == TRACKING_FINALIZER)
}

/// The strategic merge patch that lets a pod go.
pub fn release_patch() -> Value {
    json!({"metadata": {"$deleteFromPrimitiveList/finalizers": [TRACKING_FINALIZER]}})
}

/// Whether another controller looks after the job.
pub fn is_managed_elsewhere(job: &Job) -> bool {
    let manager = job
        .spec
        .as_ref()
        .and_then(|spec| spec.managed_by.as_deref());
    manager.is_some_and(|name| name != "kubernetes.io/job-controller")
}

/// A completion mode this controller does not know; such a job is left alone.
pub fn has_unknown_mode(job: &Job) -> bool {
    let mode = job
        .spec
        .as_ref()
        .and_then(|spec| spec.completion_mode.as_deref());
    mode.is_some_and(|mode| mode != "NonIndexed" && mode != "Indexed")
}
