//! Deployments: one ReplicaSet per version of the template, and the way from one to the next.
//!
//! [`reconcile`] reads a deployment, its sets and their pods, and returns writes and a
//! status. Where upstream writes the status several times in one pass, this writes it once, at the
//! end.
//!
//! Reading order: `desired_state` (the spec), `annotations` (what is remembered on sets), `rollout`
//! (the pass as a whole), then its ways: `revision` (which set is the newest), `scale`, `rolling`,
//! `recreate`, `rollback`; and `condition` and `status` (what is reported); `run` (the loop).
//!
//! Matches v1.36 pkg/controller/deployment.

mod annotations;
mod condition;
mod desired_state;
mod recreate;
mod revision;
mod rollback;
mod rolling;
mod rollout;
mod run;
mod scale;
mod status;
#[cfg(test)]
mod tests;

pub use revision::{is_same_template, on_failed_creation, on_hash_collision};
pub use rollout::{Action, Plan, View, reconcile};
pub use run::{SyncError, run};

use super::ownership::ControllerKind;

/// The kind of a deployment.
pub const KIND: ControllerKind = ControllerKind {
    api_version: "apps/v1",
    kind: "Deployment",
};
