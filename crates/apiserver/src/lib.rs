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

/// The allocator of every program that has this server in it. A request makes and drops many small
/// values, which this allocator does in about half the time of the C library's. It is declared here
/// and not by the program so that the calls to it are compiled for speed.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
