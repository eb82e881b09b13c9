//! The texts that users read, equal to upstream's to the byte.
//!
//! Matches v1.36 pkg/kubelet/eviction/helpers.go.

use std::collections::BTreeMap;

use crate::problem::quoted;
use crate::quantity::Quantity;
use crate::resources::Bytes;
use crate::threshold::StarvedResource;

use super::candidate::{ActivePod, Candidate, CandidateContainer};
use super::record::shortfall::{Consumer, ShortfallRecord};
use super::usage::{ContainerUsage, PodUsage};

/// The reason of the node's event when it starts to reclaim.
pub const THRESHOLD_MET_REASON: &str = "EvictionThresholdMet";

/// The reason of the node's event when evicting pods cannot bring memory back.
pub const BACK_OFF_REASON: &str = "EvictionBackOff";
/// How many consumers of memory that event names.
const CONSUMERS_NAMED: usize = 4;

const STARVED_RESOURCE: &str = "starved_resource";
const OFFENDING_CONTAINERS: &str = "offending_containers";
const OFFENDING_CONTAINERS_USAGE: &str = "offending_containers_usage";
const OFFENDING_POD: &str = "offending_pod";
const OFFENDING_POD_USAGE: &str = "offending_pod_usage";

/// Annotations of the event on an evicted pod.
pub type Annotations = BTreeMap<&'static str, String>;

/// What the starved signal was and where its line is.
#[derive(Clone, Debug, PartialEq)]
pub struct Shortage {
    /// The threshold on this node.
    pub threshold: Quantity,
    /// What is left.
    pub available: Quantity,
}

/// The message of the node's event when it starts to reclaim.
pub fn attempting_to_reclaim(resource: StarvedResource) -> String {
    format!("Attempting to reclaim {resource}")
}

/// The message of the node's event when evicting pods cannot bring memory back: upstream has none.
pub fn backing_off(shortfall: &ShortfallRecord, consumers: &[Consumer]) -> String {
    let ShortfallRecord {
        signal,
        threshold,
        available,
        pods,
        evictable,
        ..
    } = shortfall;
    let amount = |bytes: i64| Bytes(bytes).readable();
    let holders = match pods {
        1 => format!(
            "the only pod that may be evicted holds {}",
            amount(*evictable)
        ),
        _ => format!(
            "all {pods} pods that may be evicted hold {} together",
            amount(*evictable)
        ),
    };
    let mut message = format!(
        "Evicting pods cannot bring {signal} ({}) back above its threshold ({}): {holders}.",
        amount(*available),
        amount(*threshold)
    );
    if !consumers.is_empty() {
        let named: Vec<String> = consumers
            .iter()
            .take(CONSUMERS_NAMED)
            .map(consumer)
            .collect();
        message += &format!(" Memory is held by {}.", named.join(", "));
    }
    if let Some(until) = shortfall.until {
        message += &format!(" No other pod is evicted for it before {until}.");
    }
    message
}

/// A consumer of memory and what it holds.
pub fn consumer(consumer: &Consumer) -> String {
    let Consumer {
        name, working_set, ..
    } = consumer;
    let held = Bytes(*working_set).readable();
    match consumer.kernel {
        Some(kernel) if kernel > 0 => {
            let kernel = Bytes(kernel).readable();
            format!("{name} ({held}, {kernel} of it kernel memory)")
        }
        _ => format!("{name} ({held})"),
    }
}

/// Why the pod is evicted, and the annotations of its event.
///
/// Without statistics of the pod there are no annotations. Only containers above their own
/// request are named, and only for memory and disk.
pub fn eviction(
    resource: StarvedResource,
    shortage: Option<&Shortage>,
    stall: Option<&str>,
    pod: ActivePod<'_>,
) -> (String, Annotations) {
    let mut message = format!("The node was low on resource: {resource}. ");
    if let Some(Shortage {
        threshold,
        available,
    }) = shortage
    {
        message += &format!("Threshold quantity: {threshold}, available: {available}. ");
    }
    message += stall.unwrap_or_default();
    let mut annotations = Annotations::new();
    let Some(usage) = pod.usage else {
        return (message, annotations);
    };
    if resource == StarvedResource::Memory {
        message += &blame_pod(pod.candidate, usage, &mut annotations);
    }
    let (mut names, mut usages) = (Vec::new(), Vec::new());
    for measured in &usage.containers {
        let Some(container) = find(pod.candidate, &measured.name) else {
            continue;
        };
        let Some((used, request)) = consumption(resource, measured, container) else {
            continue;
        };
        if used > *request {
            let name = &container.name;
            message += &format!("Container {name} {}", was_using(&used, request, resource));
            names.push(name.as_str());
            usages.push(used.to_string());
        }
    }
    annotations.insert(OFFENDING_CONTAINERS, names.join(","));
    annotations.insert(OFFENDING_CONTAINERS_USAGE, usages.join(","));
    annotations.insert(STARVED_RESOURCE, resource.to_string());
    (message, annotations)
}

/// Upstream names a pod with a memory request of its own whether it is above it or not.
fn blame_pod(candidate: &Candidate, usage: &PodUsage, annotations: &mut Annotations) -> String {
    let (Some(request), Some(_)) = (&candidate.pod_level_memory_request, usage.memory) else {
        return String::new();
    };
    let name = &candidate.pod_ref.name;
    let used = usage.working_set().to_quantity();
    annotations.insert(OFFENDING_POD, name.clone());
    annotations.insert(OFFENDING_POD_USAGE, used.to_string());
    format!(
        "Pod {name} {}",
        was_using(&used, request, StarvedResource::Memory)
    )
}

fn find<'a>(candidate: &'a Candidate, name: &str) -> Option<&'a CandidateContainer> {
    candidate
        .containers
        .iter()
        .find(|container| container.name == name)
}

fn consumption<'a>(
    resource: StarvedResource,
    measured: &ContainerUsage,
    container: &'a CandidateContainer,
) -> Option<(Quantity, &'a Quantity)> {
    match resource {
        StarvedResource::Memory => {
            Some((measured.memory?.to_quantity(), &container.memory_request))
        }
        StarvedResource::EphemeralStorage => {
            let (layer, logs) = (measured.root_fs.used?, measured.logs.used?);
            let used = Bytes(layer.0.wrapping_add(logs.0));
            Some((used.to_quantity(), &container.storage_request))
        }
        StarvedResource::Inodes | StarvedResource::Pids => None,
    }
}

fn was_using(used: &Quantity, request: &Quantity, resource: StarvedResource) -> String {
    format!("was using {used}, request is {request}, has larger consumption of {resource}. ")
}

/// Added for evictions by stalls, which upstream does not know.
pub fn stalled(full_avg10: f64, limit: f64) -> String {
    format!("Memory stalled all tasks for {full_avg10}% of the last 10s, limit is {limit}%. ")
}

/// Why a pod whose emptyDir is too large is evicted.
pub fn empty_dir(volume: &str, limit: &Quantity) -> String {
    let (volume, limit) = (quoted(volume), quoted(&limit.to_string()));
    format!("Usage of EmptyDir volume {volume} exceeds the limit {limit}. ")
}

/// Why a pod above its disk limit is evicted.
pub fn pod_storage(limit: &Quantity) -> String {
    format!("Pod ephemeral local storage usage exceeds the total limit of containers {limit}. ")
}

/// Why a pod with a container above its disk limit is evicted.
pub fn container_storage(container: &str, limit: &Quantity) -> String {
    let limit = quoted(&limit.to_string());
    format!("Container {container} exceeded its local ephemeral storage limit {limit}. ")
}
