//! The node agent: runs pods under cgroups, measures them, and answers as a kubelet does.
//!
//! Decisions are core's; this crate reads the machine, carries decisions out and reports back. It
//! knows the cluster only through `kube::Client`, so any Kubernetes API server will do.
//!
//! Reading order: [`runtime`] (the verbs of a container runtime, and two that speak them),
//! [`image`] (what the embedded runtime runs), [`cgroup`] (core's plan written into the kernel),
//! [`machine`] and [`stats`] (what there is, and what is used), [`volumes`] (directories for containers), [`devices`] (device plugins), [`project_quota`] (what they hold, counted by the kernel), [`pods`] (one worker per pod),
//! [`eviction`] (which pod is evicted when the node runs short of resources), [`shutdown`] (all of them in order), [`server`] (the kubelet API), [`identity`] (its certificates), `beneath` (files, and no links out of their directory), [`walk`] (what directories hold, at a bounded price), [`sysctl`] (kernel settings, and what they were), [`teardown`] (removes what a node leaves on the machine), [`agent`] (all of it together).

pub mod agent;
mod beneath;
pub mod cgroup;
pub mod devices;
pub mod eviction;
mod folder;
pub mod huge_pages;
pub mod identity;
pub mod image;
pub mod machine;
mod mapped_mount;
pub mod pods;
pub mod preflight;
pub mod project_quota;
pub mod runtime;
pub mod server;
pub mod shutdown;
pub mod stats;
pub mod sysctl;
pub mod teardown;
pub mod volumes;
pub mod walk;
