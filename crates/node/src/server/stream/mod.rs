//! Connections that speak something else than HTTP: the streams of processes, and ports.
//!
//! A client requests an upgrade to a WebSocket or to SPDY/3.1. Where the runtime serves streams
//! itself, the connection is passed on; else it ends here.
//!
//! Reading order: `agreement` (what is spoken), `session` (a process and a client), `status` (how it
//! ended); `websocket` and, over `spdy`, `remote_command` and `port_forward` (protocols); `upgrade`
//! (how it begins); `proxy` and `translate` (streams of the runtime).

mod agreement;
mod port_forward;
mod proxy;
mod remote_command;
pub(super) mod session;
mod sizes;
pub(super) mod spdy;
mod status;
mod translate;
mod upgrade;
mod websocket;

pub(super) use agreement::{Agreement, Spoken, agree, require_upgrade};
pub(super) use port_forward::Target;
pub(super) use translate::translate;
pub(super) use upgrade::Streams;
