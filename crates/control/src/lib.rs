//! The control loops: decisions of `plimsoll-core` turned into writes to a Kubernetes API.
//!
//! Every loop talks to the API through a `kube::Client` alone, so each runs against Plimsoll's own
//! server and against any other Kubernetes.
//!
//! What all loops share: [`process`] (who this process is), [`leadership`] (which process acts),
//! [`events`] (what is told to people), [`serving`] (what is shown of a running loop), [`watching`]
//! (all objects of a kind and every change).
//!
//! The loops: [`scheduler`].

pub mod events;
pub mod leadership;
pub mod process;
pub mod scheduler;
pub mod serving;
pub mod watching;

#[cfg(test)]
mod testing;
