//! What the server does beside requests: `bootstrap` (default objects of a new cluster), `storage`
//! (snapshots, and space), `own_events` (events about its store), `node_client` (its certificate for nodes),
//! `signing` (certificates that clients request).

pub(super) mod bootstrap;
pub(super) mod node_client;
pub(super) mod own_events;
pub(super) mod signing;
pub(super) mod storage;
