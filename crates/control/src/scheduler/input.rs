//! What the loop is told.

use k8s_openapi::api::apps::v1::{ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{ReplicationController, Service};
use std::collections::BTreeMap;
use std::sync::Arc;

use plimsoll_core::object::identity::{NodeName, PodRef, PodUid};
use plimsoll_core::scheduling::cluster::DisruptionBudget;
use plimsoll_core::scheduling::queue::NodeFacts;

use super::pod_record::PodRecord;

/// What a watch shows.
#[derive(Clone, Debug)]
pub enum Seen<T, K> {
    /// A list of all objects begins. What it does not show is gone when it ends.
    ListBegins,
    /// An object as it is.
    Is(T),
    /// An object is gone.
    IsGone(K),
    /// The list ends.
    ListEnds,
}

/// Namespace and name of an object other than a pod.
pub type Name = (String, String);

/// What can happen to the loop.
#[derive(Debug)]
pub enum Input {
    /// A pod.
    Pod(Seen<PodRecord, PodRef>),
    /// A node.
    Node(Seen<Arc<NodeFacts>, NodeName>),
    /// A namespace with its labels.
    Namespace(Seen<(String, BTreeMap<String, String>), String>),
    /// A disruption budget.
    Budget(Seen<DisruptionBudget, Name>),
    /// A service.
    Service(Seen<Box<Service>, Name>),
    /// A replication controller.
    ReplicationController(Seen<Box<ReplicationController>, Name>),
    /// A replica set.
    ReplicaSet(Seen<Box<ReplicaSet>, Name>),
    /// A stateful set.
    StatefulSet(Seen<Box<StatefulSet>, Name>),
    /// What became of a binding.
    Bound {
        /// The pod.
        uid: PodUid,
        /// Why it failed, if it did.
        result: Result<(), String>,
    },
    /// What became of a patch of a pod's status.
    Patched {
        /// The pod.
        pod_ref: PodRef,
        /// Whether it was written.
        is_written: bool,
    },
    /// What became of a victim.
    Evicted {
        /// For whom it had to go.
        preemptor: PodUid,
        /// The victim.
        victim: PodRef,
        /// What came of it.
        outcome: Eviction,
    },
}

/// What became of a victim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eviction {
    /// Its deletion has begun.
    Deleted,
    /// It was gone already.
    Gone,
    /// It could not be deleted.
    Failed,
}
