//! From machine and settings to what pods may have.

use std::collections::BTreeMap;

use crate::object::resource_rules::is_extended;
use crate::quantity::Quantity;
use crate::resources::{ResourceList, ResourceName};
use crate::threshold::{Operator, Signal, Threshold};

use super::machine::{Machine, PodCount};
use super::terms::{Allocatable, Terms};

/// The operator's reservations.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// `kubeReserved`.
    pub kube_reserved: ResourceList,
    /// `systemReserved`.
    pub system_reserved: ResourceList,
    /// The thresholds of `evictionHard` alone, see [`crate::threshold::Statements::hard_only`];
    /// empty under `--experimental-allocatable-ignore-eviction`.
    pub hard_eviction: Vec<Threshold>,
    /// How many pods the node takes.
    pub pod_count: PodCount,
    /// Whether `enforceNodeAllocatable` lists `pods` and `cgroupsPerQOS` is on.
    pub is_enforced_on_pods: bool,
}

/// The resources of device plugins.
#[derive(Clone, Debug, Default)]
pub struct DevicePlugins {
    /// All devices.
    pub capacity: ResourceList,
    /// Healthy devices.
    pub allocatable: ResourceList,
    /// Resources whose plugin is gone; they stay listed with zero.
    pub removed: Vec<ResourceName>,
}

/// The two lists of a node status.
#[derive(Clone, Debug, Default)]
pub struct NodeResources {
    /// node.status.capacity.
    pub capacity: ResourceList,
    /// node.status.allocatable.
    pub allocatable: ResourceList,
}

/// What is left for pods. `previous` is the node status before the update: what stands there and
/// is not the machine's or a plugin's was put there by others and stays.
pub fn compute_allocatable(
    machine: &Machine,
    settings: &Settings,
    devices: &DevicePlugins,
    previous: &NodeResources,
) -> Allocatable {
    let machine_capacity = machine.capacity();
    let hard_eviction = hard_eviction_reservation(&settings.hard_eviction, &machine_capacity);
    let mut answer = Allocatable::default();
    for (name, quantity) in &machine_capacity {
        let mut terms = Terms {
            machine: Some(quantity.clone()),
            kube_reserved: settings.kube_reserved.get_or_zero(name),
            system_reserved: settings.system_reserved.get_or_zero(name),
            hard_eviction: hard_eviction.get_or_zero(name),
            ..Terms::default()
        };
        let parts = [&terms.system_reserved, &terms.kube_reserved];
        terms.absolute = Some(reduced(quantity, parts));
        terms.cgroup_limit = if settings.is_enforced_on_pods {
            terms.absolute.clone()
        } else {
            terms.machine.clone()
        };
        answer.terms.insert(name.clone(), terms);
    }
    let pods = settings.pod_count.on(machine.cores).to_quantity();
    let capacity = status_capacity(machine_capacity, pods, devices, previous);
    let allocatable = status_allocatable(&capacity, &answer.reservation(), devices, previous);
    set_status(&mut answer.terms, &capacity, &allocatable);
    answer
}

fn set_status(
    terms: &mut BTreeMap<ResourceName, Terms>,
    capacity: &ResourceList,
    allocatable: &ResourceList,
) {
    for (name, quantity) in capacity {
        terms.entry(name.clone()).or_default().capacity = Some(quantity.clone());
        if name.huge_page_size().is_some() {
            let memory = terms.entry(ResourceName::MEMORY).or_default();
            memory.huge_pages.add(quantity);
        }
    }
    for (name, quantity) in allocatable {
        terms.entry(name.clone()).or_default().allocatable = Some(quantity.clone());
    }
}

/// Only these two signals keep something that is also shared out.
fn hard_eviction_reservation(thresholds: &[Threshold], capacity: &ResourceList) -> ResourceList {
    thresholds
        .iter()
        .filter(|threshold| threshold.operator == Operator::LessThan)
        .filter_map(|threshold| {
            let name = match threshold.signal {
                Signal::MemoryAvailable => ResourceName::MEMORY,
                Signal::NodeFsAvailable => ResourceName::EPHEMERAL_STORAGE,
                _ => return None,
            };
            let whole = capacity.get_or_zero(&name);
            Some((name, threshold.value.at_capacity(&whole)))
        })
        .collect()
}

fn status_capacity(
    machine_capacity: ResourceList,
    pods: Quantity,
    devices: &DevicePlugins,
    previous: &NodeResources,
) -> ResourceList {
    let mut capacity = previous.capacity.clone();
    for (name, quantity) in machine_capacity {
        if name != ResourceName::PID {
            capacity.insert(name, quantity);
        }
    }
    capacity.insert(ResourceName::PODS, pods);
    for (name, quantity) in &devices.capacity {
        capacity.insert(name.clone(), quantity.clone());
    }
    for name in &devices.removed {
        capacity.insert(name.clone(), Quantity::ZERO);
    }
    capacity
}

fn status_allocatable(
    capacity: &ResourceList,
    reservation: &ResourceList,
    devices: &DevicePlugins,
    previous: &NodeResources,
) -> ResourceList {
    let mut allocatable: ResourceList = previous
        .allocatable
        .iter()
        .filter(|(name, _)| capacity.contains(name) || !is_extended(name))
        .map(|(name, quantity)| (name.clone(), quantity.clone()))
        .collect();
    for (name, quantity) in capacity {
        let left = match reservation.get(name) {
            Some(reserved) => reduced(quantity, [reserved]),
            None => reduced(quantity, []),
        };
        allocatable.insert(name.clone(), left);
    }
    for (name, quantity) in &devices.allocatable {
        allocatable.insert(name.clone(), quantity.clone());
    }
    let huge_pages = capacity
        .iter()
        .filter(|(name, _)| name.huge_page_size().is_some());
    for (_, quantity) in huge_pages {
        let memory = allocatable.get_or_zero(&ResourceName::MEMORY);
        allocatable.insert(ResourceName::MEMORY, reduced(&memory, [quantity]));
    }
    allocatable
}

/// The difference, but not below zero.
fn reduced<const N: usize>(whole: &Quantity, parts: [&Quantity; N]) -> Quantity {
    let mut left = whole.clone();
    for part in parts {
        left.sub(part);
    }
    if left.signum() < 0 {
        left = Quantity::new(0, left.format());
    }
    left
}
