//! Moves between the parts of the queue, and the PreEnqueue gates.

use super::backoff::is_backing_off;
use super::queued_pod::QueuedPod;
use super::rejector::Plugin;
use super::scheduling_queue::SchedulingQueue;
use super::sizes::QueueName;
use super::time::Time;
use super::wake::Strategy;
use crate::object::identity::PodRef;

/// Moves into the queues that are popped take a pod that is nowhere, and give it back if a plugin
/// gates it.
impl SchedulingQueue {
    /// Lets the pod back off if the strategy and the time demand it, else makes it active.
    #[must_use]
    pub(super) fn requeue(
        &mut self,
        queued: QueuedPod,
        strategy: Strategy,
        event: &str,
        now: Time,
    ) -> Option<QueuedPod> {
        if strategy == Strategy::AfterBackoff && is_backing_off(queued.backoff_expiry, now) {
            self.move_to_backoff(queued, event)
        } else {
            self.move_to_active(queued, event, now)
        }
    }

    #[must_use]
    pub(super) fn move_to_active(
        &mut self,
        mut queued: QueuedPod,
        event: &str,
        now: Time,
    ) -> Option<QueuedPod> {
        if self.is_gated(&mut queued) {
            return Some(queued);
        }
        self.insert_active(queued, event, now);
        None
    }

    /// Makes a pod active that has passed the gates.
    pub(super) fn insert_active(&mut self, mut queued: QueuedPod, event: &str, now: Time) {
        queued.initial_attempt.get_or_insert(now);
        self.incoming.count(QueueName::Active, event);
        self.active.insert(queued);
    }

    #[must_use]
    fn move_to_backoff(&mut self, mut queued: QueuedPod, event: &str) -> Option<QueuedPod> {
        if self.is_gated(&mut queued) {
            return Some(queued);
        }
        self.incoming.count(QueueName::Backoff, event);
        if queued.rejectors.is_empty() {
            self.error_backoff.insert(queued);
        } else {
            self.backoff.insert(queued);
        }
        None
    }

    pub(super) fn move_to_unschedulable(&mut self, queued: QueuedPod, event: &str) {
        self.incoming.count(QueueName::Unschedulable, event);
        self.unschedulable.insert(queued);
    }

    /// Whether a plugin gates the pod; that plugin is then one of its rejectors.
    fn is_gated(&self, queued: &mut QueuedPod) -> bool {
        let holds = self.holds.get(&queued.pod.uid);
        let has_gates = !queued.pod.scheduling_gates.is_empty();
        let gates = |plugin: &Plugin| {
            let is_held = holds.is_some_and(|plugins| plugins.contains(plugin));
            is_held || *plugin == Plugin::SchedulingGates && has_gates
        };
        let same = queued.gating.filter(gates);
        queued.gating = same.or_else(|| Plugin::ALL.into_iter().find(gates));
        if let Some(plugin) = queued.gating {
            queued.rejectors.unschedulable.insert(plugin);
            queued.was_flushed = false;
        }
        queued.gating.is_some()
    }

    /// Where a pod waits.
    pub(super) fn place_of(&self, pod_ref: &PodRef) -> Option<QueueName> {
        let is_backing_off = self.backoff.contains(pod_ref) || self.error_backoff.contains(pod_ref);
        if self.unschedulable.contains(pod_ref) {
            Some(QueueName::Unschedulable)
        } else if self.active.contains(pod_ref) {
            Some(QueueName::Active)
        } else {
            is_backing_off.then_some(QueueName::Backoff)
        }
    }

    pub(super) fn remove_backing_off(&mut self, pod_ref: &PodRef) -> Option<QueuedPod> {
        let removed = self.backoff.remove(pod_ref);
        removed.or_else(|| self.error_backoff.remove(pod_ref))
    }
}
