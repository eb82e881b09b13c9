//! Whether this machine can run pods, and what to do where it cannot.
//!
//! `observe` looks, [`judge`] decides; the same judgement is printed by `plimsoll check --node` and
//! keeps the agent from starting half.

mod judge;
mod observe;

pub use judge::{Finding, Level, judge};
pub use observe::{CgroupState, Observed, RuntimeState, Subject, Taken, observe};
