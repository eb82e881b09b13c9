//! What the node, its pods and containers use, read from the kernel.
//!
//! The agent hands over an [`Inventory`] of pods and containers, has a [`Collector`] measure it every ten
//! seconds, and reads the same stats from it in several forms: the summary document, which eviction
//! and HTTP clients read, and the texts that Prometheus scrapes. Asking costs no measurement, but
//! for [`Collector::cadvisor_metrics`].
//!
//! Reading order: [`Inventory`], [`Collector`], then `summary` and `metrics` for the forms. Below
//! them: `cgroup_reader` (one cgroup), `machine` (`/proc`), `file_system`, `volume_fs` (of volumes,
//! which may not answer), `disk` (directories), `network`, and `kept_file`, which makes all of it
//! cheap.

mod cgroup_reader;
mod collector;
mod cpu_rate;
mod disk;
mod figures;
mod file_system;
mod inventory;
pub(crate) mod kept_file;
pub(crate) mod keyed;
mod machine;
pub mod metrics;
mod network;
mod pressure;
mod storage;
mod summary;
mod sums;
mod volume_fs;

pub use collector::{Collector, PlayedMachine, Settings};
pub use inventory::{Container, Inventory, Pod, RootFs, RuntimeFs, Sandbox, Volume, VolumeMeasure};

#[cfg(test)]
mod tests;
