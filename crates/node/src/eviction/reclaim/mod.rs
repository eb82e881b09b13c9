//! What the node frees without hurting a pod: dead containers, unused images, old logs.
//!
//! `plimsoll_core::eviction::{container_gc, image_gc}` decide what is removed; this module lists the
//! runtime's objects and removes them. Periodic runs and those that eviction requests differ by scope.

pub mod containers;
pub mod images;
pub mod logs;
