//! What happens to objects between the wire and the store, whatever their kind: JSON in, JSON out.
//!
//! Nothing here reads a clock, a file or a socket, or rolls dice; callers pass what is needed.
//!
//! Reading order: [`go_types`] (the Go types behind the kinds), [`decoding`] (bodies to
//! objects), [`defaulting`], [`conversion`], [`strategy`], [`validation`], [`admission`], and
//! [`write`](mod@write), which runs them all. For patches: [`schema`] (how types merge), [`json`]
//! (bodies and what is odd in them), [`patch`] (the three patches that clients compute), [`apply`]
//! (server-side apply and who manages which field). Beside
//! them: [`table`] (objects as `kubectl get` shows them), [`event_encoding`] (one store, two
//! groups).

pub mod admission;
pub mod apply;
pub mod conversion;
pub mod decoding;
pub mod defaulting;
pub mod event_encoding;
pub(crate) mod go;
pub mod go_types;
pub mod json;
pub mod patch;
pub mod schema;
pub mod strategy;
pub mod table;
pub mod validation;
pub mod write;
