//! The cgroup of a pod.
//!
//! Matches v1.36 ResourceConfigForPod in pkg/kubelet/cm/helpers_linux.go.

use crate::object::pod::{ContainerKind, Overhead, PodView, QosClass};
use crate::quantity::Quantity;
use crate::resources::{Bytes, Millicores, ResourceList, ResourceName};

use super::config::ResourceConfig;
use super::conversion::{MIN_SHARES, quota_from_millicores, shares_from_millicores};
use super::huge_page::huge_page_limits;
use super::memory_qos::{MemoryQos, protection};

/// The node settings that shape pod cgroups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PodSettings {
    /// `cpuCFSQuota`; off also for pods with CPUs of their own.
    pub enforces_cpu_limits: bool,
    /// `cpuCFSQuotaPeriod`, in microseconds.
    pub cpu_period_micros: u64,
    /// `podPidsLimit`; zero or less for none.
    pub pids_limit: i64,
    /// Whether memory requests are protected.
    pub memory_qos: MemoryQos,
}

/// The desired settings of the pod's cgroup.
///
/// A Burstable pod is limited only in what all of its containers are limited in: one container
/// without a memory limit may use all there is, and so may its pod.
pub fn pod_config(pod: &PodView, settings: &PodSettings) -> ResourceConfig {
    let requests = pod.requests(Overhead::Included);
    let class = pod.qos_class();
    let shares = shares_from_millicores(millicores(requests.get(&ResourceName::CPU)));
    let mut config = match class {
        QosClass::BestEffort => ResourceConfig {
            cpu_shares: Some(MIN_SHARES),
            ..ResourceConfig::default()
        },
        QosClass::Burstable | QosClass::Guaranteed => ResourceConfig {
            cpu_shares: Some(shares),
            ..limits_config(pod, class, settings)
        },
    };
    config.huge_page_limits = huge_page_limits(&requests);
    config.pids_limit = Some(settings.pids_limit).filter(|limit| *limit > 0);
    if settings.memory_qos == MemoryQos::TieredReservation {
        let request = requests
            .get(&ResourceName::MEMORY)
            .map(Bytes::from_quantity);
        let request = request.filter(|request| *request > Bytes::ZERO);
        config.unified = request
            .map(|request| protection(class, request))
            .into_iter()
            .collect();
    }
    config
}

fn limits_config(pod: &PodView, class: QosClass, settings: &PodSettings) -> ResourceConfig {
    let limits = pod.limits(Overhead::Included);
    let quota = if settings.enforces_cpu_limits {
        let cpu = millicores(limits.get(&ResourceName::CPU));
        quota_from_millicores(cpu, settings.cpu_period_micros)
    } else {
        -1
    };
    let memory = limits.get(&ResourceName::MEMORY).map(Bytes::from_quantity);
    let is_limited =
        |name: &ResourceName| class == QosClass::Guaranteed || is_limit_declared(pod, name);
    let is_cpu_limited = is_limited(&ResourceName::CPU);
    ResourceConfig {
        cpu_quota: is_cpu_limited.then_some(quota),
        cpu_period: is_cpu_limited.then_some(settings.cpu_period_micros),
        memory: is_limited(&ResourceName::MEMORY).then_some(memory.unwrap_or_default()),
        ..ResourceConfig::default()
    }
}

fn millicores(quantity: Option<&Quantity>) -> Millicores {
    quantity.map(Millicores::from_quantity).unwrap_or_default()
}

/// Whether the pod states a limit, or each of its containers does. An init container counts as
/// limited after a limited sidecar, because upstream looks at the sums that run together.
fn is_limit_declared(pod: &PodView, name: &ResourceName) -> bool {
    let is_set = |limits: &ResourceList| limits.get(name).is_some_and(|limit| !limit.is_zero());
    let is_set_on_pod = pod.has_pod_level_resources()
        && pod
            .resources
            .as_ref()
            .is_some_and(|pod_level| is_set(&pod_level.limits));
    if is_set_on_pod {
        return true;
    }
    let mut is_some_sidecar_limited = false;
    let mut is_step_limited = |kind: ContainerKind, limits: &ResourceList| {
        let is_limited = is_some_sidecar_limited || is_set(limits);
        if kind == ContainerKind::Sidecar {
            is_some_sidecar_limited = is_limited;
        }
        is_limited
    };
    pod.containers
        .iter()
        .all(|container| is_set(&container.resources.limits))
        && pod
            .init_containers
            .iter()
            .all(|container| is_step_limited(container.kind, &container.resources.limits))
}
