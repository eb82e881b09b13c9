//! The Kubernetes API of Plimsoll: requests, objects, storage, responses.
//!
//! Decisions about pods and nodes are `plimsoll-core`'s; this crate implements HTTP, objects as
//! JSON and the store. It never runs a controller, and connects to nodes only in [`node_proxy`].

pub mod auth;
pub mod body;
pub mod bounds;
pub mod cache;
pub mod encryption;
pub mod http;
pub mod kinds;
pub mod machinery;
pub mod node_proxy;
mod pointer;
pub mod server;
pub mod status;
pub mod store;
