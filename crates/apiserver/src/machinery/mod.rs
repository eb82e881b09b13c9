//! What happens to objects between the wire and the store: JSON in, JSON out.
//!
//! Nothing here does IO, reads a clock or rolls dice; callers pass what is needed.
//!
//! Reading order: [`kind`], [`go_types`] (the Go types behind the kinds), [`decoding`] (bodies to
//! objects), [`defaulting`], [`conversion`], [`strategy`], [`validation`], [`admission`], and
//! [`write`](mod@write), which runs them all.

pub mod admission;
pub mod conversion;
pub mod decoding;
pub mod defaulting;
pub mod go_types;
pub mod kind;
pub mod strategy;
pub mod validation;
pub mod write;
