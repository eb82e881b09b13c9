//! On which node room is made.

use std::cmp::Reverse;

use super::{Candidate, Preemption};

impl Preemption {
    /// The best candidates; several if nothing tells them apart.
    ///
    /// In this order: fewest broken disruption budgets, least important worst victim, least sum of
    /// priorities, fewest victims, and the worst victims having run for the shortest time. Matches
    /// v1.36 framework/preemption/preemption.go, `pickOneNodeForPreemption`.
    pub fn best(&self) -> Vec<&Candidate> {
        let Preemption::Tried { candidates, .. } = self else {
            return Vec::new();
        };
        let Some(best) = candidates.iter().map(cost).min() else {
            return Vec::new();
        };
        let candidates = candidates.iter();
        candidates.filter(|c| cost(c) == best).collect()
    }
}

fn cost(candidate: &Candidate) -> impl Ord + use<> {
    let victims = &candidate.victims;
    let worst = victims.first().map_or(i32::MIN, |pod| pod.priority);
    // Shifted to be positive, so that fewer victims of negative priority are not the worse choice.
    let sum: i64 = victims
        .iter()
        .map(|pod| i64::from(pod.priority) + (1 << 31))
        .sum();
    let highest = victims.iter().map(|pod| pod.priority).max();
    let start_times = victims.iter().filter(|pod| Some(pod.priority) == highest);
    let earliest = start_times
        .map(|pod| pod.start_time.unwrap_or(i64::MAX))
        .min();
    (
        candidate.pdb_violations,
        worst,
        sum,
        victims.len(),
        Reverse(earliest),
    )
}
