//! The three patches that a client computes: JSON patch, merge patch, strategic merge patch.
//!
//! Reading order: `json_patch`, `merge_patch`, [`strategic`] (the pure functions), then
//! [`request`], which decodes a request's body, applies it and returns upstream's errors.

pub mod json_patch;
pub mod merge_patch;
mod operations;
pub mod request;
pub mod strategic;

pub use json_patch::json_patch;
pub use merge_patch::merge_patch;
pub use request::{PatchType, Patched, apply_patch};
pub use strategic::strategic_merge_patch;
