//! Records of pods.

use serde::{Deserialize, Serialize};

use crate::object::identity::{PodRef, PodUid};
use crate::object::pod::QosClass;
use crate::object::timestamp::Timestamp;
use crate::quantity::Quantity;

use super::super::candidate::{ActivePod, Candidate, CandidateContainer, EvictionRequests};
use super::super::summary::{PodReference, PodStats, time};
use super::super::usage::PodUsage;
use super::ReplayError;
use super::settings::{parse_quantity, unknown};

/// A pod as eviction saw it. Quantities are texts.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodRecord {
    /// Names.
    pub pod_ref: PodReference,
    /// When it was created.
    #[serde(with = "time")]
    pub created_at: Option<Timestamp>,
    /// The generation of its spec.
    pub generation: i64,
    /// Priority.
    pub priority: i32,
    /// QoS class.
    pub qos_class: String,
    /// Whether it is never evicted.
    pub is_exempt: bool,
    /// How long it asks to be given to end.
    pub termination_grace_period_seconds: Option<i64>,
    /// Memory request, as ranked.
    pub memory_request: String,
    /// Disk request, as ranked.
    pub storage_request: String,
    /// Inodes request, as ranked.
    pub inodes_request: String,
    /// Memory request of the pod itself.
    pub pod_level_memory_request: Option<String>,
    /// Disk limit of the pod.
    pub storage_limit: Option<String>,
    /// Containers.
    pub containers: Vec<ContainerRecord>,
    /// Volumes on the node's disk.
    pub local_volumes: Vec<String>,
    /// Limited emptyDirs.
    pub empty_dir_limits: Vec<(String, String)>,
    /// What it used; `None` without statistics.
    pub usage: Option<PodStats>,
}

/// A container as eviction saw it.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerRecord {
    /// Its name.
    pub name: String,
    /// Memory request.
    pub memory_request: String,
    /// Disk request.
    pub storage_request: String,
    /// Disk limit.
    pub storage_limit: Option<String>,
}

impl PodRecord {
    pub(super) fn of(pod: &ActivePod<'_>) -> PodRecord {
        let candidate = pod.candidate;
        let text = |quantity: &Option<Quantity>| quantity.as_ref().map(ToString::to_string);
        let limits = candidate.empty_dir_limits.iter();
        PodRecord {
            pod_ref: PodReference {
                name: candidate.pod_ref.name.clone(),
                namespace: candidate.pod_ref.namespace.clone(),
                uid: candidate.uid.to_string(),
            },
            created_at: candidate.created_at,
            generation: candidate.generation,
            priority: candidate.priority,
            qos_class: candidate.qos_class.to_string(),
            is_exempt: candidate.is_exempt,
            termination_grace_period_seconds: candidate.termination_grace_period_seconds,
            memory_request: candidate.requests.memory.to_string(),
            storage_request: candidate.requests.storage.to_string(),
            inodes_request: candidate.requests.inodes.to_string(),
            pod_level_memory_request: text(&candidate.pod_level_memory_request),
            storage_limit: text(&candidate.storage_limit),
            containers: candidate
                .containers
                .iter()
                .map(ContainerRecord::of)
                .collect(),
            local_volumes: candidate.local_volumes.clone(),
            empty_dir_limits: limits
                .map(|(name, limit)| (name.clone(), limit.to_string()))
                .collect(),
            usage: pod.usage.map(PodStats::of),
        }
    }

    pub(super) fn to_parts(&self) -> Result<(Candidate, Option<PodUsage>), ReplayError> {
        let class = QosClass::from_name(&self.qos_class);
        let containers = self.containers.iter().map(ContainerRecord::to_container);
        let limits = self.empty_dir_limits.iter();
        let candidate = Candidate {
            pod_ref: PodRef {
                namespace: self.pod_ref.namespace.clone(),
                name: self.pod_ref.name.clone(),
            },
            uid: PodUid::new(&*self.pod_ref.uid),
            created_at: self.created_at,
            generation: self.generation,
            priority: self.priority,
            qos_class: class.ok_or_else(|| unknown("pods.qosClass", &self.qos_class))?,
            is_exempt: self.is_exempt,
            termination_grace_period_seconds: self.termination_grace_period_seconds,
            requests: EvictionRequests {
                memory: parse_quantity(&self.memory_request)?,
                storage: parse_quantity(&self.storage_request)?,
                inodes: parse_quantity(&self.inodes_request)?,
            },
            pod_level_memory_request: optional(&self.pod_level_memory_request)?,
            storage_limit: optional(&self.storage_limit)?,
            containers: containers.collect::<Result<_, _>>()?,
            local_volumes: self.local_volumes.clone(),
            empty_dir_limits: limits
                .map(|(name, limit)| Ok((name.clone(), parse_quantity(limit)?)))
                .collect::<Result<_, ReplayError>>()?,
        };
        Ok((candidate, self.usage.as_ref().map(PodStats::usage)))
    }
}

impl ContainerRecord {
    fn of(container: &CandidateContainer) -> ContainerRecord {
        ContainerRecord {
            name: container.name.clone(),
            memory_request: container.memory_request.to_string(),
            storage_request: container.storage_request.to_string(),
            storage_limit: container.storage_limit.as_ref().map(ToString::to_string),
        }
    }

    fn to_container(&self) -> Result<CandidateContainer, ReplayError> {
        Ok(CandidateContainer {
            name: self.name.clone(),
            memory_request: parse_quantity(&self.memory_request)?,
            storage_request: parse_quantity(&self.storage_request)?,
            storage_limit: optional(&self.storage_limit)?,
        })
    }
}

fn optional(text: &Option<String>) -> Result<Option<Quantity>, ReplayError> {
    text.as_deref().map(parse_quantity).transpose()
}
