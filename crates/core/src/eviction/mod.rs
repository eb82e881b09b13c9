//! Node-pressure eviction: when a node runs short, which pod is evicted, and with which message.
//!
//! [`Engine`] is a value. It is fed observations, outcomes and time and answers with [`Decision`]s
//! that carry their reasons; it reads nothing and kills nothing. One pass is one call of
//! [`Engine::step`], or two when the node first frees what it can, and one for each [`KillOutcome`].
//! [`Engine::look`] says when a pass is due. Answers are those of v1.36 pkg/kubelet/eviction, with a
//! fixed rule where upstream's answer depends on the order of a map.
//!
//! Reading order: [`Observation`] and [`Readings`] (what was measured), [`MemorySource`], [`usage`]
//! and [`Candidate`] (pods), [`rank`], [`Settings`], `state`, `pending` (pods until they are gone), [`Engine`],
//! `urgency`, `victim`, [`Shortfall`] (where evicting pods cannot help), [`Decision`], `standing` and
//! `look` (when to look, and when a pass begins).
//! Beside it: [`local_storage`], [`NodeReclaim`], [`message`] (texts), [`forecast`], `outlook`,
//! [`Shortages`], [`record`] (records of decisions), [`summary`] (the Summary API's JSON). [`image_gc`] and [`container_gc`]
//! are policies of their own.

mod candidate;
pub mod container_gc;
mod decision;
mod engine;
pub mod forecast;
pub mod image_gc;
pub mod local_storage;
mod look;
pub mod message;
mod observation;
mod outlook;
mod pending;
pub mod rank;
mod reclaim;
pub mod record;
mod settings;
mod shortage;
mod shortfall;
mod signal_source;
mod standing;
mod state;
pub mod summary;
mod urgency;
pub mod usage;
mod victim;

pub use candidate::{ActivePod, Candidate, CandidateContainer, EvictionRequests};
pub use decision::{
    Action, Cause, Decision, Eviction, KillOutcome, Phase, Starvation, ThresholdId, Trigger,
    Verdict,
};
pub use engine::{Engine, Input};
pub use look::{News, Next, Ready};
pub use observation::{
    FsObservation, MemoryObservation, MemoryStall, Observation, PidObservation, Reading, Readings,
    Room,
};
pub use pending::{EarlierEviction, Remains};
pub use reclaim::NodeReclaim;
pub use settings::Settings;
pub use shortage::Shortages;
pub use shortfall::Shortfall;
pub use signal_source::{MemorySource, StallRule};

#[cfg(test)]
mod tests;
