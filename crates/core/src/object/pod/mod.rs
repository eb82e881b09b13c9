//! The fields of a pod that decisions read.
//!
//! [`PodView::from_api`] parses the object once. `demand` adds up requests and limits, `qos` gives
//! the class, `phase` which pods have ended, `priority` which pods are critical, `resize` what counts while resources change in
//! place, [`status`] what a node writes back.

mod demand;
mod ephemeral;
mod phase;
mod priority;
mod qos;
mod resize;
pub mod status;
mod view;
mod volume;

pub use demand::Overhead;
pub use ephemeral::as_container;
pub use phase::{is_terminal, is_terminal_phase, phase};
pub use priority::{SYSTEM_CLUSTER_CRITICAL, SYSTEM_CRITICAL_PRIORITY, SYSTEM_NODE_CRITICAL};
pub use qos::QosClass;
pub use resize::ResizeScope;
pub use view::{ContainerKind, ContainerView, PodView, Requirements};
pub use volume::VolumeView;

#[cfg(test)]
mod tests;
