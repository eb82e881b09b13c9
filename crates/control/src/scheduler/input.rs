//! The inputs of the loop.

use k8s_openapi::api::apps::v1::{ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{ReplicationController, Service};
use std::collections::BTreeMap;
use std::sync::Arc;

use plimsoll_core::object::identity::{NodeName, PodRef, PodUid};
use plimsoll_core::scheduling::cluster::DisruptionBudget;
use plimsoll_core::scheduling::queue::NodeFacts;

use super::known_pod::KnownPod;

/// An event of a watch.
#[derive(Clone, Debug)]
pub enum WatchEvent<T, K> {
    /// A list of all objects begins. What it does not show is gone when it ends.
    ListBegins,
    /// An object as it is.
    Is(T),
    /// An object is gone.
    Deleted(K),
    /// The list ends.
    ListEnds,
}

/// Namespace and name of an object other than a pod.
pub type Name = (String, String);

/// An input of the loop.
#[derive(Debug)]
pub enum Input {
    /// A pod.
    Pod(WatchEvent<KnownPod, PodRef>),
    /// A node.
    Node(WatchEvent<Arc<NodeFacts>, NodeName>),
    /// A namespace with its labels.
    Namespace(WatchEvent<(String, BTreeMap<String, String>), String>),
    /// A disruption budget.
    Budget(WatchEvent<DisruptionBudget, Name>),
    /// A service.
    Service(WatchEvent<Box<Service>, Name>),
    /// A replication controller.
    ReplicationController(WatchEvent<Box<ReplicationController>, Name>),
    /// A replica set.
    ReplicaSet(WatchEvent<Box<ReplicaSet>, Name>),
    /// A stateful set.
    StatefulSet(WatchEvent<Box<StatefulSet>, Name>),
    /// The result of a binding.
    Bound {
        /// The pod.
        uid: PodUid,
        /// Why it failed, if it did.
        result: Result<(), String>,
    },
    /// The result of a patch of a pod's status.
    Patched {
        /// The pod.
        pod_ref: PodRef,
        /// Whether it was written.
        is_written: bool,
    },
    /// The result of deleting a victim.
    Evicted {
        /// The pod that preempts.
        preemptor: PodUid,
        /// The victim.
        victim: PodRef,
        /// The result.
        outcome: Eviction,
    },
}

/// The result of deleting a victim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eviction {
    /// Its deletion has begun.
    Deleted,
    /// It was gone already.
    Gone,
    /// It could not be deleted.
    Failed,
}
