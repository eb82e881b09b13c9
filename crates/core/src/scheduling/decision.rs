//! What becomes of a pod: a node, or a reason to wait.

use crate::object::identity::NodeName;

use super::cluster::NodeSlot;
use super::filtered::Filtered;
use super::filters::Seeker;
use super::preemption::{self, Preemption};
use super::scores::InvalidScore;
use super::tie_break::{Attempts, choose};

/// What becomes of the pod.
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

/// Why a pod waits, and for what.
#[derive(Clone, Debug)]
pub struct Unschedulable {
    /// What the filters said.
    pub filtered: Filtered,
    /// Whether room can be made.
    pub preemption: Preemption,
    /// The node on which room is to be made.
    pub nominated: Option<NodeName>,
    /// The whole message for users.
    pub message: String,
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
    /// Looks for room that could be made, and says why there is none.
    pub fn new(seeker: &Seeker<'_>, filtered: Filtered, attempts: &mut Attempts) -> Unschedulable {
        let cluster = seeker.cluster;
        let slot_count = cluster.slot_count();
        let offset = attempts.draw_offset(slot_count);
        let preemption = preemption::preempt(seeker, &filtered, offset);
        let chosen = choose(
            preemption
                .best()
                .into_iter()
                .map(|candidate| candidate.slot),
            attempts.draw_offset(slot_count),
            slot_count,
        );
        let node_count = cluster.node_count();
        let post_filter = preemption.message(node_count);
        Unschedulable {
            message: filtered.diagnosis(node_count).message(&post_filter),
            nominated: chosen
                .and_then(|slot| cluster.node(slot))
                .map(|node| node.view.name.clone()),
            filtered,
            preemption,
        }
    }
}
