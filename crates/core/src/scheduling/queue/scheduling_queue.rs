//! The queue itself.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::backoff::Backoff;
use super::event::{Change, ClusterEvent, Object};
use super::facts::PodFacts;
use super::in_flight::{InFlight, Trigger};
use super::ordered::Ordered;
use super::queued_pod::{ActiveKey, QueuedPod, Rejectors};
use super::rejector::Plugin;
use super::sizes::{Incoming, QueueName, Sizes};
use super::time::Time;
use super::unschedulable::UnschedulablePods;
use super::wake::{Strategy, queueing_strategy};
use crate::object::identity::{PodRef, PodUid};

/// Labels of what brings pods into the queues.
const POD_ADD: &str = "UnschedulablePodAdd";
const POD_UPDATE: &str = "UnschedulablePodUpdate";
const ATTEMPT_FAILURE: &str = "ScheduleAttemptFailure";
const POP_FROM_BACKOFF: &str = "PopFromBackoffQ";

/// The times that are configurable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Between attempts.
    pub backoff: Backoff,
    /// After which an unschedulable pod is tried although nothing happened.
    pub max_unschedulable: Duration,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            backoff: Backoff::default(),
            max_unschedulable: Duration::from_mins(5),
        }
    }
}

/// A pod was handed back that is in the queue already.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("pod {pod_ref} is already present in the {queue} queue")]
pub struct AlreadyQueued {
    /// The pod.
    pub pod_ref: PodRef,
    /// Where it is.
    pub queue: QueueName,
}

/// The scheduling queue.
///
/// The owner calls [`flush`](SchedulingQueue::flush) at
/// [`next_deadline`](SchedulingQueue::next_deadline) at the latest, pops whenever it can try a
/// pod, and ends every attempt with [`done`](SchedulingQueue::done) or
/// [`add_unschedulable`](SchedulingQueue::add_unschedulable).
#[derive(Clone, Debug)]
pub struct SchedulingQueue {
    pub(super) settings: Settings,
    pub(super) active: Ordered<ActiveKey>,
    pub(super) backoff: Ordered<(Option<Time>, ActiveKey)>,
    /// Pods that no plugin rejected; they are never popped early, to spare a failing API server.
    pub(super) error_backoff: Ordered<(Option<Time>, u64)>,
    pub(super) unschedulable: UnschedulablePods,
    pub(super) in_flight: InFlight,
    pub(super) holds: BTreeMap<PodUid, BTreeSet<Plugin>>,
    next_sequence: u64,
    pub(super) next_leftover_check: Time,
    pub(super) incoming: Incoming,
}

impl SchedulingQueue {
    /// An empty queue that begins at `now`.
    pub fn new(settings: Settings, now: Time) -> SchedulingQueue {
        SchedulingQueue {
            settings,
            active: Ordered::by(QueuedPod::active_key),
            backoff: Ordered::by(|queued| (queued.backoff_expiry, queued.active_key())),
            error_backoff: Ordered::by(|queued| (queued.backoff_expiry, queued.sequence)),
            unschedulable: UnschedulablePods::default(),
            in_flight: InFlight::default(),
            holds: BTreeMap::new(),
            next_sequence: 0,
            next_leftover_check: now,
            incoming: Incoming::default(),
        }
    }

    /// Adds a pending pod.
    pub fn add(&mut self, pod: Arc<PodFacts>, now: Time) {
        self.add_as(pod, POD_ADD, now);
    }

    fn add_as(&mut self, pod: Arc<PodFacts>, event: &str, now: Time) {
        let pod_ref = pod.pod_ref.clone();
        let queued = QueuedPod::new(pod, now, self.draw_sequence());
        let gated = self.move_to_active(queued, event, now);
        // A pod of that name that was left behind gives way, unless it is ahead of a gated one.
        match (gated, self.place_of(&pod_ref)) {
            (Some(_), Some(QueueName::Active | QueueName::Backoff)) => {}
            (Some(gated), _) => {
                self.unschedulable.remove(&pod_ref);
                self.move_to_unschedulable(gated, event);
            }
            (None, _) => {
                self.unschedulable.remove(&pod_ref);
                self.remove_backing_off(&pod_ref);
            }
        }
    }

    /// Updates a pending pod. One that is unknown is added; one that is being tried is updated when
    /// the attempt fails.
    pub fn update(&mut self, old: &Arc<PodFacts>, new: &Arc<PodFacts>, now: Time) {
        let events = ClusterEvent::all_of(&Object::Pod(Change::Updated {
            old: Arc::clone(old),
            new: Arc::clone(new),
        }));
        if self.in_flight.contains(&new.uid) {
            for event in events {
                self.in_flight.record(Trigger::Cluster(event));
            }
        } else if let Some(mut queued) = self.unschedulable.remove(&new.pod_ref) {
            queued.pod = Arc::clone(new);
            self.update_unschedulable(queued, events, now);
        } else if self.place_of(&new.pod_ref).is_none() {
            self.add_as(Arc::clone(new), POD_UPDATE, now);
        } else {
            self.active.update(new);
            self.backoff.update(new);
            self.error_backoff.update(new);
        }
    }

