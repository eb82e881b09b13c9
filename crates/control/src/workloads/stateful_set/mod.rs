//! StatefulSets: pods with names and storage of their own, made and replaced in order.
//!
//! Reading order: `identity` (names, ordinals, labels), `claim` (the PersistentVolumeClaims of a
//! pod, and which object owns them), `history` (the revisions of the template), `plan` (which pods to make, to
//! delete and to correct), `status` (what is reported), `run` (the loop).
//!
//! Matches v1.36 pkg/controller/statefulset.

mod claim;
mod history;
mod identity;
mod plan;
mod run;
mod status;
#[cfg(test)]
mod tests;

pub use history::{Update, cleanup, plan_history, snapshot};
pub use identity::{POD_INDEX_LABEL, POD_NAME_LABEL, ordinal_of};
pub use plan::{Action, BURST_REPLICAS, Order, Plan, Revision, Step, Verb, View, plan};
pub use run::{SyncError, run};
pub use status::is_status_current;

use super::ownership::ControllerKind;

/// The kind of a stateful set.
pub const KIND: ControllerKind = ControllerKind {
    api_version: "apps/v1",
    kind: "StatefulSet",
};
