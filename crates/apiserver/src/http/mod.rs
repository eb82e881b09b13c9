//! Requests and responses as values: nothing here opens a socket.
//!
//! Reading order: [`query`] (query parameters), [`negotiation`] (media types of bodies),
//! [`protobuf`] (bodies that are not JSON), [`warning`] (the `Warning`
//! header), [`discovery`] and [`openapi`] (the documents that describe the server itself).

pub mod discovery;
pub mod document;
pub mod negotiation;
pub mod openapi;
pub mod protobuf;
pub mod query;
pub mod warning;
