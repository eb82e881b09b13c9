//! The control loops: decisions of `plimsoll-core` turned into writes to a Kubernetes API.
//!
//! Every loop talks to the API through a `kube::Client` alone, so each runs against Plimsoll's own
//! server and against any other Kubernetes.
//!
//! What all loops share, beyond `plimsoll-client`: [`leadership`] (which process acts), [`serving`]
//! (health, metrics and configuration of a running loop), [`work_queue`] (keys that wait for a
//! worker), [`loops`] (each started again if it fails), `disruption` (the condition of a pod that
//! is deleted).
//!
//! The loops: [`scheduler`]; and, all of them started by [`controllers`], [`nodes`] (nodes that fall
//! silent, and their pods), [`workloads`] (Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs,
//! CronJobs, PodDisruptionBudgets), [`housekeeping`] (what is removed and counted).

pub mod controllers;
mod disruption;
pub mod housekeeping;
pub mod leadership;
pub mod loops;
pub mod nodes;
pub mod scheduler;
pub mod serving;
pub mod work_queue;
pub mod workloads;
