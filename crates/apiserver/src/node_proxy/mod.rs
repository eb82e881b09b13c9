//! What the API server asks of node agents: logs, commands, forwarded ports, usage.
//!
//! Callers have authenticated and authorized the request and looked the objects up; everything
//! here begins with a request, a pod and a node, and ends with an answer. A node is believed only
//! when its certificate is signed by the cluster's authority. Each request has a connection of its
//! own, which ends with it: when either side goes away, the other is closed.
//!
//! Upgraded connections are passed on byte for byte, WebSockets and SPDY alike, since a v1.36
//! kubelet takes both. The one translation is for port forwarding over WebSockets, which carries
//! SPDY in its messages: those are unwrapped, so that a node needs to know SPDY only.
//!
//! Reading order: [`endpoint`] (where a node is), [`connector`] (how it is reached), `exchange` (one
//! request), `options` and `container` (what a caller asks for), `log`, `stream`, `websocket`
//! and `tunnel` (exec, attach, port-forward), `forward` (the proxy to a node's own
//! paths), [`usage`] (`metrics.k8s.io`), `answer` (how refusals are told).

mod answer;
pub mod connector;
mod container;
pub mod endpoint;
mod exchange;
mod forward;
mod headers;
mod log;
mod options;
mod stream;
mod tunnel;
pub mod usage;
mod websocket;

pub use answer::Refusal;
pub use connector::{ConnectorError, NodeConnector, Timeouts};
pub use endpoint::{NodeEndpoint, NodeTarget, endpoint_of};
pub use usage::{SummaryError, node_metrics, pod_metrics};
