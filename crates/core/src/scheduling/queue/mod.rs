//! The queue of pods that wait for a node: a value driven by events, with the time passed in.
//!
//! A pod is in one of three places, or in flight:
//! - *active*: to be tried, by priority, then by how long it has waited;
//! - *backoff*: to be tried when its backoff ends, or earlier if nothing is active;
//! - *unschedulable*: not tried until an event makes a plugin that rejected it think
//!   otherwise, or five minutes have passed. Pods that may not be tried at all (scheduling gates,
//!   a preemption under way) are here, too; they are *gated*;
//! - *in flight*: popped, and its attempt not over. Events that arrive meanwhile are kept, since
//!   the attempt may not have seen them.
//!
//! No operation looks at all pods. A cluster event looks at the unschedulable pods that a plugin
//! rejected which registers for it, everything else takes logarithmic time.
//!
//! Matches v1.36 pkg/scheduler/backend/queue with the default feature gates.
//!
//! Which pods have room set aside on a node is not known here but to the
//! [cluster](crate::scheduling::cluster::Cluster::nominate), which decisions read.
//!
//! Reading order: [`Time`], [`facts`] (what is read of objects), [`Action`] and [`event`],
//! [`Plugin`] and [`Hint`], [`QueuedPod`], the places (`ordered`,
//! `unschedulable`, `in_flight`), [`SchedulingQueue`] with its `moves`, `wake` and `flush`.

mod action;
mod backoff;
pub mod event;
pub mod facts;
mod flush;
mod hint;
mod in_flight;
mod moves;
mod ordered;
mod queued_pod;
mod rejector;
mod scheduling_queue;
mod sizes;
mod time;
mod unschedulable;
mod wake;

pub use action::Action;
pub use backoff::Backoff;
pub use event::{Change, ClusterEvent, Object, Resource};
pub use facts::{NodeFacts, PodFacts};
pub use hint::Hint;
pub use queued_pod::{QueuedPod, Rejectors};
pub use rejector::Plugin;
pub use scheduling_queue::{AlreadyQueued, SchedulingQueue, Settings};
pub use sizes::{Incoming, QueueName, Sizes};
pub use time::Time;
pub use wake::Affected;

#[cfg(test)]
mod tests;
