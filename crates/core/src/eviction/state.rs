//! What the engine remembers between passes. Its size depends on the number of thresholds and
//! signals, never on how long it has run.

use std::collections::{BTreeMap, BTreeSet};

use crate::object::node::NodeCondition;
use crate::object::timestamp::Timestamp;
use crate::threshold::{Duration, Operator, Signal, Threshold};

use super::decision::ThresholdId;
use super::forecast::Trends;
use super::observation::Readings;
use super::pending::PendingEvictions;
use super::settings::is_same_line;
use super::shortfall::{BackOff, MemoryEviction};

/// What the engine remembers between passes. A restart forgets it, as upstream's does.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct State {
    /// Whether a pass was begun, even without an observation.
    pub(super) has_passed: bool,
    /// Since when each threshold is met or unresolved.
    pub(super) first_observed: BTreeMap<ThresholdId, Timestamp>,
    /// Thresholds past their grace in the last pass. They stay until their reclaim is done.
    pub(super) due: BTreeSet<ThresholdId>,
    /// When each condition was last seen.
    pub(super) last_sighted: BTreeMap<NodeCondition, Timestamp>,
    /// What the node reports.
    pub(super) conditions: BTreeSet<NodeCondition>,
    /// The measuring times of the last pass; a signal that was not observed is absent.
    pub(super) last_times: BTreeMap<Signal, Option<Timestamp>>,
    /// Since when stalls are above their limit.
    pub(super) stalled_since: Option<Timestamp>,
    /// The measuring time of the stalls of the last pass.
    pub(super) last_stall_time: Option<Timestamp>,
    /// Pods that are being evicted.
    pub(super) evictions: PendingEvictions,
    /// Until when the kernel's own kill is waited for in the present shortage.
    pub(super) oom_wait_until: Option<Timestamp>,
    /// When a pod was last evicted for want of memory.
    pub(super) evicted_for_memory: Option<MemoryEviction>,
    /// The last back-off where evicting pods could not help.
    pub(super) back_off: Option<BackOff>,
    /// The recent past of the signals.
    pub(super) trends: Trends,
}

/// Whether the reading is below the line, or below line plus reclaim.
pub(super) fn is_met(threshold: &Threshold, readings: &Readings, reclaim: Reclaim) -> bool {
    if threshold.operator == Operator::Never {
        return false;
    }
    let Some(reading) = readings.get(threshold.signal) else {
        return false;
    };
    let capacity = reading.capacity_quantity(threshold.signal);
    let mut line = threshold.value.at_capacity(&capacity);
    if let (Reclaim::Included, Some(reclaim)) = (reclaim, &threshold.min_reclaim) {
        line.add(&reclaim.at_capacity(&capacity));
    }
    line > reading.available_quantity(threshold.signal)
}

/// Whether the minimum reclaim is added to a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reclaim {
    Ignored,
    Included,
}

impl State {
    /// Notes which thresholds are met or unresolved, and since when.
    pub(super) fn observe(
        &mut self,
        now: Timestamp,
        watched: &[Threshold],
        all: &[Threshold],
        readings: &Readings,
    ) {
        let mut met: BTreeSet<ThresholdId> = watched
            .iter()
            .enumerate()
            .filter(|(_, threshold)| is_met(threshold, readings, Reclaim::Ignored))
            .map(|(index, _)| ThresholdId(index))
            .collect();
        for id in &self.due {
            let threshold = &all[id.0];
            let is_listed = met
                .iter()
                .any(|listed| is_same_line(&all[listed.0], threshold));
            if !is_listed && is_met(threshold, readings, Reclaim::Included) {
                met.insert(*id);
            }
        }
        let since = |id: ThresholdId| self.first_observed.get(&id).copied().unwrap_or(now);
        self.first_observed = met.into_iter().map(|id| (id, since(id))).collect();
    }

    /// Notes the conditions: seen now, or within the transition period before.
    pub(super) fn sight_conditions(
        &mut self,
        now: Timestamp,
        all: &[Threshold],
        is_stalled: bool,
        transition_period: Duration,
    ) {
        for id in self.first_observed.keys() {
            let condition = all[id.0].signal.node_condition();
            self.last_sighted.insert(condition, now);
        }
        if is_stalled {
            self.last_sighted.insert(NodeCondition::MemoryPressure, now);
        }
        let recent = self
            .last_sighted
            .iter()
            .filter(|(_, at)| now - **at < transition_period);
        self.conditions = recent.map(|(condition, _)| *condition).collect();
    }

    /// Notes which thresholds are past their grace, and gives those among them whose measurement
    /// is newer than the last pass's: the same numbers are never acted upon twice.
    pub(super) fn advance_due(
        &mut self,
        now: Timestamp,
        all: &[Threshold],
        readings: &Readings,
    ) -> Vec<ThresholdId> {
        let past_grace = |(id, since): (&ThresholdId, &Timestamp)| {
            (now - *since >= all[id.0].grace_period).then_some(*id)
        };
        self.due = self.first_observed.iter().filter_map(past_grace).collect();
        let is_fresh = |id: &&ThresholdId| {
            let signal = all[id.0].signal;
            let Some(reading) = readings.get(signal) else {
                return false;
            };
            match (reading.time, self.last_times.get(&signal)) {
                (None, _) | (_, None) => true,
                (Some(time), Some(last)) => last.is_none_or(|last| time > last),
            }
        };
        let fresh = self.due.iter().filter(is_fresh).copied().collect();
        self.last_times = Signal::ALL
            .into_iter()
            .filter_map(|signal| Some((signal, readings.get(signal)?.time)))
            .collect();
        fresh
    }
}
