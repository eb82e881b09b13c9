//! Keeping the cluster tidy.
//!
//! Loops that remove what nobody needs any more and count what is there: [`pod_gc`],
//! [`evicted_pods`] (records of evictions), [`ttl_after_finished`] (finished jobs), [`namespace`]
//! (content of deleted namespaces), [`garbage_collector`] (objects whose owners are gone),
//! [`resource_quota`], [`furniture`] (what every namespace has). Which kinds there are is asked of
//! the server: `discovery`.

mod discovery;
pub mod evicted_pods;
pub mod furniture;
pub mod garbage_collector;
pub mod namespace;
pub mod pod_gc;
pub mod resource_quota;
pub mod ttl_after_finished;
