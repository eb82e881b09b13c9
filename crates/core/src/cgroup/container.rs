//! The Linux resources of a container, as the container runtime receives them.
//!
//! Matches v1.36 pkg/kubelet/kuberuntime/kuberuntime_container_linux.go.

use std::collections::BTreeMap;

use crate::object::pod::{ContainerView, PodView};
use crate::quantity::Quantity;
use crate::resources::{Bytes, Millicores, ResourceList, ResourceName};
use crate::threshold::truncated;

use super::config::{Host, ResourceConfig, Version};
use super::conversion::{quota_from_millicores, shares_from_millicores};
use super::huge_page::{HugePageSize, huge_page_limits};
use super::memory_qos::{MEMORY_HIGH, MEMORY_LOW, MEMORY_MIN, MemoryQos, protection};
use super::oom_score::oom_score_adj;
use super::swap::{SwapBehavior, swap_limit};

/// The message of that name in the container runtime interface. Zero means "not set".
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinuxContainerResources {
    /// Share of the CPU.
    pub cpu_shares: u64,
    /// CPU time per period in microseconds; -1 for no limit.
    pub cpu_quota: i64,
    /// Length of the period in microseconds.
    pub cpu_period: u64,
    /// Most memory.
    pub memory_limit: Bytes,
    /// Most memory and swap together; cgroup v1 only.
    pub memory_swap_limit: Bytes,
    /// How early the kernel kills the container when memory runs out.
    pub oom_score_adj: i64,
    /// Most huge pages, for every size that the kernel has.
    pub huge_page_limits: BTreeMap<HugePageSize, Bytes>,
    /// Files of cgroup v2.
    pub unified: BTreeMap<String, String>,
}

/// The node settings that shape the resources of containers.
#[derive(Clone, Debug, PartialEq)]
pub struct ContainerSettings {
    /// The cgroup interface of the machine.
    pub host: Host,
    /// `MemTotal`.
    pub machine_memory: Bytes,
    /// `cpuCFSQuota`.
    pub enforces_cpu_limits: bool,
    /// `cpuCFSQuotaPeriod`, in microseconds.
    pub cpu_period_micros: u64,
    /// `singleProcessOOMKill`: whether the kernel kills one process, not the whole container.
    pub single_process_oom_kill: bool,
    /// Whether memory is throttled and protected.
    pub memory_qos: MemoryQos,
    /// `memoryThrottlingFactor`.
    pub memory_throttling_factor: f64,
    /// The limit of all pods together, which is that of a container without one.
    pub allocatable_memory: Bytes,
    /// Size of a page of memory.
    pub page_size: Bytes,
    /// The swap limits of containers; `None` where the kernel cannot limit swap.
    pub swap: Option<Swap>,
}

/// The swap of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Swap {
    /// Which containers may use swap.
    pub behavior: SwapBehavior,
    /// How much there is.
    pub capacity: Bytes,
}

/// The resources for the runtime. `has_exclusive_cpus` takes the quota off.
pub fn container_resources(
    pod: &PodView,
    container: &ContainerView,
    settings: &ContainerSettings,
    has_exclusive_cpus: bool,
) -> LinuxContainerResources {
    let cpu_limit = Millicores::from_quantity(&limit(pod, container, &ResourceName::CPU));
    let cpu_request = container.resources.requests.get(&ResourceName::CPU);
    let memory_limit = Bytes::from_quantity(&limit(pod, container, &ResourceName::MEMORY));
    let mut resources = LinuxContainerResources {
        cpu_shares: shares_from_millicores(
            cpu_request.map_or(cpu_limit, Millicores::from_quantity),
        ),
        memory_limit,
        oom_score_adj: oom_score_adj(pod, container, settings.machine_memory),
        huge_page_limits: container_huge_pages(pod, container, &settings.host),
        ..LinuxContainerResources::default()
    };
    if settings.enforces_cpu_limits {
        resources.cpu_period = settings.cpu_period_micros;
        resources.cpu_quota = if has_exclusive_cpus {
            -1
        } else {
            quota_from_millicores(cpu_limit, settings.cpu_period_micros)
        };
    }
    match settings.host.version {
        Version::V1 if settings.swap.is_some() => resources.memory_swap_limit = memory_limit,
        Version::V1 => {}
        Version::V2 => resources.unified = unified(pod, container, settings),
    }
    resources
}

