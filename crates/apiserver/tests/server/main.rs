//! The whole server: opened on a store, served on a loopback socket, driven by clients.
//!
//! [`cluster`] starts one, [`caller`] sends requests, [`objects`] are their bodies. Each other
//! file is about one topic. Tests in [`etcd`] and [`python`] need tools of the distribution.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod caller;
mod cluster;
mod objects;

mod abuse;
mod anywhere;
mod audit;
mod certificates;
mod deletion;
mod depth;
mod disruption;
mod encryption;
mod etcd;
mod fairness;
mod identities;
mod joining;
mod lists;
mod model;
mod namespaces;
mod nodes;
mod observed;
mod overload;
mod pod_security;
mod python;
mod quotas;
mod refusals;
mod slow_watchers;
mod sockets;
mod storage;
mod tasks;
mod tokens;
mod unreadable;
mod watchers;
mod watches;
mod writes;
