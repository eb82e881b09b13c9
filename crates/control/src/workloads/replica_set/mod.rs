//! ReplicaSets and ReplicationControllers: a number of pods of one template.
//!
//! Reading order: `plan` (how many pods to make, which to delete), `status` (what is reported),
//! `replication_controller` (the older kind as a ReplicaSet), `run` (the loops).
//!
//! Matches v1.36 pkg/controller/replicaset.

mod plan;
mod replication_controller;
mod run;
mod status;

pub use plan::{BURST_REPLICAS, Plan, plan};
pub use replication_controller::{from_replication_controller, to_replication_controller_status};
pub use run::{Replicated, SyncError, run};
pub use status::{StatusInput, compute_status, is_status_current};
