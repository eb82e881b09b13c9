//! A pod as eviction sees it.

use crate::config::{CriticalRule, Profile};
use crate::object::identity::{PodRef, PodUid};
use crate::object::pod::{ContainerKind, ContainerView, Overhead, PodView, QosClass};
use crate::object::timestamp::Timestamp;
use crate::quantity::Quantity;
use crate::resources::ResourceName;

use super::usage::PodUsage;

/// The name under which inodes could be requested, were they a resource.
const INODES: &str = "inodes";
/// The only namespace whose pods could be critical by annotation.
const KUBE_SYSTEM: &str = "kube-system";

/// A pod as eviction sees it. Made once per pod, because sums of requests cost more than a pass.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// Namespace and name.
    pub pod_ref: PodRef,
    /// Unique id.
    pub uid: PodUid,
    /// When it was created; breaks ties.
    pub created_at: Option<Timestamp>,
    /// How often its spec was changed.
    pub generation: i64,
    /// Priority; zero where none is set.
    pub priority: i32,
    /// Its class.
    pub qos_class: QosClass,
    /// Whether it is never evicted.
    pub is_exempt: bool,
    /// How long it asks to be given to end.
    pub termination_grace_period_seconds: Option<i64>,
    /// What it requests, by the rule of the ranking.
    pub requests: EvictionRequests,
    /// The memory request of the pod itself, for the message.
    pub pod_level_memory_request: Option<Quantity>,
    /// What it may use of the node's disk in all.
    pub storage_limit: Option<Quantity>,
    /// Regular containers, then init containers.
    pub containers: Vec<CandidateContainer>,
    /// Volumes on the node's own disk.
    pub local_volumes: Vec<String>,
    /// emptyDir volumes with a limit above zero.
    pub empty_dir_limits: Vec<(String, Quantity)>,
}

/// Requests as the ranking counts them; see [`PodView::eviction_request`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EvictionRequests {
    /// Memory.
    pub memory: Quantity,
    /// Local disk.
    pub storage: Quantity,
    /// Inodes; no pod can request them, so zero for every valid pod.
    pub inodes: Quantity,
}

/// A container as messages and limits need it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CandidateContainer {
    /// Its name in the pod.
    pub name: String,
    /// What it requests of memory.
    pub memory_request: Quantity,
    /// What it requests of the node's disk.
    pub storage_request: Quantity,
    /// What it may use of the node's disk; it applies to regular containers only.
    pub storage_limit: Option<Quantity>,
}

/// A pod that holds resources of the node, and what it uses if that is known.
#[derive(Clone, Copy, Debug)]
pub struct ActivePod<'a> {
    /// The pod.
    pub candidate: &'a Candidate,
    /// What it uses.
    pub usage: Option<&'a PodUsage>,
}

impl Candidate {
    /// The pod by the rules of the profile.
    pub fn new(pod: &PodView, profile: Profile) -> Candidate {
        let request = |name: &ResourceName| pod.eviction_request(name);
        let limits = pod.limits(Overhead::Included);
        let pod_level = pod
            .resources
            .as_ref()
            .filter(|_| pod.has_pod_level_resources());
        let limited = pod.volumes.iter().filter_map(|volume| {
            let limit = volume
                .size_limit
                .as_ref()
                .filter(|limit| limit.signum() > 0)?;
            Some((volume.name.clone(), limit.clone()))
        });
        let local = pod.volumes.iter().filter(|volume| volume.is_local);
        let containers = pod.containers.iter().chain(&pod.init_containers);
        Candidate {
            pod_ref: pod.pod_ref.clone(),
            uid: pod.uid.clone(),
            created_at: pod.created_at,
            generation: pod.generation,
            priority: pod.priority.unwrap_or_default(),
            qos_class: pod.qos_class(),
            is_exempt: is_exempt(pod, profile.eviction_exempts()),
            termination_grace_period_seconds: pod.termination_grace_period_seconds,
            requests: EvictionRequests {
                memory: request(&ResourceName::MEMORY),
                storage: request(&ResourceName::EPHEMERAL_STORAGE),
                inodes: request(&ResourceName::new(INODES)),
            },
            pod_level_memory_request: pod_level
                .and_then(|resources| resources.requests.get(&ResourceName::MEMORY).cloned()),
            storage_limit: limits.get(&ResourceName::EPHEMERAL_STORAGE).cloned(),
            containers: containers.map(CandidateContainer::new).collect(),
            local_volumes: local.map(|volume| volume.name.clone()).collect(),
            empty_dir_limits: limited.collect(),
        }
    }
}

impl CandidateContainer {
    fn new(container: &ContainerView) -> CandidateContainer {
        let requests = &container.resources.requests;
        let limit = container
            .resources
            .limits
            .get(&ResourceName::EPHEMERAL_STORAGE);
        let is_held =
            |limit: &&Quantity| container.kind == ContainerKind::App && limit.value() != 0;
        CandidateContainer {
            name: container.name.clone(),
            memory_request: requests.get_or_zero(&ResourceName::MEMORY),
            storage_request: requests.get_or_zero(&ResourceName::EPHEMERAL_STORAGE),
            storage_limit: limit.filter(is_held).cloned(),
        }
    }
}

fn is_exempt(pod: &PodView, rule: CriticalRule) -> bool {
    match rule {
        CriticalRule::StaticOrPriority => pod.is_critical(),
        CriticalRule::StaticAndAnnotated => {
            let is_annotated = pod.is_annotated_critical && pod.pod_ref.namespace == KUBE_SYSTEM;
            pod.is_static && is_annotated
        }
    }
}
