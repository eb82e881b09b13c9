//! The language of requests and answers, as values: nothing here opens a socket.
//!
//! Reading order: [`query`] (what the address asks for), [`negotiation`] (what forms the client
//! takes and sends), [`protobuf`] (bodies that are not JSON), [`warning`] (how remarks are
//! told), [`discovery`] and [`openapi`] (the documents that describe the server itself).

pub mod discovery;
pub mod document;
pub mod negotiation;
pub mod openapi;
pub mod protobuf;
pub mod query;
pub mod warning;
