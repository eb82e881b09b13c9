//! SPDY/3.1, as far as Kubernetes speaks it: many streams over one connection.
//!
//! Written after draft 3.1 and what moby/spdystream does with it. Windows are granted, so that a
//! client that heeds them is never stuck, but not heeded: spdystream grants none, and its clients
//! would never receive more than the first 64 KiB.
//!
//! Reading order: `frame` (what is sent), `header` and `dictionary` (its compressed part),
//! `connection` (streams over frames),
//! `reader` and `writer` (its two directions).

mod connection;
mod dictionary;
mod frame;
mod header;
mod reader;
mod writer;

pub(in crate::server) use connection::{Connection, Limits, Outflow, Role, Stream};
pub(in crate::server) use header::Headers;

#[cfg(test)]
mod tests;
