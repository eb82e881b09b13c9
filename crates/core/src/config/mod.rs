//! The node's configuration, from any of the files people already have.
//!
//! Three notations lead to one [`NodeConfig`]: a KubeletConfiguration file, an OKD
//! `node-config.yaml`, and a kubelet's command line. This module never looks at a machine:
//! whether the reservations fit its capacity is for `allocatable` to say.
//!
//! Reading order: [`NodeConfig`] and the [`Setting`]s it is made of, then [`Profile`].

mod choice;
mod cpu_set;
pub mod document;
mod node_config;
mod profile;
mod setting;
mod taint;

pub use choice::{
    CgroupDriver, Enforcement, MemoryReservationPolicy, Profile, SwapBehavior, TaintEffect,
};
pub use cpu_set::CpuSet;
pub use node_config::{NodeConfig, SignalTexts};
pub use profile::{CriticalRule, EvictionRank, MemoryPressureBlocks, SoftGrace};
pub use setting::{Origin, Setting};
pub use taint::Taint;
