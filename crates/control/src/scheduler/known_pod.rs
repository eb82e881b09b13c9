//! The scheduler's record of a pod: the fields that decisions read, and those that writes need.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{ObjectReference, Pod};
use plimsoll_core::object::identity::{PodRef, PodUid};
use plimsoll_core::problem::Problem;
use plimsoll_core::scheduling::queue::PodFacts;

/// A pod as the API server last showed it.
#[derive(Clone, Debug)]
pub struct KnownPod {
    /// The fields that decisions read.
    pub facts: Arc<PodFacts>,
    /// The version of the object.
    pub resource_version: Arc<str>,
    /// The version of its spec.
    pub generation: i64,
    /// The condition `PodScheduled`, if it is not true.
    pub unscheduled: Option<Box<Unscheduled>>,
}

/// The condition `PodScheduled=False`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unscheduled {
    /// The machine-readable reason.
    pub reason: String,
    /// The human-readable message.
    pub message: String,
}

impl KnownPod {
    /// Reads a pod; all its malformed parts are reported.
    pub fn from_api(pod: &Pod) -> Result<KnownPod, Vec<Problem>> {
        let facts = PodFacts::from_api(pod)?;
        let status = pod.status.as_ref();
        let conditions = status
            .into_iter()
            .flat_map(|s| s.conditions.iter().flatten());
        let mut scheduled = conditions.filter(|condition| condition.type_ == "PodScheduled");
        let unscheduled = scheduled
            .next()
            .filter(|condition| condition.status == "False");
        let meta = &pod.metadata;
        Ok(KnownPod {
            facts: Arc::new(facts),
            resource_version: Arc::from(meta.resource_version.as_deref().unwrap_or_default()),
            generation: meta.generation.unwrap_or(0),
            unscheduled: unscheduled.map(|condition| {
                Box::new(Unscheduled {
                    reason: condition.reason.clone().unwrap_or_default(),
                    message: condition.message.clone().unwrap_or_default(),
                })
            }),
        })
    }

    /// Namespace and name.
    pub fn pod_ref(&self) -> &PodRef {
        &self.facts.pod_ref
    }

    /// Unique id.
    pub fn uid(&self) -> &PodUid {
        &self.facts.uid
    }

    /// Whether it has a node.
    pub fn is_assigned(&self) -> bool {
        self.facts.node_name.is_some()
    }

    /// The reference to it that events carry.
    pub fn reference(&self) -> ObjectReference {
        reference(&self.facts, &self.resource_version)
    }
}

/// The reference that events carry to a pod of which the version is known.
pub(super) fn reference(facts: &PodFacts, resource_version: &str) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Pod".to_owned()),
        namespace: Some(facts.pod_ref.namespace.clone()),
        name: Some(facts.pod_ref.name.clone()),
        uid: Some(facts.uid.to_string()),
        resource_version: Some(resource_version.to_owned()),
        field_path: None,
    }
}
