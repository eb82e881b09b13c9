//! Nodes, pods and their records over time.
//!
//! All timing decisions of the control loops: time comes in as an argument, and what is to be
//! done and when to ask again comes out. Nothing here reads a cluster or waits.
//!
//! Reading order: [`node_health`] (does the node send heartbeats?), [`node_taints`] (what a
//! condition does to the node), [`token_bucket`], [`zone`] (how much of the cluster is gone),
//! [`taint_queue`] (how fast nodes are tainted), [`taint_eviction`] (when pods leave a tainted
//! node), [`pod_gc`], [`retention`] (which evicted pods are kept), [`recreation`] (pods that are
//! evicted again and again), [`ttl_after_finished`], [`node_labels`], [`namespace_defaults`].

pub mod namespace_defaults;
pub mod node_health;
pub mod node_labels;
pub mod node_taints;
pub mod pod_gc;
pub mod recreation;
pub mod retention;
pub mod taint_eviction;
pub mod taint_queue;
pub mod token_bucket;
pub mod ttl_after_finished;
pub mod zone;
