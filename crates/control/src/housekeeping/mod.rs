//! Keeping the cluster tidy.
//!
//! Loops that remove what nobody needs any more and count what is there: [`pod_gc`],
//! [`evicted_pods`] (records of evictions), [`ttl_after_finished`] (finished jobs), [`namespace`]
//! (content of deleted namespaces), [`garbage_collector`] (objects whose owners are gone),
//! [`resource_quota`]. Which kinds there are is asked of the server: `discovery`.
//!
//! The service account `default` and the ConfigMap `kube-root-ca.crt` of every namespace are made
//! by Plimsoll's API server itself; no loop does.

mod discovery;
pub mod evicted_pods;
pub mod garbage_collector;
pub mod namespace;
pub mod pod_gc;
pub mod resource_quota;
pub mod ttl_after_finished;
