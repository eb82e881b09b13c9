//! The Kubernetes API of Plimsoll: what clients send, what is stored, what they get back.
//!
//! Decisions about pods and nodes are `plimsoll-core`'s; this crate knows HTTP, objects as JSON and
//! the store. It never talks to a node or runs a controller.

pub mod auth;
pub mod cache;
pub mod http;
pub mod kinds;
pub mod machinery;
pub mod server;
pub mod status;
pub mod store;
