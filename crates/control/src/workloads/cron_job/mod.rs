//! CronJobs: a Job at each time of a schedule.
//!
//! Reading order: `timing` (which time is due, and when to look again), `jobs` (the Jobs there are:
//! finished, forgotten, too many), `decision` (whether to start one), `run` (the loop). Schedules
//! are in `plimsoll_core::cron`.
//!
//! Matches v1.36 pkg/controller/cronjob.

mod decision;
mod jobs;
mod run;
#[cfg(test)]
mod tests;
mod timing;

pub use decision::{Decision, SCHEDULED_TIME, Start, decide, until_next};
pub use jobs::{has_forgotten, missing, observe, superfluous};
pub use run::{SyncError, run};

use super::ownership::ControllerKind;

/// The kind of a cron job.
pub const KIND: ControllerKind = ControllerKind {
    api_version: "batch/v1",
    kind: "CronJob",
};