    fn update_unschedulable(
        &mut self,
        mut queued: QueuedPod,
        events: Vec<ClusterEvent>,
        now: Time,
    ) {
        for event in events {
            let (event, trigger) = (event.to_string(), Trigger::Cluster(event));
            let strategy = queueing_strategy(&queued, &trigger);
            if strategy == Strategy::Skip {
                continue;
            }
            match self.requeue(queued, strategy, &event, now) {
                None => return,
                Some(gated) => queued = gated,
            }
        }
        // It stays where it was, so that nothing came in.
        self.unschedulable.insert(queued);
    }

    /// Removes a pod that was deleted or got a node, wherever it waits. An attempt that is under
    /// way has to be ended by its owner.
    pub fn delete(&mut self, pod: &PodFacts) {
        let _: Option<QueuedPod> = self
            .active
            .remove(&pod.pod_ref)
            .or_else(|| self.remove_backing_off(&pod.pod_ref))
            .or_else(|| self.unschedulable.remove(&pod.pod_ref));
    }

    /// Takes out the next pod to try: the first active one, or else the first one that backs off
    /// after a rejection. `None` if all there are have to wait.
    pub fn pop(&mut self) -> Option<QueuedPod> {
        loop {
            let mut queued = match self.active.pop_first() {
                Some(queued) => queued,
                None => {
                    let queued = self.backoff.pop_first()?;
                    self.incoming.count(QueueName::Active, POP_FROM_BACKOFF);
                    queued
                }
            };
            queued.attempts = queued.attempts.saturating_add(1);
            // A pod that is being tried already is here by a mistake of the owner; one attempt at
            // a time is enough.
            if self.in_flight.start(&queued.pod.uid) {
                return Some(queued);
            }
        }
    }

    /// Ends the attempt at a pod that was bound, or is gone.
    pub fn done(&mut self, uid: &PodUid) {
        self.in_flight.done(uid);
    }

    /// Ends a failed attempt and takes the pod back, with its latest version in `queued.pod`.
    ///
    /// It becomes unschedulable, unless something happened during the attempt that requeues it.
    /// Without rejectors the attempt ended in an error, which time alone may fix.
    pub fn add_unschedulable(
        &mut self,
        mut queued: QueuedPod,
        rejectors: Rejectors,
        now: Time,
    ) -> Result<(), AlreadyQueued> {
        let uid = queued.pod.uid.clone();
        let pod_ref = &queued.pod.pod_ref;
        if let Some(queue) = self.place_of(pod_ref) {
            let pod_ref = pod_ref.clone();
            self.in_flight.done(&uid);
            return Err(AlreadyQueued { pod_ref, queue });
        }
        if rejectors.is_empty() {
            queued.consecutive_errors = queued.consecutive_errors.saturating_add(1);
        } else {
            queued.unschedulable_count = queued.unschedulable_count.saturating_add(1);
            queued.consecutive_errors = 0;
        }
        queued.rejectors = rejectors;
        queued.timestamp = now;
        queued.sequence = self.draw_sequence();
        queued.backoff_expiry = self.settings.backoff.expiry(now, queued.failures());
        queued.was_flushed = false;
        queued.flushed_at = Time::default();

        let strategy = self.strategy_after_attempt(&queued);
        self.in_flight.done(&uid);
        let stays = if strategy == Strategy::Skip {
            Some(queued)
        } else {
            self.requeue(queued, strategy, ATTEMPT_FAILURE, now)
        };
        if let Some(queued) = stays {
            self.move_to_unschedulable(queued, ATTEMPT_FAILURE);
        }
        Ok(())
    }

    /// How many pods are where.
    pub fn sizes(&self) -> Sizes {
        Sizes {
            active: self.active.len(),
            backoff: self.backoff.len() + self.error_backoff.len(),
            unschedulable: self.unschedulable.ungated(),
            gated: self.unschedulable.gated(),
            in_flight: self.in_flight.len(),
        }
    }

    /// How many pods came where because of what, since the beginning.
    pub fn incoming(&self) -> &Incoming {
        &self.incoming
    }

    /// All pods that wait, and where; takes time in proportion to their number.
    pub fn pending(&self) -> impl Iterator<Item = (QueueName, &QueuedPod)> {
        let active = self.active.iter().map(|pod| (QueueName::Active, pod));
        let backing_off = self.backoff.iter().chain(self.error_backoff.iter());
        let backing_off = backing_off.map(|pod| (QueueName::Backoff, pod));
        let rest = self.unschedulable.iter();
        let rest = rest.map(|pod| (QueueName::Unschedulable, pod));
        active.chain(backing_off).chain(rest)
    }

    /// The pod of that name, if it waits.
    pub fn get(&self, pod_ref: &PodRef) -> Option<&QueuedPod> {
        self.active
            .get(pod_ref)
            .or_else(|| self.backoff.get(pod_ref))
            .or_else(|| self.error_backoff.get(pod_ref))
            .or_else(|| self.unschedulable.get(pod_ref))
    }

    fn draw_sequence(&mut self) -> u64 {
        self.next_sequence += 1;
        self.next_sequence
    }
}
