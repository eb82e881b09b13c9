//! The agent: registers a node, keeps it alive in the API, and runs its pods.
//!
//! Reading order: `system_info`, `conditions`, `node_object` (what is said of the node, as pure
//! values), `heartbeat` (saying it).

mod conditions;
mod heartbeat;
mod node_object;
mod options;
mod system_info;

pub use options::{Directories, EmbeddedChoice, Options, RuntimeChoice, Serving};
pub use system_info::KUBELET_VERSION;
