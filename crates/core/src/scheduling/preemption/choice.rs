//! On which node room is made.

use std::cmp::Reverse;

use crate::scheduling::tie_break::choose;

use super::{Candidate, Preemption, PreemptionResult};

impl Preemption {
    /// The best candidates; several if they are equal in every respect.
    pub fn best(&self) -> Vec<&Candidate> {
        let Preemption::Tried { candidates, .. } = self else {
            return Vec::new();
        };
        let Some(best) = candidates.iter().map(Cost::of).min() else {
            return Vec::new();
        };
        let candidates = candidates.iter();
        candidates.filter(|c| Cost::of(c) == best).collect()
    }

    /// Where room is made: of the best candidates, the first at or after the offset, going round.
    pub fn room(&self, offset: u32, slot_count: u32) -> PreemptionResult {
        match self {
            Preemption::SwitchedOff(message) => PreemptionResult::SwitchedOff(message),
            Preemption::NotTried => PreemptionResult::NotTried,
            Preemption::NotEligible(reason) => PreemptionResult::NotEligible(reason),
            Preemption::Tried { .. } => {
                let best = self.best();
                let slots = best.iter().map(|candidate| candidate.slot);
                let chosen = choose(slots, offset, slot_count);
                let chosen = best.into_iter().find(|own| Some(own.slot) == chosen);
                chosen.map_or(PreemptionResult::None, |candidate| {
                    PreemptionResult::At(candidate.clone())
                })
            }
        }
    }
}

/// The cost of making room on a node; the least is best.
///
/// Compared in this order: fewest broken disruption budgets, least important worst victim, least
/// sum of priorities, fewest victims, and the worst victims having run for the shortest time.
/// Matches v1.36 framework/preemption/preemption.go, `pickOneNodeForPreemption`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::scheduling) struct Cost {
    pdb_violations: u32,
    worst: i32,
    /// Shifted to be positive, so that fewer victims of negative priority are not the worse choice.
    sum: i64,
    victims: u32,
    earliest: Reverse<i64>,
}

impl Cost {
    pub(in crate::scheduling) fn of(candidate: &Candidate) -> Cost {
        let victims = &candidate.victims;
        let highest = victims.iter().map(|pod| pod.priority).max();
        let start_times = victims.iter().filter(|pod| Some(pod.priority) == highest);
        let earliest = start_times.map(|pod| pod.start_time.unwrap_or(i64::MAX));
        let sum = victims
            .iter()
            .map(|pod| i64::from(pod.priority) + (1 << 31));
        Cost {
            pdb_violations: number(candidate.pdb_violations),
            worst: victims.first().map_or(i32::MIN, |pod| pod.priority),
            sum: sum.sum(),
            victims: number(victims.len()),
            earliest: Reverse(earliest.min().unwrap_or(i64::MAX)),
        }
    }

    /// Whether no disruption budget is broken.
    pub(in crate::scheduling) fn is_harmless(&self) -> bool {
        self.pdb_violations == 0
    }
}

fn number(pods: usize) -> u32 {
    u32::try_from(pods).unwrap_or(u32::MAX)
}
