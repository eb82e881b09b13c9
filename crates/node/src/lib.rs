//! The node agent: runs pods under cgroups, measures them, and answers as a kubelet does.
//!
//! Decisions are core's; this crate reads the machine, carries decisions out and reports back. It
//! knows the cluster only through `kube::Client`, so any Kubernetes API server will do.
//!
//! Containers, images and cgroups are `plimsoll_runtime`'s.
//!
//! Reading order: [`machine`] and [`stats`] (what there is, and what is used), [`volumes`]
//! (directories for containers), [`devices`] (device plugins), [`project_quota`] (what directories hold,
//! counted by the kernel), [`pods`] (one worker per pod), [`eviction`] (which pod is evicted when the node
//! runs short of resources), [`shutdown`] (all of them in order), [`server`] (the kubelet API),
//! [`identity`] (its certificates), [`teardown`] (removes what a node leaves on the machine), [`agent`]
//! (all of it together).

pub mod agent;
pub mod devices;
pub mod eviction;
mod folder;
pub mod identity;
pub mod machine;
pub mod pods;
pub mod preflight;
pub mod project_quota;
pub mod server;
pub mod shutdown;
pub mod stats;
pub mod teardown;
pub mod volumes;
