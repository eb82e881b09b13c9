//! Core's cgroup plan, written into the kernel.
//!
//! What a cgroup should have is decided in `plimsoll_core::cgroup`; this module makes the
//! directories, writes the files whose value differs, reads them back, kills what is inside and
//! removes what is left. Every function here blocks for as long as the kernel takes, which is
//! milliseconds but for [`Cgroups::remove`].
//!
//! Reading order: [`Layout`] (which trees the kernel shows), [`Cgroups`] (one of them, below
//! `cgroupRoot`), then what is done with it: `create`, `values`, `kill` (with `walk`),
//! `interrupted` (kills that were begun), `remove`, `pods`, `tiers`, `process`, [`NodeCgroups`] (all of a
//! node by its configuration).

mod create;
mod enforce;
mod error;
#[cfg(any(test, feature = "testing"))]
#[expect(clippy::unwrap_used, reason = "a test whose machine fails ends there")]
pub mod fake;
mod interrupted;
mod kill;
mod layout;
mod mounts;
mod pods;
mod process;
mod refusal;
mod remove;
mod settings;
#[cfg(any(test, feature = "testing"))]
#[expect(clippy::unwrap_used, reason = "a test whose machine fails ends there")]
pub mod testing;
mod tiers;
mod tree;
mod values;
mod walk;

pub(crate) use create::write_existing;
pub use enforce::{Enforcement, EventKind, NodeCgroups, NodeEvent};
pub use error::Error;
pub use kill::KillHandle;
pub use layout::{Layout, is_systemd_running};
pub use process::{AGENT_OOM_SCORE_ADJ, is_unaccounted, parse_own_cgroup, write_oom_score_adj};
pub use refusal::Refusal;
pub use settings::{container_settings, pod_settings, reserved_cgroups, tier_settings};
pub use tiers::QOS_UPDATE_PERIOD;
pub use tree::Cgroups;

#[cfg(test)]
mod tests;
