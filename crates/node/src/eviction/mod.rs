//! Eviction for real: the node watched, core's decisions carried out, and told.
//!
//! What is decided is decided by `plimsoll_core::eviction`. This module looks at the machine, asks
//! the engine, kills, and says why. A thread of its own does that, because a tokio worker may be
//! busy when a node has milliseconds left: the kernel wakes it (`alarm`), and a timer does that
//! runs the faster the nearer a line is (`pace`). Pods that must go at once are killed from that
//! thread, by a write into their cgroup; nothing is forked and no runtime is asked. Others end
//! through their worker, with their grace.
//!
//! Reading order: [`Settings`] and [`Surroundings`] (what it goes by, and whom it talks to),
//! `gauge` (memory, in microseconds), `roster` (pods and what they use), `lines` and `pace`
//! (how near it is), `alarm` (who wakes it), `watch` (one look after the other), `target` and
//! `strike` (the end of a pod), `victims` (until nothing of it is left), `consumers` (what holds
//! memory that evicting pods cannot bring back), [`EvictionShell`] (the whole). Beside it:
//! `decisions` (records on disk), `outlook` (how far the lines are), [`protect`] and [`code`] (the
//! agent's own survival), [`oom`] (the kernel's own kills), [`reclaim`] (what the node frees without
//! hurting a pod).

mod alarm;
pub mod code;
mod consumers;
mod decisions;
mod gauge;
mod lines;
pub mod oom;
mod outlook;
mod pace;
pub mod protect;
pub mod reclaim;
mod roster;
mod settings;
mod shell;
mod strike;
mod surroundings;
mod target;
#[cfg(test)]
mod tests;
mod victims;
mod watch;

pub use decisions::begun_before;
pub use settings::{Settings, Waking};
pub use shell::{EvictionShell, Journal, StartError, Ticket};
pub use surroundings::{Condemned, Surroundings, Survey};
