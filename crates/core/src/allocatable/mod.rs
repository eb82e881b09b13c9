//! Node Allocatable: the resources of a machine that are left for pods.
//!
//! Three numbers per resource are easily mixed up; all are kept, with the terms they are made of:
//! - allocatable (node.status): capacity - kube - system - hard eviction, for memory also minus
//!   all huge pages. The scheduler fills the node up to here.
//! - absolute: capacity - kube - system. The limit of the `kubepods` cgroup, so that pods can be
//!   evicted at the hard threshold before the kernel kills one at the limit.
//! - reservation: kube + system + hard eviction. May not exceed the capacity.
//!
//! Worked example: 32Gi of memory, kube 2Gi, system 1Gi, hard eviction 100Mi give an allocatable
//! of 31033655296 bytes and a cgroup limit of 31138512896.
//!
//! Reading order: [`reserved`], [`Machine`], [`compute_allocatable`], [`Terms`]. Matches v1.36
//! pkg/kubelet/cm/node_container_manager_linux.go and pkg/kubelet/nodestatus/setters.go.

mod compute;
mod from_config;
mod machine;
mod terms;

pub use crate::config::reserved;
pub use compute::{DevicePlugins, NodeResources, Settings, compute_allocatable};
pub use machine::{HugePages, Machine, PodCount};
pub use terms::{Allocatable, OverReserved, Terms};

#[cfg(test)]
mod tests;
