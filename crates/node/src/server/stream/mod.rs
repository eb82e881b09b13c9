//! Connections that speak something else than HTTP: the streams of processes, and ports.
//!
//! A client asks for an upgrade to a WebSocket or to SPDY/3.1. Where the runtime serves streams
//! itself, the connection is passed on; else it ends here.
//!
//! Reading order: `agreement` (what is spoken), `session` (a process and a client), `websocket`,
//! `status` (how it ended), `activity` (when nothing happens any more).

mod activity;
mod agreement;
mod proxy;
pub(super) mod session;
mod sizes;
mod status;
mod upgrade;
mod websocket;

pub(super) use agreement::{Agreement, agree};
pub(super) use upgrade::Streams;
