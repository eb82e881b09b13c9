//! Node-pressure eviction: when a node runs short, which pod goes, and what it is told.
//!
//! [`Engine`] is a value. It is fed observations and time and answers with [`Decision`]s that
//! carry their reasons; it reads nothing and kills nothing. One pass is one call of
//! [`Engine::step`], or two when the node first frees what it can. Answers are those of v1.36
//! pkg/kubelet/eviction, with a fixed rule where upstream's answer depends on the order of a map.
//!
//! Reading order: [`Observation`] and [`Readings`] (what was measured), [`MemorySource`], [`usage`]
//! and [`Candidate`] (pods), [`rank`], [`Settings`], `state`, `hold`, [`Engine`], `urgency`,
//! `victim`, [`Shortfall`] (where evicting pods cannot help), [`Decision`].
//! Beside it: [`local_storage`], [`NodeReclaim`], [`message`] (texts), [`forecast`], [`record`]
//! (decisions on paper), [`summary`] (the Summary API's JSON). [`image_gc`] and [`container_gc`]
//! are policies of their own.

mod candidate;
pub mod container_gc;
mod decision;
mod engine;
pub mod forecast;
mod hold;
pub mod image_gc;
pub mod local_storage;
pub mod message;
mod observation;
pub mod rank;
mod reclaim;
pub mod record;
mod settings;
mod shortfall;
mod signal_source;
mod state;
pub mod summary;
mod urgency;
pub mod usage;
mod victim;

pub use candidate::{ActivePod, Candidate, CandidateContainer, EvictionRequests};
pub use decision::{Action, Cause, Decision, Eviction, Starvation, ThresholdId, Trigger, Verdict};
pub use engine::{Engine, Input};
pub use observation::{
    FsObservation, MemoryObservation, MemoryStall, Observation, PidObservation, Reading, Readings,
    Room,
};
pub use reclaim::NodeReclaim;
pub use settings::Settings;
pub use shortfall::Shortfall;
pub use signal_source::{MemorySource, StallRule};

#[cfg(test)]
mod tests;
