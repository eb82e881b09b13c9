//! What a kubelet may do.
//!
//! A kubelet reads only what the pods on its node need, and writes only about itself and them: one
//! broken node must not give away the cluster. Reading is decided before the object is known, by
//! [`NodeGraph`] and [`authorize`]; writing is decided again with the object at hand, by
//! [`restrict`].
//!
//! Reading order: `references` (what a pod speaks of), `graph` (who may reach it), `authorizer`,
//! `restriction` (the admission plugin NodeRestriction), and parts of it: `mirror_pod`, `own_node`,
//! `audience` (whom a kubelet's tokens may be for).

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
