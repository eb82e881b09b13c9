//! The actions of the loop. Each action but `RecordEvent` is answered with an input.

use std::sync::Arc;

use plimsoll_core::object::identity::{NodeName, PodRef, PodUid};
use plimsoll_core::scheduling::decision::Placement;
use plimsoll_core::scheduling::queue::PodFacts;

use plimsoll_client::events::Occurrence;

/// One side effect.
#[derive(Clone, Debug)]
pub enum Action {
    /// Binds a pod to a node.
    Bind {
        /// The pod.
        pod: Arc<PodFacts>,
        /// The node.
        node: NodeName,
    },
    /// Patches the status of a pod.
    Patch(StatusPatch),
    /// Marks a victim of preemption and deletes it.
    Evict {
        /// The pod that preempts.
        preemptor: PodUid,
        /// The pod to delete.
        victim: Victim,
    },
    /// Records an event.
    RecordEvent {
        /// Number of the profile that reports it.
        profile: usize,
        /// The occurrence.
        occurrence: Box<Occurrence>,
        /// How a placement came about, if it is one.
        placement: Option<Placement>,
    },
}

/// A change of a pod's status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusPatch {
    /// The pod.
    pub pod_ref: PodRef,
    /// Which pod of that name.
    pub uid: PodUid,
    /// The condition `PodScheduled=False`, if it changes.
    pub condition: Option<Condition>,
    /// The node on which room is set aside, if that changes; `None` within if on none.
    pub nominated_node_name: Option<Option<NodeName>>,
}

/// The condition `PodScheduled=False`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The machine-readable reason.
    pub reason: &'static str,
    /// The human-readable message.
    pub message: String,
    /// The version of the spec that was read.
    pub observed_generation: i64,
    /// Whether the condition was something else before.
    pub is_new: bool,
}

/// A pod to preempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Victim {
    /// The pod.
    pub pod_ref: PodRef,
    /// Which pod of that name.
    pub uid: PodUid,
    /// The version of its spec.
    pub generation: i64,
    /// Whether it carries the mark of a victim already.
    pub is_marked: bool,
    /// The message of the condition.
    pub message: String,
}
