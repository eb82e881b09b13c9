//! The processing of objects between the request and the store, for all kinds: JSON in, JSON out.
//!
//! Nothing here uses a clock, a file, a socket or randomness; callers pass what is needed.
//!
//! Reading order: [`schema`] (the Go types behind the kinds), [`decoding`] (bodies to objects),
//! [`defaulting`], [`conversion`], [`patch`] (the three patches that clients compute), [`apply`]
//! (server-side apply and the managers of fields), [`strategy`], [`validation`], [`admission`],
//! and [`write`](mod@write), which runs them all. In addition: [`table`] (objects as `kubectl get`
//! prints them), [`event_encoding`] (one stored form, two groups), [`manifest`] (what a create would
//! answer, with every mistake).

pub mod admission;
pub mod apply;
pub mod conversion;
pub mod decoding;
pub mod defaulting;
pub mod event_encoding;
pub(crate) mod go;
pub mod manifest;
pub mod patch;
pub mod schema;
pub mod strategy;
pub mod table;
pub mod validation;
pub mod write;
