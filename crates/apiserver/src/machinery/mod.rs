//! What the server does with objects, whatever their kind: JSON in, JSON out.
//!
//! Nothing here reads a clock, a file or a socket. Read [`schema`] first: the one table of types.
//! Then [`json`] (bodies and what is odd in them), [`patch`] (the three patches that clients
//! compute), [`apply`] (server-side apply and who manages which field) and [`status`] (how a refusal is told).

pub mod apply;
mod go;
pub mod json;
pub mod patch;
pub mod schema;
pub mod status;
