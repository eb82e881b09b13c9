//! What the node frees without hurting a pod: dead containers, unused images, old logs.
//!
//! What goes is decided by `plimsoll_core::eviction::{container_gc, image_gc}`; here the runtime is
//! asked what there is, and told. Periodic runs and those that eviction asks for differ by scope.

pub mod containers;
pub mod images;
pub mod logs;
