//! Why a pod is pending, does not run, was placed on its node, or was evicted; the state of a node;
//! the state of the pods of an owner.
//!
//! Reading order: `pod` (the explanation of a pod from what was read) with `snapshot`, `pending`,
//! `obstacle`, `fix`, `scheduler_traces`, `placed`, `containers`, `probe`, `evicted`, `ended`,
//! `deleted` and [`events`], `node`, `owner`, [`report`] (the result as data; documented in
//! docs/explain.md), [`render`] (the result as text).

mod containers;
mod deleted;
mod ended;
pub mod events;
mod evicted;
mod fix;
mod node;
mod obstacle;
mod owner;
mod pending;
mod placed;
mod pod;
mod probe;
pub mod render;
pub mod report;
mod scheduler_traces;
mod snapshot;
#[cfg(test)]
mod tests;

pub use containers::{Logs, with_relevant_log};
pub use deleted::DELETED_BY_OWNER;
pub use ended::is_evicted;
pub use node::{FoundNode, explain_node, signals_at_risk};
pub use owner::{FoundOwner, OwnerKind, explain_owner};
pub use pod::{Found, explain_pod, scheduler_of};
pub use scheduler_traces::{SchedulerTraces, is_lease_of};
pub use snapshot::Snapshot;
