//! What is told to whom about a preemption.

use crate::object::identity::{NodeName, PodUid};
use crate::scheduling::diagnosis::Diagnosis;
use crate::scheduling::plugin::Rejection;

use super::Preemption;

/// The reason of the condition `DisruptionTarget` that victims get.
pub const PREEMPTION_CONDITION_REASON: &str = "PreemptionByScheduler";
/// The reason of the event that victims get.
pub const PREEMPTED_EVENT_REASON: &str = "Preempted";

/// What the dynamic resources plugin has to say.
pub(super) const NO_CLAIMS: &str = "no new claims to deallocate";

/// The message of the condition `DisruptionTarget` that victims get.
pub fn condition_message(scheduler_name: &str) -> String {
    format!("{scheduler_name}: preempting to accommodate a higher priority pod")
}

/// The note of the event that victims get.
pub fn event_note(preemptor: &PodUid, node: &NodeName) -> String {
    format!("Preempted by pod {preemptor} on node {node}")
}

impl Preemption {
    /// What the preemptor's own message ends in; empty if room can be made.
    ///
    /// The part before the comma is the dynamic resources plugin's, which is asked first. When no
    /// node could come into question, it does not find its own notes, and that is all there is.
    pub fn message(&self, node_count: usize) -> String {
        let text = match self {
            Preemption::SwitchedOff(told) => return (*told).to_owned(),
            Preemption::NotTried => return "not found".to_owned(),
            Preemption::NotEligible(reason) => (*reason).to_owned(),
            Preemption::Tried { candidates, .. } if !candidates.is_empty() => {
                return String::new();
            }
            Preemption::Tried { rejected, .. } => {
                let mut diagnosis = Diagnosis::new(node_count);
                for (_, rejection) in rejected {
                    diagnosis.add(rejection, 1);
                }
                let untried = node_count.saturating_sub(rejected.len());
                let no_use = Rejection::by_no_plugin("Preemption is not helpful for scheduling");
                diagnosis.add(&no_use, untried);
                diagnosis.message("")
            }
        };
        format!("{NO_CLAIMS}, preemption: {text}")
    }
}
