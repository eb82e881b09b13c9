//! The control loops: decisions of `plimsoll-core` turned into writes to a Kubernetes API.
//!
//! Every loop talks to the API through a `kube::Client` alone, so each runs against Plimsoll's own
//! server and against any other Kubernetes.
//!
//! What all loops share: [`process`] (who this process is), [`leadership`] (which process acts),
//! [`events`] (what is told to people), [`serving`] (what is shown of a running loop),
//! [`work_queue`] (keys that wait for a worker), [`informer`] (objects kept in memory), [`clock`]
//! (what time it is), [`watching`] (every change of a kind), `disruption` (telling a pod why it is
//! deleted).
//!
//! The loops: [`scheduler`]; and, all of them started by [`controllers`], [`nodes`] (nodes that fall
//! silent, and their pods), [`workloads`] (DaemonSets,
//! ReplicaSets, Deployments, Jobs, PodDisruptionBudgets), [`housekeeping`] (what is removed and
//! counted).

pub mod clock;
pub mod controllers;
mod disruption;
pub mod events;
pub mod housekeeping;
pub mod informer;
pub mod leadership;
pub mod nodes;
pub mod process;
pub mod scheduler;
pub mod serving;
mod unmanaged;
pub mod watching;
pub mod work_queue;
pub mod workloads;

#[cfg(test)]
mod testing;
