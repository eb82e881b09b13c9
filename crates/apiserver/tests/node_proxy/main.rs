//! The API server between real clients and a node that is reached over TLS.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod front;
mod node;

mod commands;
mod logs;
mod ports;
mod proxy;
mod reach;
