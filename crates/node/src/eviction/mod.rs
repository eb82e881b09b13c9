//! Eviction: watches the node, carries out core's decisions, and reports them.
//!
//! What is decided, when to look and in which order to act is decided by the engine of
//! `plimsoll_core::eviction`, of which a node has one. This module looks at the machine, asks the
//! engine, carries out its actions, and reports their outcomes back. A thread of its own does that, because a tokio worker may be
//! busy when a node has milliseconds left: the kernel wakes it (`alarm`), and a timer does that
//! runs the faster the nearer a threshold is. Pods that must be evicted at once are killed from that
//! thread, by a write into their cgroup, without a fork or a call to the runtime. Others end
//! through their worker, with their grace.
//!
//! Reading order: [`Settings`] and [`Surroundings`] (the configuration, and what eviction needs of the agent),
//! `gauge` (memory, in microseconds), `roster` (pods and what they use), `alarm` (what wakes it),
//! `watch` (one look after the other), `carry_out` (a decision), `log` (what the log says about it), `target` and `kill` (the end of a
//! pod), `consumers` (what holds memory that evicting pods cannot bring back), [`EvictionShell`]
//! (the whole). Beside it: `decisions` (records on disk), [`protect`] and [`code`] (the agent's own
//! survival), [`oom`] (the kernel's own kills), [`reclaim`] (what the node frees without
//! hurting a pod).

mod alarm;
mod carry_out;
pub mod code;
mod consumers;
mod decisions;
mod gauge;
mod kill;
mod log;
pub mod oom;
pub mod protect;
pub mod reclaim;
mod roster;
mod settings;
mod shell;
mod surroundings;
mod target;
#[cfg(test)]
mod tests;
mod watch;

pub use decisions::begun_before;
pub use settings::{Settings, Waking};
pub use shell::{EvictionShell, Journal, StartError, Ticket};
pub use surroundings::{Surroundings, Survey};
