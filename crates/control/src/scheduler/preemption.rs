//! Making room: the victims of a preemption go one after the other.
//!
//! While they do, the preemptor is held back from another attempt. All victims but one are deleted
//! first; the last one's deletion, when it is seen, is the event that lets the preemptor in again.
//!
//! Matches v1.36 pkg/scheduler/framework/preemption/executor.go, `prepareCandidateAsync`.

use std::sync::Arc;

use plimsoll_core::object::identity::{NodeName, PodRef, PodUid};
use plimsoll_core::scheduling::pod::SchedulingPod;
use plimsoll_core::scheduling::preemption::{
    PREEMPTED_EVENT_REASON, condition_message, event_note,
};
use plimsoll_core::scheduling::queue::{Plugin, PodFacts, Time};

use plimsoll_client::events::{EventType, Occurrence};

use super::action::{Action, StatusPatch, Victim};
use super::input::Eviction;
use super::state::Loop;

/// A preemption under way.
#[derive(Debug)]
pub(super) struct Preempting {
    preemptor: Arc<PodFacts>,
    profile: usize,
    node: NodeName,
    /// How many answers are due.
    due: usize,
    has_failed: bool,
    last: LastVictim,
}

/// The victim that goes last.
#[derive(Debug)]
enum LastVictim {
    /// Its turn has not come.
    Waiting(Arc<SchedulingPod>),
    /// Its deletion has been ordered.
    Going(PodRef),
}

impl Loop {
    pub(super) fn begin_preemption(
        &mut self,
        preemptor: &Arc<PodFacts>,
        node: &NodeName,
        victims: &[Arc<SchedulingPod>],
        profile: usize,
    ) {
        // Those whose deletion has begun need not be deleted again.
        let going = victims.iter().filter(|victim| !victim.is_terminating);
        let mut going: Vec<Arc<SchedulingPod>> = going.cloned().collect();
        let Some(last) = going.pop() else {
            return;
        };
        self.metrics.preemption_victims(victims.len());
        self.clear_nominations(preemptor, node);
        self.queue.hold(&preemptor.uid, Plugin::DefaultPreemption);
        for victim in &going {
            self.evict(preemptor, victim);
        }
        let preempting = Preempting {
            preemptor: Arc::clone(preemptor),
            profile,
            node: node.clone(),
            due: going.len(),
            has_failed: false,
            last: LastVictim::Waiting(last),
        };
        self.preempting.insert(preemptor.uid.clone(), preempting);
        if going.is_empty() {
            self.evict_last(&preemptor.uid);
        }
    }

    fn evict(&mut self, preemptor: &Arc<PodFacts>, victim: &Arc<SchedulingPod>) {
        let known = self.pods.get(&victim.pod_ref);
        let victim = Victim {
            pod_ref: victim.pod_ref.clone(),
            uid: victim.uid.clone(),
            generation: known.map_or(0, |known| known.generation),
            is_marked: victim.is_preempted,
            message: condition_message(&preemptor.scheduler_name),
        };
        let preemptor = preemptor.uid.clone();
        self.write(Action::Evict { preemptor, victim });
    }

    fn evict_last(&mut self, uid: &PodUid) {
        let Some(preempting) = self.preempting.get_mut(uid) else {
            return;
        };
        let LastVictim::Waiting(victim) = &preempting.last else {
            return;
        };
        let (victim, preemptor) = (Arc::clone(victim), Arc::clone(&preempting.preemptor));
        preempting.last = LastVictim::Going(victim.pod_ref.clone());
        preempting.due = 1;
        let known = self.pods.get(&victim.pod_ref);
        if known.is_none_or(|known| known.facts.is_terminating) {
            self.queue.release(uid, Plugin::DefaultPreemption);
        }
        self.evict(&preemptor, &victim);
    }

    /// Pods of lower priority that were to have the room must look elsewhere.
    fn clear_nominations(&mut self, preemptor: &PodFacts, node: &NodeName) {
        let nominated = self.engine.cluster().nominated_pods(node).iter();
        let lower = nominated
            .filter(|pod| pod.priority < preemptor.priority && pod.nominated_node_name.is_some());
        let patches: Vec<StatusPatch> = lower
            .map(|pod| StatusPatch {
                pod_ref: pod.pod_ref.clone(),
                uid: pod.uid.clone(),
                condition: None,
                nominated_node_name: Some(None),
            })
            .collect();
        for patch in patches {
            self.write(Action::Patch(patch));
        }
    }

    pub(super) fn on_evicted(
        &mut self,
        preemptor: &PodUid,
        victim: &PodRef,
        outcome: Eviction,
        now: Time,
    ) {
        if outcome == Eviction::Deleted {
            self.record_preempted(preemptor, victim);
        }
        let Some(preempting) = self.preempting.get_mut(preemptor) else {
            return;
        };
        preempting.due = preempting.due.saturating_sub(1);
        preempting.has_failed |= outcome == Eviction::Failed;
        if preempting.due > 0 {
            return;
        }
        let is_over = preempting.has_failed || matches!(preempting.last, LastVictim::Going(_));
        if !is_over {
            return self.evict_last(preemptor);
        }
        let has_failed = preempting.has_failed;
        self.metrics.preemption_done(!has_failed);
        let pod = self.end_preemption(preemptor);
        // Without the deletion that it waits for, the pod would wait for long.
        if let Some(pod) = pod.filter(|_| has_failed) {
            self.queue.activate(&pod, now);
        }
    }

    /// Ends the hold on a preemptor, and returns it.
    pub(super) fn end_preemption(&mut self, preemptor: &PodUid) -> Option<Arc<PodFacts>> {
        let preempting = self.preempting.remove(preemptor)?;
        self.queue.release(preemptor, Plugin::DefaultPreemption);
        Some(preempting.preemptor)
    }

    /// A pod is going: preemptors that wait for it alone may be tried again.
    pub(super) fn record_departure(&mut self, pod_ref: &PodRef) {
        for (uid, preempting) in &self.preempting {
            if matches!(&preempting.last, LastVictim::Going(last) if last == pod_ref) {
                self.queue.release(uid, Plugin::DefaultPreemption);
            }
        }
    }

    fn record_preempted(&mut self, preemptor: &PodUid, victim: &PodRef) {
        let (Some(preempting), Some(known)) =
            (self.preempting.get(preemptor), self.pods.get(victim))
        else {
            return;
        };
        let related = self.pods.get(&preempting.preemptor.pod_ref);
        let occurrence = Occurrence {
            regarding: known.reference(),
            related: related.map(super::known_pod::KnownPod::reference),
            event_type: EventType::Normal,
            reason: PREEMPTED_EVENT_REASON.into(),
            action: "Preempting".into(),
            note: event_note(preemptor, &preempting.node),
        };
        self.actions.push(Action::RecordEvent {
            profile: preempting.profile,
            occurrence: Box::new(occurrence),
            placement: None,
        });
    }
}