impl LinuxContainerResources {
    /// The cgroup that a runtime makes of it.
    pub fn resource_config(&self) -> ResourceConfig {
        ResourceConfig {
            memory: Some(self.memory_limit),
            cpu_shares: Some(self.cpu_shares),
            cpu_quota: Some(self.cpu_quota),
            cpu_period: Some(self.cpu_period),
            huge_page_limits: self.huge_page_limits.clone(),
            unified: self.unified.clone(),
            ..ResourceConfig::default()
        }
    }
}

/// The container's own limit, or the pod's where it has none.
fn limit(pod: &PodView, container: &ContainerView, name: &ResourceName) -> Quantity {
    let own = container.resources.limits.get_or_zero(name);
    match &pod.resources {
        Some(pod_level) if own.is_zero() && pod.has_pod_level_resources() => {
            pod_level.limits.get_or_zero(name)
        }
        _ => own,
    }
}

/// Every size of the kernel; the container's own limit wins over the pod's.
fn container_huge_pages(
    pod: &PodView,
    container: &ContainerView,
    host: &Host,
) -> BTreeMap<HugePageSize, Bytes> {
    let mut stated = BTreeMap::new();
    if let Some(pod_level) = &pod.resources {
        stated.extend(huge_page_limits(&pod_level.limits));
    }
    stated.extend(huge_page_limits(&container.resources.limits));
    let sizes = host.huge_page_sizes.iter();
    sizes
        .map(|size| (*size, stated.get(size).copied().unwrap_or_default()))
        .collect()
}

fn unified(
    pod: &PodView,
    container: &ContainerView,
    settings: &ContainerSettings,
) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    if !settings.single_process_oom_kill {
        files.insert("memory.oom.group".to_owned(), "1".to_owned());
    }
    if let Some(swap) = settings.swap {
        let memory = settings.machine_memory;
        let limit = swap_limit(pod, container, swap.behavior, memory, swap.capacity);
        files.insert("memory.swap.max".to_owned(), limit.0.to_string());
    }
    if settings.memory_qos != MemoryQos::Off {
        files.extend(memory_qos_files(pod, container, settings));
    }
    files
}

fn memory_qos_files(
    pod: &PodView,
    container: &ContainerView,
    settings: &ContainerSettings,
) -> Vec<(String, String)> {
    let amount =
        |list: &ResourceList| Bytes::from_quantity(&list.get_or_zero(&ResourceName::MEMORY));
    let request = amount(&container.resources.requests);
    let limit = amount(&container.resources.limits);
    let is_protected =
        settings.memory_qos == MemoryQos::TieredReservation && request != Bytes::ZERO;
    let mut files = if is_protected {
        vec![protection(pod.qos_class(), request)]
    } else {
        let zero = |file: &str| (file.to_owned(), "0".to_owned());
        vec![zero(MEMORY_MIN), zero(MEMORY_LOW)]
    };
    if let Some(high) = memory_high(request, limit, settings) {
        files.push((MEMORY_HIGH.to_owned(), high.0.to_string()));
    }
    files
}

/// high = request + factor * (limit - request), down to a whole page, where it is above the
/// request. Without a limit, the memory that all pods may use replaces it.
fn memory_high(request: Bytes, limit: Bytes, settings: &ContainerSettings) -> Option<Bytes> {
    if request == limit {
        return None;
    }
    let limit = match limit {
        Bytes::ZERO => Some(settings.allocatable_memory).filter(|all| *all > Bytes::ZERO)?,
        limit => limit,
    };
    #[expect(clippy::cast_precision_loss, reason = "upstream computes in floats")]
    let (request_bytes, limit_bytes, page) = (
        request.0 as f64,
        limit.0 as f64,
        settings.page_size.0 as f64,
    );
    let high = request_bytes + (limit_bytes - request_bytes) * settings.memory_throttling_factor;
    let pages = truncated(high.floor() / page);
    let high = Bytes(pages.wrapping_mul(settings.page_size.0));
    (high != Bytes::ZERO && high > request).then_some(high)
}
