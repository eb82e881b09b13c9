//! Pods whose attempts are under way, and the events that arrived meanwhile.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::event::ClusterEvent;
use crate::object::identity::PodUid;

/// Something that can make a pod schedulable.
#[derive(Clone, Debug)]
pub(super) enum Trigger {
    /// A change of an object.
    Cluster(ClusterEvent),
    /// Pods had been unschedulable for too long; concerns every pod that it is applied to.
    UnschedulableTimeout,
    /// A request to activate this pod.
    ForceActivate(PodUid),
}

/// A log of events that reaches back to the start of the oldest attempt under way.
#[derive(Clone, Debug, Default)]
pub(super) struct InFlight {
    /// Where in the log each attempt began.
    starts: BTreeMap<PodUid, u64>,
    /// The same by place.
    by_start: BTreeSet<(u64, PodUid)>,
    log: VecDeque<Trigger>,
    /// The place of the first event in the log.
    log_start: u64,
}

impl InFlight {
    /// Records the start of an attempt; false if one is under way.
    pub(super) fn start(&mut self, uid: &PodUid) -> bool {
        if self.starts.contains_key(uid) {
            return false;
        }
        let place = self.log_start + self.log.len() as u64;
        self.starts.insert(uid.clone(), place);
        self.by_start.insert((place, uid.clone()));
        true
    }

    pub(super) fn contains(&self, uid: &PodUid) -> bool {
        self.starts.contains_key(uid)
    }

    pub(super) fn len(&self) -> usize {
        self.starts.len()
    }

    /// Keeps an event, if an attempt is under way.
    pub(super) fn record(&mut self, trigger: Trigger) {
        if !self.starts.is_empty() {
            self.log.push_back(trigger);
        }
    }

    /// The events since the attempt began; `None` if there is no attempt.
    pub(super) fn since_start(&self, uid: &PodUid) -> Option<impl Iterator<Item = &Trigger>> {
        let start = self.starts.get(uid)?;
        let seen = usize::try_from(start - self.log_start).unwrap_or(usize::MAX);
        Some(self.log.iter().skip(seen))
    }

    /// Records the end of an attempt, and drops what only it needed.
    pub(super) fn done(&mut self, uid: &PodUid) {
        let Some(start) = self.starts.remove(uid) else {
            return;
        };
        self.by_start.remove(&(start, uid.clone()));
        let end = self.log_start + self.log.len() as u64;
        let needed_from = self.by_start.first().map_or(end, |(start, _)| *start);
        while self.log_start < needed_from {
            self.log.pop_front();
            self.log_start += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uid(name: &str) -> PodUid {
        PodUid::from(name)
    }

    fn seen(in_flight: &InFlight, name: &str) -> Option<usize> {
        in_flight.since_start(&uid(name)).map(Iterator::count)
    }

    #[test]
    fn attempt_sees_events_since_its_start_and_no_event_is_kept_longer() {
        let mut in_flight = InFlight::default();
        in_flight.record(Trigger::UnschedulableTimeout);
        assert!(in_flight.log.is_empty());
        assert!(in_flight.start(&uid("a")));
        assert!(!in_flight.start(&uid("a")));
        in_flight.record(Trigger::UnschedulableTimeout);
        in_flight.start(&uid("b"));
        in_flight.start(&uid("c"));
        in_flight.record(Trigger::UnschedulableTimeout);
        assert_eq!(seen(&in_flight, "a"), Some(2));
        assert_eq!(seen(&in_flight, "b"), Some(1));
        assert_eq!(seen(&in_flight, "d"), None);
        in_flight.done(&uid("b"));
        assert_eq!(in_flight.log.len(), 2);
        in_flight.done(&uid("a"));
        assert_eq!(in_flight.log.len(), 1);
        assert_eq!(seen(&in_flight, "c"), Some(1));
        in_flight.done(&uid("c"));
        in_flight.done(&uid("c"));
        assert!(in_flight.log.is_empty());
    }
}
