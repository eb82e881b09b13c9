//! The permissions of kubelets.
//!
//! A kubelet reads only what the pods on its node need, and writes only its own node and those
//! pods: a compromised node must not compromise the cluster. Reads are decided before the object is
//! known, by [`NodeGraph`] and [`authorize`]; writes are decided again with the object at hand, by
//! [`restrict`].
//!
//! Reading order: `references` (the objects a pod refers to), `graph` (which nodes need them),
//! `authorizer`, `restriction` (the admission plugin NodeRestriction), and parts of it:
//! `mirror_pod`, `own_node`, `audience` (the audiences of a kubelet's tokens).

mod audience;
mod authorizer;
mod graph;
mod mirror_pod;
mod own_node;
mod references;
mod restriction;

pub use authorizer::authorize;
pub use graph::NodeGraph;
pub use restriction::{Denial, Operation, Write, restrict};

#[cfg(test)]
mod tests;
