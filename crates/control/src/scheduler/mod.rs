//! The scheduler: core's engine and queue between the watches and the writes.
//!
//! [`Loop`] is the scheduler as a value, without a clock, a network or tasks: what happens goes in
//! as an [`Input`] with the time, what is to be done comes out as an [`Action`]. Deciding never
//! waits for writing: a pod is *assumed* to be on the node that was chosen for it until its binding
//! fails or the API server shows it there, and many bindings are under way at once.
//!
//! [`run`] is the shell around it: watches, writes, clock, leader election. It talks to the API
//! through a `kube::Client` alone, so that it schedules for Plimsoll's own server in the same
//! process, for one across the network, or as a second scheduler in any cluster.
//!
//! Reading order: `known_pod` (what is kept of a pod), `store`, `input`, `action`, `state` (the
//! loop), `objects` and `pods` (what watches show), `attempt` (trying a pod, binding it), `failure`,
//! `preemption`, `metrics`, `records`; then the shell: `options`, `watches`, `writes`, `configz`,
//! `handlers`, `run`.

mod action;
mod attempt;
mod configz;
mod failure;
mod handlers;
mod input;
mod known_pod;
mod metrics;
mod objects;
mod options;
mod pods;
mod preemption;
mod records;
mod run;
mod state;
mod store;
mod watches;
mod writes;

pub use action::{Action, Condition, StatusPatch, Victim};
pub use input::{Eviction, Input, Name, WatchEvent};
pub use known_pod::{KnownPod, Unscheduled};
pub use metrics::Metrics;
pub use options::Options;
pub use records::{Record, Records, Verdict};
pub use run::run;
pub use state::Loop;

#[cfg(test)]
mod run_tests;
#[cfg(test)]
mod tests;
