//! The cgroups of a node: which there are, and what is written into each.
//!
//! Nothing here touches a file. A [`ResourceConfig`] is what a cgroup should have, [`Host`] renders
//! it to file names and texts for cgroup v1 or v2, and a [`Plan`] lists all cgroups above the
//! containers, parents first, for a node agent to apply. Containers get
//! [`LinuxContainerResources`], which a container runtime turns into cgroups of its own.
//!
//! Reading order: [`conversion`] (shares, quotas, weights), [`CgroupName`] (paths), [`HugePageSize`],
//! [`ResourceConfig`] and [`Host`], then from the root down: [`node`], [`QosTiers`], [`pod`],
//! [`container`], [`oom_score_adj`], and [`Plan`] for all of it.

mod config;
pub mod container;
pub mod conversion;
mod huge_page;
mod memory_qos;
mod name;
pub mod node;
mod oom_score;
mod plan;
pub mod pod;
mod qos_tier;
mod swap;

pub use config::{Host, ResourceConfig, Version, WeightFormula};
pub use container::LinuxContainerResources;
pub use huge_page::{HugePageSize, huge_page_limits};
pub use memory_qos::MemoryQos;
pub use name::{
    CgroupName, CgroupPath, Driver, InvalidComponent, InvalidPath, Runtime, container_path,
};
pub use oom_score::oom_score_adj;
pub use plan::{Plan, PlanInput, PlannedCgroup, ReservedCgroup, compute_plan};
pub use qos_tier::{QosTiers, TierSettings, TierUsage, compute_qos_tiers};
pub use swap::SwapBehavior;

#[cfg(test)]
mod tests;
