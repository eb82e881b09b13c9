//! Node lifecycle: nodes that stop sending heartbeats, and their pods.
//!
//! Two loops that talk only through the API: [`lifecycle`] marks nodes (conditions, taints),
//! [`taint_eviction`] deletes the pods that do not tolerate the marks. All decisions are those of
//! `plimsoll_core::lifecycle`.

pub mod lifecycle;
pub mod taint_eviction;
