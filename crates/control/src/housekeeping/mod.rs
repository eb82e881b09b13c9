//! Keeping the cluster tidy.
//!
//! Loops that remove what is no longer needed and count what is there: [`pod_gc`], [`evicted_pods`]
//! (records of evictions), [`ttl_after_finished`] (finished jobs), [`namespace`] (content of
//! deleted namespaces), [`garbage_collector`] (objects whose owners are gone), [`resource_quota`],
//! [`namespace_defaults`] (objects that every namespace has). The server's kinds are read by
//! `discovery`.

mod discovery;
pub mod evicted_pods;
pub mod garbage_collector;
pub mod namespace;
pub mod namespace_defaults;
pub mod pod_gc;
pub mod resource_quota;
pub mod ttl_after_finished;
