//! PodDisruptionBudgets: how many pods may be disturbed now.
//!
//! Reading order: `scale` (how many pods there should be, by their owners), `budget` (the status),
//! `stale_condition` (pods that were not deleted after all), `owners` (which controllers count),
//! `selector_text` (a selector in an event), `run` (the loop).
//!
//! Matches v1.36 pkg/controller/disruption.

mod budget;
mod owners;
mod run;
mod scale;
mod selector_text;
mod stale_condition;

pub use budget::{Budget, Input, Outcome, compute, fail_safe};
pub use run::{SyncError, run};
pub use scale::{ExpectedScale, OwnerScale, Owners, ScaleError, expected_scale};
