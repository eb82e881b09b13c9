//! Handles a failed attempt: status, event and requeueing.
//!
//! Matches v1.36 pkg/scheduler/schedule_one.go, `handleSchedulingFailure`.

use std::collections::BTreeSet;
use std::sync::Arc;

use plimsoll_core::object::identity::{NodeName, PodRef};
use plimsoll_core::scheduling::cluster::Nomination;
use plimsoll_core::scheduling::decision::Unschedulable;
use plimsoll_core::scheduling::diagnosis::event_note;
use plimsoll_core::scheduling::preemption::PreemptionResult;
use plimsoll_core::scheduling::queue::{Plugin, QueuedPod, Rejectors, Time};

use plimsoll_client::events::{EventType, Occurrence};

use super::action::{Action, Condition, StatusPatch};
use super::known_pod::{KnownPod, Unscheduled, reference};
use super::metrics::Outcome;
use super::records::{Record, Verdict};
use super::state::Loop;

/// Why an attempt failed.
pub(super) struct Failure {
    outcome: Outcome,
    message: String,
    plugins: BTreeSet<&'static str>,
    nomination: Nomination,
    victims: Vec<PodRef>,
}

impl Failure {
    /// No plugin rejected the pod; time alone may fix it.
    pub(super) fn without_plugins(outcome: Outcome, message: String) -> Failure {
        Failure {
            outcome,
            message,
            plugins: BTreeSet::new(),
            nomination: Nomination::Cleared,
            victims: Vec::new(),
        }
    }

    fn reason(&self) -> &'static str {
        match self.outcome {
            Outcome::Error => "SchedulerError",
            Outcome::Unschedulable | Outcome::Scheduled => "Unschedulable",
        }
    }

    fn rejectors(&self) -> Rejectors {
        let plugins = self.plugins.iter();
        Rejectors::unschedulable(plugins.filter_map(|name| Plugin::from_name(name)))
    }
}

impl Loop {
    /// No node will do.
    pub(super) fn wait(
        &mut self,
        queued: QueuedPod,
        profile: usize,
        why: Unschedulable,
        now: Time,
    ) {
        let nomination = match &why.room {
            PreemptionResult::At(_) => match &why.nominated {
                Some(node) => Nomination::To(node.clone()),
                None => Nomination::Cleared,
            },
            PreemptionResult::None => Nomination::Cleared,
            // Without any plugin to look for room, upstream takes back what was nominated.
            PreemptionResult::SwitchedOff("") => Nomination::Cleared,
            PreemptionResult::SwitchedOff(_)
            | PreemptionResult::NotTried
            | PreemptionResult::NotEligible(_) => Nomination::AsStated,
        };
        if matches!(
            why.room,
            PreemptionResult::At(_) | PreemptionResult::None | PreemptionResult::NotEligible(_)
        ) {
            self.metrics.preemption_attempt();
        }
        let mut victims = Vec::new();
        if let (PreemptionResult::At(candidate), Some(node)) = (&why.room, &why.nominated) {
            victims.extend(candidate.victims.iter().map(|pod| pod.pod_ref.clone()));
            self.begin_preemption(&queued.pod, node, &candidate.victims, profile);
        }
        let failure = Failure {
            outcome: Outcome::Unschedulable,
            message: why.message,
            plugins: why.plugins,
            nomination,
            victims,
        };
        self.fail(queued, profile, failure, now, now);
    }

