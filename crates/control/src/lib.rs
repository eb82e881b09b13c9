//! The control loops: decisions of `plimsoll-core` turned into writes to a Kubernetes API.
//!
//! Every loop talks to the API through a `kube::Client` alone, so each runs against Plimsoll's own
//! server and against any other Kubernetes.

pub mod workloads;
