//! Which events requeue a pod.

use super::event::{ClusterEvent, Object};
use super::facts::PodFacts;
use super::hint::Hint;
use super::in_flight::Trigger;
use super::queued_pod::QueuedPod;
use super::rejector::Plugin;
use super::scheduling_queue::SchedulingQueue;
use super::time::Time;
use crate::object::identity::{PodRef, PodUid};

/// Label of what [`SchedulingQueue::activate`] does.
const FORCE_ACTIVATE: &str = "ForceActivate";

/// Which pods an event can concern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Affected {
    /// All.
    All,
    /// Those of this priority or a lower one: from others a nominated pod kept no room.
    PriorityAtMost(i32),
}

impl Affected {
    fn includes(self, pod: &PodFacts) -> bool {
        match self {
            Affected::All => true,
            Affected::PriorityAtMost(priority) => pod.priority <= priority,
        }
    }
}

/// How a pod is requeued, from not at all to at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Strategy {
    Skip,
    AfterBackoff,
    Immediately,
}

/// How a trigger requeues a pod, by the hints of the plugins that rejected it.
pub(super) fn queueing_strategy(queued: &QueuedPod, trigger: &Trigger) -> Strategy {
    let event = match trigger {
        _ if queued.rejectors.is_empty() => return Strategy::AfterBackoff,
        Trigger::UnschedulableTimeout => return Strategy::AfterBackoff,
        Trigger::ForceActivate(uid) if *uid == queued.pod.uid => return Strategy::AfterBackoff,
        Trigger::ForceActivate(_) => return Strategy::Skip,
        Trigger::Cluster(event) => event,
    };
    let asks =
        |plugin: &Plugin| plugin.registers(event) && plugin.hint(&queued.pod, event) == Hint::Queue;
    if queued.rejectors.pending.iter().any(asks) {
        Strategy::Immediately
    } else if queued.rejectors.unschedulable.iter().any(asks) {
        Strategy::AfterBackoff
    } else {
        Strategy::Skip
    }
}

impl SchedulingQueue {
    /// Handles a change of an object other than a pending pod: requeues the unschedulable pods for
    /// which it may matter.
    pub fn on_change(&mut self, object: &Object, affected: Affected, now: Time) {
        for event in ClusterEvent::all_of(object) {
            self.on_event(event, affected, now);
        }
    }

    fn on_event(&mut self, event: ClusterEvent, affected: Affected, now: Time) {
        let registers = |plugin: &Plugin| plugin.registers(&event);
        let plugins: Vec<Plugin> = Plugin::ALL.into_iter().filter(registers).collect();
        if plugins.is_empty() {
            return;
        }
        let (label, trigger) = (event.to_string(), Trigger::Cluster(event));
        for pod_ref in self.unschedulable.subscribed_to(&plugins) {
            let queued = self.unschedulable.get(&pod_ref);
            let queued = queued.filter(|queued| affected.includes(&queued.pod));
            let strategy =
                queued.map_or(Strategy::Skip, |queued| queueing_strategy(queued, &trigger));
            self.wake(&pod_ref, strategy, &label, now);
        }
        self.in_flight.record(trigger);
    }

    /// Moves an unschedulable pod as a trigger demands; a gated one comes back.
    pub(super) fn wake(&mut self, pod_ref: &PodRef, strategy: Strategy, event: &str, now: Time) {
        if strategy != Strategy::Skip
            && let Some(queued) = self.unschedulable.remove(pod_ref)
            && let Some(gated) = self.requeue(queued, strategy, event, now)
        {
            self.move_to_unschedulable(gated, event);
        }
    }

    /// How the events during its attempt requeue a pod that failed.
    pub(super) fn strategy_after_attempt(&self, queued: &QueuedPod) -> Strategy {
        if queued.rejectors.is_empty() {
            return Strategy::AfterBackoff;
        }
        let Some(triggers) = self.in_flight.since_start(&queued.pod.uid) else {
            // Which events the attempt has seen is not known.
            return Strategy::AfterBackoff;
        };
        let best_possible = if queued.rejectors.pending.is_empty() {
            Strategy::AfterBackoff
        } else {
            Strategy::Immediately
        };
        let mut best = Strategy::Skip;
        for trigger in triggers {
            best = best.max(queueing_strategy(queued, trigger));
            if best == best_possible {
                break;
            }
        }
        best
    }

    /// Makes a waiting pod active, whatever it waits for, unless it is gated. A pod that is being
    /// tried is tried again if the attempt fails.
    pub fn activate(&mut self, pod: &PodFacts, now: Time) {
        if let Some(queued) = self.remove_backing_off(&pod.pod_ref) {
            self.insert_active(queued, FORCE_ACTIVATE, now);
        } else if let Some(queued) = self.unschedulable.remove(&pod.pod_ref) {
            if let Some(gated) = self.move_to_active(queued, FORCE_ACTIVATE, now) {
                self.unschedulable.insert(gated);
            }
        } else if self.in_flight.contains(&pod.uid) {
            let trigger = Trigger::ForceActivate(pod.uid.clone());
            self.in_flight.record(trigger);
        }
    }

    /// Gates a pod from the next time that it would become active or back off, until the plugin
    /// releases it. It need not be in the queue.
    pub fn hold(&mut self, uid: &PodUid, plugin: Plugin) {
        self.holds.entry(uid.clone()).or_default().insert(plugin);
    }

    /// Ends a hold. The pod waits for the next event that concerns it, or for
    /// [`activate`](SchedulingQueue::activate).
    pub fn release(&mut self, uid: &PodUid, plugin: Plugin) {
        if let Some(plugins) = self.holds.get_mut(uid) {
            plugins.remove(&plugin);
            if plugins.is_empty() {
                self.holds.remove(uid);
            }
        }
    }
}
