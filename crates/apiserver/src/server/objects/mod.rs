//! The verbs on objects: `list` and `watch`, `create`, `write` (update, patch), `delete`, and
//! `subresources`. `identity` generates uids and names.

pub(super) mod create;
pub(super) mod delete;
pub(super) mod identity;
pub(super) mod list;
pub(super) mod subresources;
pub(super) mod watch;
pub(super) mod write;
