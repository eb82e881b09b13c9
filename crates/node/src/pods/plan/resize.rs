//! Limits of running containers that are changed in place.
//!
//! What a container was given last is compared with what the pod has been allocated. Where the
//! container requires a restart on such a change it is stopped and started, else it is updated.
//! Matches v1.36 `computePodResizeAction`; limits cannot be removed, only changed.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Pod, ResourceRequirements};
use plimsoll_core::object::pod::Requirements;
use plimsoll_core::resources::{Bytes, Millicores, ResourceList, ResourceName};

use super::{Input, Kill, KillReason, Plan};
use crate::pod_fields;
use crate::pods::observed;

/// Requests and limits of cpu and memory; zero for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amounts {
    /// Requested cpu.
    pub cpu_request: Millicores,
    /// Most cpu.
    pub cpu_limit: Millicores,
    /// Requested memory.
    pub memory_request: Bytes,
    /// Most memory.
    pub memory_limit: Bytes,
}

/// What containers and the pod were given last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Actuated {
    /// By name of the container.
    pub containers: BTreeMap<String, Amounts>,
    /// What the pod states for itself.
    pub pod: Amounts,
}

/// Changes of limits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resize {
    /// Containers whose memory changes; those that shrink first.
    pub memory: Vec<Update>,
    /// Containers whose cpu changes; those that shrink first.
    pub cpu: Vec<Update>,
    /// Whether the cgroup of the pod has to change though no container is updated.
    pub changes_pod: bool,
}

impl Resize {
    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.memory.is_empty() && self.cpu.is_empty() && !self.changes_pod
    }
}

/// A container whose limits change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update {
    /// The runtime's id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// What it has.
    pub current: Amounts,
    /// What it is to have.
    pub desired: Amounts,
}

/// Whether a container stays as it is, apart from updates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keep {
    Yes,
    No,
}

impl Amounts {
    /// What a container is to have. A pod's own limit stands in for one that the container lacks.
    pub fn of(pod: &Pod, container: &Container) -> Amounts {
        let pod_level = pod_fields::spec(pod).and_then(|spec| spec.resources.as_ref());
        let pod_level = Amounts::of_requirements(pod_level);
        let mut own = Amounts::of_requirements(container.resources.as_ref());
        if own.cpu_limit == Millicores::ZERO {
            own.cpu_limit = pod_level.cpu_limit;
        }
        if own.memory_limit == Bytes::ZERO {
            own.memory_limit = pod_level.memory_limit;
        }
        own
    }

    /// The amounts stated there.
    pub fn of_requirements(requirements: Option<&ResourceRequirements>) -> Amounts {
        let parsed = Requirements::from_api("", requirements, &mut Vec::new());
        let cpu =
            |list: &ResourceList| Millicores::from_quantity(&list.get_or_zero(&ResourceName::CPU));
        let memory =
            |list: &ResourceList| Bytes::from_quantity(&list.get_or_zero(&ResourceName::MEMORY));
        Amounts {
            cpu_request: cpu(&parsed.requests),
            cpu_limit: cpu(&parsed.limits),
            memory_request: memory(&parsed.requests),
            memory_limit: memory(&parsed.limits),
        }
    }
}

impl Actuated {
    /// What the pod is to have, taken for what it has.
    pub fn as_allocated(pod: &Pod) -> Actuated {
        let pod_level = pod_fields::spec(pod).and_then(|spec| spec.resources.as_ref());
        let parts = pod_fields::parts(pod);
        Actuated {
            containers: parts
                .map(|part| {
                    let amounts = Amounts::of(pod, &part.container);
                    (part.container.name.clone(), amounts)
                })
                .collect(),
            pod: Amounts::of_requirements(pod_level),
        }
    }
}

/// Plans the change of a running container, if there is one.
pub(super) fn compute_container(
    input: Input<'_>,
    container: &Container,
    seen: &observed::Container,
    plan: &mut Plan,
) -> Keep {
    let Some(actuated) = input.actuated else {
        return Keep::Yes;
    };
    let desired = Amounts::of(input.pod, container);
    let current = actuated.containers.get(&container.name);
    let current = current.copied().unwrap_or(desired);
    let changes_memory = current.memory_limit != desired.memory_limit
        || current.memory_request != desired.memory_request;
    let changes_cpu =
        current.cpu_limit != desired.cpu_limit || current.cpu_request != desired.cpu_request;
    let needs_restart = |resource: &str| {
        let mut policies = container.resize_policy.iter().flatten();
        let own = policies.find(|policy| policy.resource_name == resource);
        own.is_some_and(|policy| policy.restart_policy == "RestartContainer")
    };
    if changes_memory && needs_restart("memory") || changes_cpu && needs_restart("cpu") {
        plan.kill.push(Kill {
            id: seen.id.clone(),
            name: seen.name.clone(),
            message: format!("Container {} resize requires restart", container.name),
            reason: KillReason::Other,
        });
        plan.resize.changes_pod = true;
        return Keep::No;
    }
    let update = || Update {
        id: seen.id.clone(),
        name: seen.name.clone(),
        current,
        desired,
    };
    if changes_memory {
        let shrinks = if current.memory_limit != desired.memory_limit {
            desired.memory_limit < current.memory_limit
        } else {
            desired.memory_request < current.memory_request
        };
        insert(&mut plan.resize.memory, update(), shrinks);
    }
    if changes_cpu {
        let shrinks = if current.cpu_limit != desired.cpu_limit {
            desired.cpu_limit < current.cpu_limit
        } else {
            desired.cpu_request < current.cpu_request
        };
        insert(&mut plan.resize.cpu, update(), shrinks);
    }
    Keep::Yes
}

/// What shrinks goes first, so that there is room for what grows.
fn insert(updates: &mut Vec<Update>, update: Update, shrinks: bool) {
    let index = if shrinks { 0 } else { updates.len() };
    updates.insert(index, update);
}

/// Whether the cgroup of the pod has to change on its own account, or for containers that start
/// with other limits than they had.
pub(super) fn compute_pod(input: Input<'_>, plan: &mut Plan) {
    let Some(actuated) = input.actuated else {
        return;
    };
    let pod_level = pod_fields::spec(input.pod).and_then(|spec| spec.resources.as_ref());
    let is_pod_changed = Amounts::of_requirements(pod_level) != actuated.pod;
    let starts = plan.start.iter();
    let is_start_changed = starts
        .filter_map(|start| {
            let mut parts = pod_fields::parts(input.pod);
            parts.find(|part| part.kind == start.kind && part.index == start.index)
        })
        .any(|part| {
            let had = actuated.containers.get(&part.container.name);
            had.is_some_and(|had| *had != Amounts::of(input.pod, &part.container))
        });
    plan.resize.changes_pod |= is_pod_changed || is_start_changed;
}
