//! What happens to objects between the wire and the store: JSON in, JSON out.
//!
//! Nothing here does IO, reads a clock or rolls dice; callers pass what is needed.
//!
//! Reading order: [`schema`] (the Go types behind the kinds), [`decoding`] (bodies to objects),
//! [`defaulting`], [`validation`].

pub mod decoding;
pub mod defaulting;
pub mod kind;
pub mod schema;
