//! The decision about a pod: a node, or a reason to stay pending.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::object::identity::NodeName;

use super::cluster::{Cluster, NodeSlot};
use super::diagnosis::Diagnosis;
use super::filter_results::FilterResults;
use super::filters::Cycle;
use super::preemption::{Preemption, PreemptionResult, preempt};
use super::scores::InvalidScore;

/// The decision about the pod.
#[derive(Clone, Debug)]
pub enum Decision {
    /// It goes to a node.
    Place(Placement),
    /// It waits.
    Wait(Box<Unschedulable>),
}

/// Where a pod goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The node.
    pub slot: NodeSlot,
    /// How many nodes would have done.
    pub feasible: usize,
    /// The score of the node, if it took one to choose.
    pub total: Option<i64>,
}

impl Placement {
    /// The only node that will do, or the one on which room was made.
    pub fn without_choice(slot: NodeSlot) -> Placement {
        Placement {
            slot,
            feasible: 1,
            total: None,
        }
    }
}

/// The annotation of the event `Scheduled` that shows how the placement was decided. Events outlive
/// the scheduler's own memory, and may be read without access to the scheduler.
pub const PLACEMENT_ANNOTATION: &str = "plimsoll.dev/placement";

/// The value of [`PLACEMENT_ANNOTATION`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlacementNote {
    /// How many nodes would have done.
    pub feasible_nodes: usize,
    /// The score of the node, if it took one to choose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<i64>,
}

/// Why a pod waits, and for what.
///
/// The verdicts that this rests on are [`Rationale`], and kept apart: they are about every node.
#[derive(Clone, Debug)]
pub struct Unschedulable {
    /// The whole message for users.
    pub message: String,
    /// The plugins that something has to change for, before the pod is tried again.
    pub plugins: BTreeSet<&'static str>,
    /// Whether room can be made, where, and which pods would be preempted.
    pub room: PreemptionResult,
    /// The node on which room is to be made.
    pub nominated: Option<NodeName>,
}

/// The reasons of a decision that a pod stays pending.
#[derive(Clone, Debug)]
pub struct Rationale {
    /// The verdicts on all nodes.
    pub filtered: FilterResults,
    /// The result of the search for victims.
    pub preemption: Preemption,
}

/// Why an attempt ended without a decision.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There are no nodes at all.
    #[error("no nodes available to schedule pods")]
    NoNodes,
    /// A score is beyond all bounds.
    #[error(transparent)]
    InvalidScore(#[from] InvalidScore),
}

impl Unschedulable {
    /// Puts together what the filters said and whether room can be made.
    ///
    /// `post_filter` is the message of the search for room.
    pub(super) fn new(
        cluster: &Cluster,
        diagnosis: &Diagnosis,
        plugins: BTreeSet<&'static str>,
        room: PreemptionResult,
        post_filter: &str,
    ) -> Unschedulable {
        let node = match &room {
            PreemptionResult::At(candidate) => cluster.node(candidate.slot),
            PreemptionResult::SwitchedOff(_)
            | PreemptionResult::NotTried
            | PreemptionResult::NotEligible(_)
            | PreemptionResult::None => None,
        };
        Unschedulable {
            message: diagnosis.message(post_filter),
            plugins,
            nominated: node.map(|node| node.view.name.clone()),
            room,
        }
    }
}

impl Rationale {
    /// Looks for room, beginning at the node number `start`.
    pub fn new(cycle: &Cycle<'_>, filtered: FilterResults, start: u32) -> Rationale {
        let preemption = preempt(cycle, &filtered, start);
        Rationale {
            filtered,
            preemption,
        }
    }

    /// The decision.
    pub(super) fn conclude(&self, cluster: &Cluster, choice: u32) -> Unschedulable {
        let node_count = cluster.node_count();
        Unschedulable::new(
            cluster,
            &self.filtered.diagnosis(node_count),
            self.filtered.unschedulable_plugins(),
            self.preemption.room(choice, cluster.slot_count()),
            &self.preemption.message(node_count),
        )
    }
}
