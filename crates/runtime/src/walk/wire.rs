//! What the agent asks the process that walks, and what that answers: a line of JSON each.

use serde::{Deserialize, Serialize};

use super::scan::{Scope, Usage};

/// One step of one walk. A walk that the process does not know is begun.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Request {
    /// The number of the walk.
    pub(super) walk: u64,
    /// Bytes of the path.
    pub(super) path: Vec<u8>,
    pub(super) scope: Scope,
    pub(super) step: Step,
    /// Walks that are not gone on with.
    pub(super) forgotten: Vec<u64>,
}

/// How far a step may go.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct Step {
    pub(super) budget: u64,
    pub(super) millis: u64,
}

/// A step that was taken.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Taken {
    /// What is left of the budget.
    pub(super) left: u64,
    /// How many files the walk has looked at.
    pub(super) entries: u64,
    /// Whether it has left nothing out.
    pub(super) is_whole: bool,
    /// Its end: the sum, or the system's number of the error.
    pub(super) ended: Option<Result<Usage, i32>>,
}
