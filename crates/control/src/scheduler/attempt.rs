//! Trying a pod.
//!
//! Matches v1.36 pkg/scheduler/schedule_one.go.

use std::sync::Arc;

use plimsoll_core::object::identity::NodeName;
use plimsoll_core::scheduling::decision::{Decision, Error, Placement};
use plimsoll_core::scheduling::queue::{QueuedPod, Time};

use plimsoll_client::events::{EventType, Occurrence};

use super::action::Action;
use super::failure::Failure;
use super::known_pod::reference;
use super::metrics::Outcome;
use super::records::{Record, Verdict};
use super::state::{Binding, Loop};

impl Loop {
    /// Tries the next pod; false if there is none to be tried, or none may be.
    pub fn attempt(&mut self, now: Time) -> bool {
        if self.writes >= self.max_writes || !self.is_synced() {
            return false;
        }
        let Some(queued) = self.queue.pop() else {
            return false;
        };
        let Some(profile) = self.engine.profile_of(&queued.pod) else {
            self.queue.done(&queued.pod.uid);
            return true;
        };
        if self.is_skipped(&queued, profile) {
            self.queue.done(&queued.pod.uid);
            return true;
        }
        match self.engine.schedule(profile, &queued.pod.view) {
            Ok(Decision::Place(placement)) => self.place(queued, profile, placement, now),
            Ok(Decision::Wait(why)) => self.wait(queued, profile, *why, now),
            Err(error) => {
                let outcome = match error {
                    Error::NoNodes => Outcome::Unschedulable,
                    Error::InvalidScore(_) => Outcome::Error,
                };
                let failure = Failure::without_plugins(outcome, error.to_string());
                self.fail(queued, profile, failure, now, now);
            }
        }
        true
    }

    fn is_skipped(&mut self, queued: &QueuedPod, profile: usize) -> bool {
        let pod = &queued.pod;
        if pod.is_terminating {
            let note = format!("skip schedule deleting pod: {}", pod.pod_ref);
            self.record_failed(queued, profile, note);
            return true;
        }
        self.engine.cluster().is_assumed(&pod.uid)
    }

    fn place(&mut self, queued: QueuedPod, profile: usize, placement: Placement, now: Time) {
        let Some(node) = self.engine.cluster().node(placement.slot) else {
            return self.queue.done(&queued.pod.uid);
        };
        let node = node.view.name.clone();
        let pod = Arc::clone(&queued.pod);
        self.engine
            .change(|cluster| cluster.assume_pod(Arc::clone(&pod.view), &node));
        // Nothing that happens from here on makes the pod unschedulable, so that events during the
        // attempt need not be kept.
        self.queue.done(&pod.uid);
        self.records.add(Record {
            time: now,
            pod_ref: pod.pod_ref.clone(),
            uid: pod.uid.clone(),
            attempt: queued.attempts,
            verdict: Verdict::Placed {
                node: node.clone(),
                feasible: placement.feasible,
                score: placement.total,
            },
        });
        let known = self.pods.get(&pod.pod_ref);
        let version = known.map(|known| Arc::clone(&known.resource_version));
        let binding = Binding {
            queued,
            node: node.clone(),
            placement,
            profile,
            resource_version: version.unwrap_or_default(),
            started: now,
        };
        self.binding.insert(pod.uid.clone(), binding);
        self.write(Action::Bind { pod, node });
    }

    pub(super) fn on_bound(
        &mut self,
        uid: &plimsoll_core::object::identity::PodUid,
        result: Result<(), String>,
        now: Time,
    ) {
        let Some(binding) = self.binding.remove(uid) else {
            return;
        };
        let took = now.saturating_since(binding.started);
        self.metrics.bind(binding.profile, result.is_ok(), took);
        match result {
            Ok(()) => self.bound(binding, now),
            Err(message) => self.unbound(binding, &message, now),
        }
    }

    fn bound(&mut self, binding: Binding, now: Time) {
        let queued = &binding.queued;
        let took = now.saturating_since(binding.started);
        self.metrics
            .attempt(binding.profile, Outcome::Scheduled, took);
        let waited = queued
            .initial_attempt
            .map(|first| now.saturating_since(first));
        self.metrics
            .scheduled(queued.attempts, waited, queued.was_flushed);
        self.record_scheduled(&binding, &binding.node);
    }

    fn unbound(&mut self, binding: Binding, message: &str, now: Time) {
        let pod = &binding.queued.pod;
        if self.engine.cluster().is_assumed(&pod.uid) {
            self.forget(pod, Some(binding.node), now);
        }
        let message = format!("running Bind plugin \"DefaultBinder\": {message}");
        let failure = Failure::without_plugins(Outcome::Error, message);
        self.fail(
            binding.queued,
            binding.profile,
            failure,
            binding.started,
            now,
        );
    }

    fn record_scheduled(&mut self, binding: &Binding, node: &NodeName) {
        let pod = &binding.queued.pod;
        let occurrence = Occurrence {
            regarding: reference(pod, &binding.resource_version),
            related: None,
            event_type: EventType::Normal,
            reason: "Scheduled".into(),
            action: "Binding".into(),
            note: format!("Successfully assigned {} to {node}", pod.pod_ref),
        };
        self.actions.push(Action::RecordEvent {
            profile: binding.profile,
            occurrence: Box::new(occurrence),
            placement: Some(binding.placement),
        });
    }
}
