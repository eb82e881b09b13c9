//! What containers were allocated and what is in force.
//!
//! Matches v1.36 pkg/kubelet/kubelet_pods.go, `convertContainerStatusResources`.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, ContainerStatus, PodStatus, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as ApiQuantity;
use plimsoll_core::cgroup::conversion::{millicores_from_quota, millicores_from_shares};
use plimsoll_core::object::pod::{Overhead, PodView};
use plimsoll_core::object::render_resource_list;
use plimsoll_core::resources::{Bytes, Millicores};
use plimsoll_runtime::wire::LinuxContainerResources;

use super::Input;
use crate::pod_fields;
use crate::pods::observed::{self, State};
use crate::pods::plan::Amounts;

/// Requests of up to so many millicores look equal in a cgroup.
const MIN_REQUEST: Millicores = Millicores(2);
/// So do limits of up to so many.
const MIN_LIMIT: Millicores = Millicores(10);

type List = BTreeMap<String, ApiQuantity>;

/// Adds allocated resources and those in force.
pub(super) fn add(
    input: Input<'_>,
    container: &Container,
    seen: &observed::Container,
    known: Option<&ContainerStatus>,
    status: &mut ContainerStatus,
) {
    let stated = container.resources.as_ref();
    status.allocated_resources = stated.and_then(|stated| stated.requests.clone());
    let mut resources = stated.cloned().unwrap_or_default();
    if seen.state == State::Running {
        let known = known.filter(|known| known.container_id == status.container_id);
        let known = known.and_then(|known| known.resources.as_ref());
        put_in_force(input, container, seen, known, &mut resources);
    }
    status.resources = Some(resources);
}

fn put_in_force(
    input: Input<'_>,
    container: &Container,
    seen: &observed::Container,
    known: Option<&ResourceRequirements>,
    resources: &mut ResourceRequirements,
) {
    let reported = seen.resources.as_ref().map(amounts_of);
    let actuated = input.actuated.containers.get(&container.name).copied();
    let allocated = Amounts::of_requirements(container.resources.as_ref());
    let in_force = reported
        .filter(|reported| *reported != Amounts::default())
        .or(actuated);
    if let Some(limits) = &mut resources.limits {
        let known = known.and_then(|known| known.limits.as_ref());
        let cpu = in_force.map(|amounts| amounts.cpu_limit);
        let cpu = cpu.filter(|cpu| *cpu > Millicores::ZERO);
        match cpu {
            Some(cpu) if cpu == allocated.cpu_limit => {}
            Some(cpu) if cpu > MIN_LIMIT || allocated.cpu_limit > MIN_LIMIT => {
                limits.insert("cpu".to_owned(), millicores(cpu));
            }
            Some(_) => {}
            None => keep(limits, known, "cpu"),
        }
        let memory = in_force.map(|amounts| amounts.memory_limit);
        match memory.filter(|memory| *memory > Bytes::ZERO) {
            Some(memory) if memory != allocated.memory_limit => {
                limits.insert("memory".to_owned(), bytes(memory));
            }
            Some(_) => {}
            None => keep(limits, known, "memory"),
        }
    }
    if let Some(requests) = &mut resources.requests {
        let known = known.and_then(|known| known.requests.as_ref());
        let cpu = in_force.map(|amounts| amounts.cpu_request);
        let cpu = cpu.filter(|cpu| *cpu > Millicores::ZERO);
        match cpu {
            Some(cpu) if cpu == allocated.cpu_request => {}
            Some(cpu) if cpu > MIN_REQUEST || allocated.cpu_request > MIN_REQUEST => {
                requests.insert("cpu".to_owned(), millicores(cpu));
            }
            Some(_) => {}
            None => keep(requests, known, "cpu"),
        }
        match actuated.map(|amounts| amounts.memory_request) {
            Some(memory) if memory != allocated.memory_request && memory > Bytes::ZERO => {
                requests.insert("memory".to_owned(), bytes(memory));
            }
            Some(_) => {}
            None => keep(requests, known, "memory"),
        }
    }
}

fn keep(list: &mut List, known: Option<&List>, name: &str) {
    if let Some(quantity) = known.and_then(|known| known.get(name)) {
        list.insert(name.to_owned(), quantity.clone());
    }
}

/// Cpu and memory from cgroup values; zero for those without.
fn amounts_of(linux: &LinuxContainerResources) -> Amounts {
    let period = u64::try_from(linux.cpu_period).unwrap_or_default();
    let cpu_limit = match linux.cpu_quota {
        quota if quota > 0 && period > 0 => millicores_from_quota(quota, period),
        _ => Millicores::ZERO,
    };
    let shares = u64::try_from(linux.cpu_shares).unwrap_or_default();
    Amounts {
        cpu_request: millicores_from_shares(shares),
        cpu_limit,
        memory_request: Bytes::ZERO,
        memory_limit: Bytes(linux.memory_limit_in_bytes.max(0)),
    }
}

fn millicores(amount: Millicores) -> ApiQuantity {
    ApiQuantity(amount.to_quantity().to_string())
}

fn bytes(amount: Bytes) -> ApiQuantity {
    ApiQuantity(amount.to_quantity().to_string())
}

/// What the pod has in all.
pub(super) fn add_pod_level(input: Input<'_>, status: &mut PodStatus) {
    let Ok(view) = PodView::from_api(input.pod) else {
        return;
    };
    let requests = render_resource_list(&view.requests(Overhead::Included));
    status.allocated_resources.clone_from(&requests);
    let stated = pod_fields::spec(input.pod).and_then(|spec| spec.resources.clone());
    status.resources = Some(ResourceRequirements {
        requests,
        limits: render_resource_list(&view.limits(Overhead::Included)),
        ..stated.unwrap_or_default()
    });
}
