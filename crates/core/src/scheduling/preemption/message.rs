//! The messages and events of a preemption.

use crate::object::identity::{NodeName, PodUid};
use crate::scheduling::diagnosis::Diagnosis;
use crate::scheduling::plugin_names::Rejection;

use super::Preemption;

/// The reason of the condition `DisruptionTarget` that victims get.
pub const PREEMPTION_CONDITION_REASON: &str = "PreemptionByScheduler";
/// The reason of the event that victims get.
pub const PREEMPTED_EVENT_REASON: &str = "Preempted";

/// The message of the dynamic resources plugin.
pub(super) const NO_CLAIMS: &str = "no new claims to deallocate";

/// The message of the condition `DisruptionTarget` that victims get.
pub fn condition_message(scheduler_name: &str) -> String {
    format!("{scheduler_name}: preempting to accommodate a higher priority pod")
}

/// The note of the victims' event.
pub fn event_note(preemptor: &PodUid, node: &NodeName) -> String {
    format!("Preempted by pod {preemptor} on node {node}")
}

impl Preemption {
    /// The end of the preemptor's own message; empty if room can be made.
    ///
    /// The part before the comma is the dynamic resources plugin's, which runs first. When no node
    /// could be considered, it does not find its own state, and its message is the only one.
    pub fn message(&self, node_count: usize) -> String {
        match self {
            Preemption::SwitchedOff(message) => (*message).to_owned(),
            Preemption::NotTried => "not found".to_owned(),
            Preemption::NotEligible(reason) => not_eligible_message(reason),
            Preemption::Tried { candidates, .. } if !candidates.is_empty() => String::new(),
            Preemption::Tried { rejected, .. } => {
                no_room_message(node_count, rejected.iter().map(|(_, own)| (own, 1)))
            }
        }
    }
}

/// The message for a pod that may not preempt others.
pub(in crate::scheduling) fn not_eligible_message(reason: &str) -> String {
    format!("{NO_CLAIMS}, preemption: {reason}")
}

/// The message if room can be made nowhere, with the reasons by number of nodes.
pub(in crate::scheduling) fn no_room_message<'a>(
    node_count: usize,
    rejected: impl Iterator<Item = (&'a Rejection, usize)>,
) -> String {
    let mut diagnosis = Diagnosis::new(node_count);
    let mut tried = 0;
    for (rejection, nodes) in rejected {
        diagnosis.add(rejection, nodes);
        tried += nodes;
    }
    let no_use = Rejection::by_no_plugin("Preemption is not helpful for scheduling");
    diagnosis.add(&no_use, node_count.saturating_sub(tried));
    not_eligible_message(&diagnosis.message(""))
}
