//! Making room: which pods of lower priority would have to go, and on which node.
//!
//! Reading order: `victims` (which pods would be preempted on one node), `choice` (which node),
//! `message` (events and conditions). Matches v1.36 framework/preemption and
//! plugins/defaultpreemption.

mod choice;
mod message;
mod victims;

use std::sync::Arc;

use super::cluster::NodeSlot;
use super::filter_results::FilterResults;
use super::filters::{Cycle, FilterState, Trial};
use super::plugin_names::{Code, Rejection};
use super::pod::{PreemptionPolicy, SchedulingPod};
use super::profile::{PreemptionArgs, Profile};

pub(super) use choice::Cost;
pub use message::{
    PREEMPTED_EVENT_REASON, PREEMPTION_CONDITION_REASON, condition_message, event_note,
};
pub(super) use message::{no_room_message, not_eligible_message};
pub(super) use victims::most_in_one_budget;
pub use victims::{is_victim, select_victims};

/// All that was found in looking for victims.
#[derive(Clone, Debug)]
pub enum Preemption {
    /// Not searched for: the profile has no preemption plugin. This is the message instead.
    SwitchedOff(&'static str),
    /// Not searched for: no node becomes feasible by removing pods.
    NotTried,
    /// Not looked for: the pod may not push others out, or not again.
    NotEligible(&'static str),
    /// Looked for.
    Tried {
        /// Nodes on which it would work, those that break no disruption budget first.
        candidates: Vec<Candidate>,
        /// Nodes on which it would not, with what is in the way there.
        rejected: Vec<(NodeSlot, Rejection)>,
    },
}

/// Whether preemption can make room, and where.
#[derive(Clone, Debug)]
pub enum PreemptionResult {
    /// Not searched for: the profile has no preemption plugin. This is the message instead.
    SwitchedOff(&'static str),
    /// Not searched for: no node becomes feasible by removing pods.
    NotTried,
    /// Not searched for: the pod may not preempt others, or not again.
    NotEligible(&'static str),
    /// Searched for, and there is none.
    None,
    /// On this node, if these pods are preempted.
    At(Candidate),
}

/// A node and the pods that would be preempted.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The node.
    pub slot: NodeSlot,
    /// The pods that would be preempted, the most important first.
    pub victims: Vec<Arc<SchedulingPod>>,
    /// How many of them break a disruption budget.
    pub pdb_violations: usize,
}

/// Looks for victims on the nodes where that could help.
///
/// `offset` is the candidate at which to begin; the search ends early once enough candidates are
/// found.
pub fn preempt(cycle: &Cycle<'_>, filtered: &FilterResults, offset: u32) -> Preemption {
    if filtered.pre_filter.rejection.is_some() && !cycle.profile.post_filters.is_empty() {
        return Preemption::NotTried;
    }
    if let Some(message) = switched_off(cycle.profile) {
        return Preemption::SwitchedOff(message);
    }
    let code_of = |slot: NodeSlot| filtered.rejection(slot).map(|rejection| rejection.code);
    if let Some(reason) = ineligibility(cycle, code_of) {
        return Preemption::NotEligible(reason);
    }
    let mut potential: Vec<NodeSlot> = filtered
        .nodes
        .iter()
        .filter(|(_, r)| r.as_ref().is_some_and(|r| r.code == Code::Unschedulable))
        .map(|(slot, _)| *slot)
        .collect();
    if !potential.is_empty() {
        let offset = usize::try_from(offset).unwrap_or(0) % potential.len();
        potential.rotate_left(offset);
    }
    let enough = candidates_wanted(cycle.profile.preemption, potential.len());
    let (mut harmless, mut violating) = (Vec::new(), Vec::new());
    let mut rejected = Vec::new();
    for slot in potential {
        match try_node(cycle, slot, &filtered.state) {
            None => {}
            Some(Err(rejection)) => rejected.push((slot, rejection)),
            Some(Ok(candidate)) => {
                if candidate.pdb_violations == 0 {
                    harmless.push(candidate);
                } else {
                    violating.push(candidate);
                }
                if !harmless.is_empty() && harmless.len() + violating.len() >= enough {
                    break;
                }
            }
        }
    }
    harmless.append(&mut violating);
    Preemption::Tried {
        candidates: harmless,
        rejected,
    }
}

/// The message instead of a search for victims, if the profile has no preemption plugin.
pub(super) fn switched_off(profile: &Profile) -> Option<&'static str> {
    if profile.post_filters.is_empty() {
        Some("")
    } else {
        (!profile.preempts()).then_some(message::NO_CLAIMS)
    }
}

/// The pods that would be preempted on a node as it is; `None` if there is no such node.
pub fn try_node(
    cycle: &Cycle<'_>,
    slot: NodeSlot,
    state: &FilterState,
) -> Option<Result<Candidate, Rejection>> {
    let trial = Trial {
        node: cycle.cluster.node(slot)?.clone(),
        state: state.clone(),
    };
    Some(select_victims(cycle, slot, trial))
}

/// Why the pod may not push others out: it never may, or the victims of last time are still there.
///
/// `code_of` is how a node was rejected, if it was.
pub fn ineligibility(
    cycle: &Cycle<'_>,
    code_of: impl FnOnce(NodeSlot) -> Option<Code>,
) -> Option<&'static str> {
    let pod = cycle.pod;
    if pod.preemption_policy == PreemptionPolicy::Never {
        return Some("not eligible due to preemptionPolicy=Never.");
    }
    let slot = cycle.cluster.slot(pod.nominated_node_name.as_ref()?)?;
    if code_of(slot) == Some(Code::UnschedulableAndUnresolvable) {
        return None;
    }
    let mut pods = cycle.cluster.node(slot)?.pods().iter();
    let is_on_its_way =
        pods.any(|other| is_victim(other, pod) && other.is_terminating && other.is_preempted);
    is_on_its_way.then_some("not eligible due to a terminating pod on the nominated node.")
}

/// How many candidates are enough, of so many nodes.
pub(super) fn candidates_wanted(args: PreemptionArgs, nodes: usize) -> usize {
    let part = |number: i32| usize::try_from(number).unwrap_or(0);
    let wanted = nodes.saturating_mul(part(args.min_candidate_nodes_percentage)) / 100;
    let least = part(args.min_candidate_nodes_absolute);
    wanted.max(least).min(nodes)
}

#[cfg(test)]
mod tests;
