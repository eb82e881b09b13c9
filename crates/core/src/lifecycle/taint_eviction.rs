//! When pods leave a node with `NoExecute` taints.
//!
//! A pod that does not tolerate all of them leaves at once. One that tolerates them for a time gets
//! a timer, which runs from when the controller first saw the taints; a restart of the controller
//! restarts it. A timer that runs is not changed by other taints or tolerations, it is only
//! cancelled: when the taints go, when the pod tolerates them without limit, when the pod is gone.
//! Matches v1.36 pkg/controller/tainteviction/taint_eviction.go.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::object::identity::PodRef;
use crate::object::taint::TolerationTime;
use crate::object::timestamp::Timestamp;

/// The timers of all pods on tainted nodes.
#[derive(Clone, Debug, Default)]
pub struct TaintEvictions {
    timers: BTreeMap<PodRef, Timer>,
    /// The same timers in the order in which they end.
    order: BTreeSet<(Timestamp, PodRef)>,
    /// Pods that are being deleted right now.
    leaving: BTreeSet<PodRef>,
}

#[derive(Clone, Copy, Debug)]
struct Timer {
    started: Timestamp,
    ends: Timestamp,
}

/// How a pod's timer changed, for events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerChange {
    /// Nothing worth an event.
    None,
    /// A timer that ran was cancelled. Another may have been started at once.
    Cancelled,
}

impl TaintEvictions {
    /// Takes a pod on a tainted node into account, given how long the taints let it stay.
    pub fn observe(&mut self, pod: &PodRef, stay: TolerationTime, now: Timestamp) -> TimerChange {
        let seconds = match stay {
            TolerationTime::Unlimited => return self.cancel(pod),
            TolerationTime::Seconds(seconds) => Duration::from_secs(seconds),
        };
        let ends = now.saturating_add(seconds);
        let Some(timer) = self.timers.get(pod) else {
            self.start(pod, now, ends);
            return TimerChange::None;
        };
        if !seconds.is_zero() && timer.started < now {
            return TimerChange::None;
        }
        let change = self.cancel(pod);
        self.start(pod, now, ends);
        change
    }

    /// Takes into account that no taint is about the pod any more, or that the pod is gone.
    pub fn cancel(&mut self, pod: &PodRef) -> TimerChange {
        self.leaving.remove(pod);
        let Some(timer) = self.timers.remove(pod) else {
            return TimerChange::None;
        };
        self.order.remove(&(timer.ends, pod.clone()));
        TimerChange::Cancelled
    }

    fn start(&mut self, pod: &PodRef, started: Timestamp, ends: Timestamp) {
        if self.leaving.contains(pod) {
            return;
        }
        self.timers.insert(pod.clone(), Timer { started, ends });
        self.order.insert((ends, pod.clone()));
    }

    /// Takes the pods whose time is over. Each is to be deleted and then reported as
    /// [`left`](Self::left).
    pub fn take_due(&mut self, now: Timestamp) -> Vec<PodRef> {
        let mut due = Vec::new();
        while let Some((ends, _)) = self.order.first()
            && *ends <= now
        {
            let Some((_, pod)) = self.order.pop_first() else {
                break;
            };
            self.timers.remove(&pod);
            self.leaving.insert(pod.clone());
            due.push(pod);
        }
        due
    }

    /// Whether the pod's time is over and its deletion has not been reported as over.
    pub fn is_leaving(&self, pod: &PodRef) -> bool {
        self.leaving.contains(pod)
    }

    /// Records that the deletion of a pod is over, successful or not.
    pub fn left(&mut self, pod: &PodRef) {
        self.leaving.remove(pod);
    }

    /// When the next timer ends.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.order.first().map(|(ends, _)| *ends)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_secs(secs)
    }

    fn pod(name: &str) -> PodRef {
        PodRef {
            namespace: "default".to_owned(),
            name: name.to_owned(),
        }
    }

    #[test]
    fn pods_leave_when_their_time_is_over() {
        let mut evictions = TaintEvictions::default();
        evictions.observe(&pod("at-once"), TolerationTime::Seconds(0), at(0));
        evictions.observe(&pod("later"), TolerationTime::Seconds(300), at(0));
        evictions.observe(&pod("never"), TolerationTime::Unlimited, at(0));
        assert_eq!(evictions.take_due(at(0)), [pod("at-once")]);
        assert_eq!(evictions.next_due(), Some(at(300)));
        assert!(evictions.take_due(at(299)).is_empty());
        assert_eq!(evictions.take_due(at(300)), [pod("later")]);
        assert_eq!(evictions.next_due(), None);
    }

    #[test]
    fn timers_are_cancelled_when_taints_are_removed_or_tolerated() {
        let mut evictions = TaintEvictions::default();
        for name in ["a", "b"] {
            evictions.observe(&pod(name), TolerationTime::Seconds(60), at(0));
        }
        assert_eq!(evictions.cancel(&pod("a")), TimerChange::Cancelled);
        assert_eq!(evictions.cancel(&pod("a")), TimerChange::None);
        let change = evictions.observe(&pod("b"), TolerationTime::Unlimited, at(1));
        assert_eq!(change, TimerChange::Cancelled);
        assert!(evictions.take_due(at(1000)).is_empty());
    }

    #[test]
    fn running_timer_is_kept_unless_eviction_is_immediate() {
        let mut evictions = TaintEvictions::default();
        evictions.observe(&pod("a"), TolerationTime::Seconds(300), at(0));
        for (seconds, now) in [(300, 10), (20, 20), (600, 30)] {
            let change = evictions.observe(&pod("a"), TolerationTime::Seconds(seconds), at(now));
            assert_eq!(change, TimerChange::None);
            assert_eq!(evictions.next_due(), Some(at(300)));
        }
        let change = evictions.observe(&pod("a"), TolerationTime::Seconds(0), at(40));
        assert_eq!(change, TimerChange::Cancelled);
        assert_eq!(evictions.take_due(at(40)), [pod("a")]);
    }

    #[test]
    fn terminating_pod_is_not_evicted_twice() {
        let mut evictions = TaintEvictions::default();
        evictions.observe(&pod("a"), TolerationTime::Seconds(0), at(0));
        assert_eq!(evictions.take_due(at(0)).len(), 1);
        assert!(evictions.is_leaving(&pod("a")));
        evictions.observe(&pod("a"), TolerationTime::Seconds(0), at(1));
        assert!(evictions.take_due(at(1)).is_empty());
        evictions.left(&pod("a"));
        evictions.observe(&pod("a"), TolerationTime::Seconds(0), at(2));
        assert_eq!(evictions.take_due(at(2)).len(), 1);
    }
}
