//! Every cgroup above the containers, in the order in which they can be made.
//!
//! A plan is the same for cgroup v1 and v2; [`super::Host::render`] leaves out what the machine
//! cannot take.

use crate::object::pod::{PodView, QosClass};
use crate::resources::ResourceList;

use super::config::ResourceConfig;
use super::name::{CgroupName, CgroupPath, Driver, InvalidComponent};
use super::node::{Enforced, reserved_config, resource_config};
use super::pod::{PodSettings, pod_config};
use super::qos_tier::{TierSettings, compute_qos_tiers};

/// The cgroups of a node, parents first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The desired cgroups.
    pub cgroups: Vec<PlannedCgroup>,
}

/// One cgroup and what it should have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedCgroup {
    /// Its name, independent of the driver.
    pub name: CgroupName,
    /// Where it is below the mount point.
    pub path: CgroupPath,
    /// Its desired settings.
    pub config: ResourceConfig,
    /// Whether it is the operator's: updated if it is there, never made.
    pub is_foreign: bool,
}

/// The input of a plan.
#[derive(Clone, Debug)]
pub struct PlanInput<'a> {
    /// Which program creates cgroups.
    pub driver: Driver,
    /// `cgroupRoot`, below which `kubepods` is made.
    pub root: CgroupName,
    /// The limits of all pods together: [`crate::allocatable::Allocatable::cgroup_limits`].
    pub pod_limits: &'a ResourceList,
    /// The CPUs of the machine, where the CPU manager leaves pods all of them.
    pub cpuset: Option<String>,
    /// The tiers.
    pub tiers: &'a TierSettings,
    /// The pods' cgroups.
    pub pod_settings: &'a PodSettings,
    /// Pods that are to run.
    pub pods: &'a [PodView],
    /// Cgroups that reservations are enforced on.
    pub reserved: &'a [ReservedCgroup],
}

/// A cgroup of the operator that a reservation is enforced on.
#[derive(Clone, Debug)]
pub struct ReservedCgroup {
    /// `kubeReservedCgroup` or `systemReservedCgroup`.
    pub name: CgroupName,
    /// `kubeReserved` or `systemReserved`.
    pub reservation: ResourceList,
    /// Whether by all resources or by cpu alone.
    pub enforced: Enforced,
}

/// The cgroups that the node should have. Fails for a pod whose uid no cgroup can be named after.
pub fn compute_plan(input: &PlanInput<'_>) -> Result<Plan, InvalidComponent> {
    let kubepods = CgroupName::kubepods(&input.root);
    let tiers = compute_qos_tiers(input.pods, input.tiers);
    let all_pods = ResourceConfig {
        cpuset: input.cpuset.clone(),
        ..resource_config(input.pod_limits, Enforced::All)
    };
    let mut own = vec![
        (kubepods.clone(), all_pods.overlaid_with(tiers.guaranteed)),
        (
            CgroupName::qos_tier(&kubepods, QosClass::Burstable),
            tiers.burstable,
        ),
        (
            CgroupName::qos_tier(&kubepods, QosClass::BestEffort),
            tiers.best_effort,
        ),
    ];
    for pod in input.pods {
        let name = CgroupName::pod(&kubepods, pod.qos_class(), &pod.uid)?;
        own.push((name, pod_config(pod, input.pod_settings)));
    }
    let foreign = input.reserved.iter().filter_map(|reserved| {
        let memory_qos = input.tiers.memory_qos;
        let config = reserved_config(&reserved.reservation, reserved.enforced, memory_qos)?;
        Some((reserved.name.clone(), config))
    });
    let planned = |is_foreign| {
        move |(name, config): (CgroupName, ResourceConfig)| PlannedCgroup {
            path: name.to_path(input.driver),
            name,
            config,
            is_foreign,
        }
    };
    let own = own.into_iter().map(planned(false));
    let cgroups = own.chain(foreign.map(planned(true))).collect();
    Ok(Plan { cgroups })
}
