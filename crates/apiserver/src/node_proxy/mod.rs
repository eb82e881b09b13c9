//! Requests to node agents: logs, commands, forwarded ports, usage.
//!
//! Callers have authenticated and authorized the request and looked the objects up; everything
//! here begins with a request, a pod and a node, and ends with a response. A node is trusted only
//! if its certificate is signed by the cluster's authority. Each request has a connection of its
//! own, which ends with it: when either side closes, the other is closed.
//!
//! Upgraded connections are forwarded byte for byte, WebSockets and SPDY alike, since a v1.36
//! kubelet accepts both. The one translation is for port forwarding over WebSockets, which carries
//! SPDY in its messages: those are unwrapped, so that a node needs to implement SPDY only.
//!
//! Reading order: [`endpoint`] (a node's address), [`connector`] (connections), `exchange` (one
//! request), `options` and `container` (the caller's options), `log`, `log_socket`, `stream`, `websocket`
//! and `tunnel` (exec, attach, port-forward), `forward` (the proxy to a node's own
//! paths and to pods), [`usage`] (`metrics.k8s.io`), `error_response` (error responses).

pub mod connector;
mod container;
pub mod endpoint;
mod error_response;
mod exchange;
mod forward;
mod headers;
mod log;
mod log_socket;
mod options;
mod stream;
mod tunnel;
pub mod usage;
mod websocket;

pub use connector::{ConnectorError, NodeConnector, Timeouts};
pub use endpoint::{NodeEndpoint, ProxyTarget, endpoint_of};
pub use error_response::ErrorResponse;
pub use usage::{SummaryError, node_metrics, pod_metrics};
