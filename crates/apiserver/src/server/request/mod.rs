//! One request, from its bytes to its response.
//!
//! `handle` is the path of all requests: `request_context` (what metrics and audit record), `route` (what
//! the path means), `operation` and `call` (what a handler gets), `respond` (the response). `blocking`
//! and `clock` are for handlers that compute or wait; `annotations` go into the audit log.

pub(super) mod annotations;
pub(super) mod blocking;
pub(super) mod call;
pub(super) mod clock;
pub(super) mod handle;
pub(super) mod operation;
pub(super) mod request_context;
pub(super) mod respond;
pub(super) mod route;
