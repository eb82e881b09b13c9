//! The control loops: decisions of `plimsoll-core` turned into writes to a Kubernetes API.
//!
//! Every loop talks to the API through a `kube::Client` alone, so each runs against Plimsoll's own
//! server and against any other Kubernetes.
//!
//! Reading order: [`work_queue`] (keys that wait for a worker), [`informer`] (objects kept in
//! memory), [`workloads`] (the controllers of DaemonSets, ReplicaSets, Deployments, Jobs and
//! PodDisruptionBudgets).

pub mod informer;
pub mod work_queue;
pub mod workloads;

#[cfg(test)]
mod testing;
