//! Pods from files, and the mirrors by which the API shows them.
//!
//! Reading order: `manifest` (a file becomes a pod, pure), `directory` (files come and go),
//! `mirror` (the API follows).

mod defaults;
mod directory;
mod manifest;
mod mirror;

pub(super) use directory::follow_directory;
pub(super) use mirror::keep_mirrors;
