//! Pods on the node: one worker each, from admission to the last status.
//!
//! Whatever is decided is decided by pure functions of what was observed, with the time passed in;
//! workers observe, ask, act and look again.
//!
//! Reading order: [`observed`] (what the runtime has of a pod), [`admission`] (whether the node takes it), [`restart`] and [`back_off`] (whether and when a container starts again), [`plan`] (what to
//! do next), [`status`] (the status in the API), [`note`] (events), [`spec`] (the
//! configuration for the runtime), [`host`] (what workers need besides a runtime), [`image`], [`probe`],
//! [`resize`],
//! [`worker`] (one task per pod), [`reports`] (what workers report), [`set`] (all of them),
//! [`api`] and [`manifest`] (where they come from).

pub mod admission;
pub mod api;
pub mod back_off;
mod ending;
mod fetch;
pub(crate) mod hook;
pub mod host;
pub mod image;
mod kill_notice;
mod look;
pub mod manifest;
pub mod note;
pub mod observed;
pub mod plan;
pub mod probe;
pub mod reports;
pub mod resize;
pub mod restart;
pub mod set;
mod settings;
pub mod spec;
pub mod status;
pub mod worker;

pub use host::Host;
pub use kill_notice::KillNotice;
pub use plimsoll_client::clock::Clock;
pub use set::Pods;
pub use settings::Settings;
