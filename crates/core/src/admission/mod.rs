//! Rules that objects pass on their way into the cluster, and pods on their way onto a node.
//!
//! One file per rule. A rule adds what its kind leaves open, or refuses with upstream's words; it
//! never reads the cluster itself: what it needs to know is passed in. Each file is on its own.

pub mod daemon_set;
pub mod default_toleration_seconds;
pub mod forbidden;
pub mod node_admit;
pub mod node_taints;
pub mod priority;