    /// Requeues the pod, and reports why in its status and an event. `started` is when the attempt
    /// began.
    pub(super) fn fail(
        &mut self,
        mut queued: QueuedPod,
        profile: usize,
        failure: Failure,
        started: Time,
        now: Time,
    ) {
        let took = now.saturating_since(started);
        self.metrics.attempt(profile, failure.outcome, took);
        self.record_failure(&queued, &failure, now);
        let uid = queued.pod.uid.clone();
        let known = self.pods.get(&queued.pod.pod_ref);
        let known = known.filter(|known| *known.uid() == uid);
        let Some(known) = known.filter(|known| !known.is_assigned()) else {
            // It is gone, or another scheduler has bound it.
            self.queue.done(&uid);
            return self.record_failed(&queued, profile, event_note(&failure.message));
        };
        queued.pod = Arc::clone(&known.facts);
        let (view, pod_ref) = (Arc::clone(&queued.pod.view), queued.pod.pod_ref.clone());
        self.record_failed(&queued, profile, event_note(&failure.message));
        let rejectors = failure.rejectors();
        if let Err(error) = self.queue.add_unschedulable(queued, rejectors, now) {
            tracing::warn!(pod = %pod_ref, %error, "failed to requeue pod");
        }
        let nomination = failure.nomination.clone();
        self.engine
            .change(|cluster| cluster.nominate(view, nomination));
        self.patch_failed(&pod_ref, failure);
    }

    fn record_failure(&self, queued: &QueuedPod, failure: &Failure, now: Time) {
        self.records.add(Record {
            time: now,
            pod_ref: queued.pod.pod_ref.clone(),
            uid: queued.pod.uid.clone(),
            attempt: queued.attempts,
            verdict: Verdict::Waits {
                message: failure.message.clone(),
                plugins: failure.plugins.iter().copied().collect(),
                nominated: nominated(&failure.nomination).cloned(),
                victims: failure.victims.clone(),
            },
        });
    }

    pub(super) fn record_failed(&mut self, queued: &QueuedPod, profile: usize, note: String) {
        let pod = &queued.pod;
        let known = self.pods.get(&pod.pod_ref);
        let version = known.map(|known| known.resource_version.as_ref());
        let occurrence = Occurrence {
            regarding: reference(pod, version.unwrap_or_default()),
            related: None,
            event_type: EventType::Warning,
            reason: "FailedScheduling".into(),
            action: "Scheduling".into(),
            note,
        };
        self.actions.push(Action::RecordEvent {
            profile,
            occurrence: Box::new(occurrence),
            placement: None,
        });
    }

    /// Writes the condition and the nomination, as far as they change.
    fn patch_failed(&mut self, pod_ref: &PodRef, failure: Failure) {
        let Some(known) = self.pods.get_mut(pod_ref) else {
            return;
        };
        let reason = failure.reason();
        let nominated_node_name = match failure.nomination {
            Nomination::AsStated => None,
            Nomination::To(node) => Some(Some(node)),
            Nomination::Cleared => Some(None),
        };
        let stated = &known.facts.nominated_node_name;
        let nominated_node_name = nominated_node_name.filter(|nominated| nominated != stated);
        let condition = change_condition(known, reason, failure.message);
        if condition.is_none() && nominated_node_name.is_none() {
            return;
        }
        let patch = StatusPatch {
            pod_ref: pod_ref.clone(),
            uid: known.uid().clone(),
            condition,
            nominated_node_name,
        };
        self.write(Action::Patch(patch));
    }

    /// A condition that was not written has to be written the next time.
    pub(super) fn on_patched(&mut self, pod_ref: &PodRef, is_written: bool) {
        if !is_written && let Some(known) = self.pods.get_mut(pod_ref) {
            known.unscheduled = None;
        }
    }
}

fn nominated(nomination: &Nomination) -> Option<&NodeName> {
    match nomination {
        Nomination::To(node) => Some(node),
        Nomination::AsStated | Nomination::Cleared => None,
    }
}

/// The condition to be written; what is kept of the pod has it already, so that it is not written
/// again before the API server shows it.
fn change_condition(
    known: &mut KnownPod,
    reason: &'static str,
    message: String,
) -> Option<Condition> {
    let stated = known.unscheduled.as_deref();
    if stated.is_some_and(|stated| stated.reason == reason && stated.message == message) {
        return None;
    }
    let condition = Condition {
        reason,
        message: message.clone(),
        observed_generation: known.generation,
        is_new: stated.is_none(),
    };
    known.unscheduled = Some(Box::new(Unscheduled {
        reason: reason.to_owned(),
        message,
    }));
    Some(condition)
}
