//! PodDisruptionBudgets: how many pods may be disturbed now.
//!
//! Reading order: `scale` (how many pods there should be, asked of their owners), `budget` (the
//! status).
//!
//! Matches v1.36 pkg/controller/disruption.

mod budget;
mod scale;

pub use budget::{Budget, Input, Outcome, compute, fail_safe};
pub use scale::{ExpectedScale, OwnerScale, Owners, ScaleError, expected_scale};
