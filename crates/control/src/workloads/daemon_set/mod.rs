//! DaemonSets: one pod on every node that fits.
//!
//! Reading order: `fit` (which nodes), `placement` (which pod belongs to which node), `manage`
//! (pods to make and to delete), `rolling` (replacing pods of an old template), `history` (the
//! revisions kept), `failed_pods` (the back-off of pods that keep failing), `status` (what is
//! reported), `run` (the loop).
//!
//! Matches v1.36 pkg/controller/daemon.

mod failed_pods;
mod fit;
mod history;
mod manage;
mod placement;
mod rolling;
mod run;
mod status;
#[cfg(test)]
mod tests;

pub use failed_pods::FailedPods;
pub use fit::{Fit, Fitness};
pub use history::{HistoryPlan, cleanup, plan_history, snapshot};
pub use manage::{Managed, manage};
pub use placement::{Placement, TerminatedPods, placement, target_node};
pub use rolling::{Work, roll};
pub use run::{SyncError, run};
pub use status::{compute_status, is_status_current};

use super::ownership::ControllerKind;

/// The kind of a daemon set.
pub const KIND: ControllerKind = ControllerKind {
    api_version: "apps/v1",
    kind: "DaemonSet",
};

/// The most pods that are made or deleted before what was done is looked at: more at once would
/// ask too much of image registries.
pub const BURST_REPLICAS: usize = 250;
