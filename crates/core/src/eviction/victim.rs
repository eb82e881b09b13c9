//! Which pod is evicted, and on what terms.

use std::sync::Arc;

use crate::config::SoftGrace;
use crate::object::timestamp::Timestamp;
use crate::threshold::{Duration, Signal};

use super::candidate::{ActivePod, Candidate};
use super::decision::{Action, Cause, Eviction, Starvation, Trigger};
use super::engine::Engine;
use super::local_storage::find_violation;
use super::message;
use super::observation::{Observation, Readings};
use super::rank;

/// The pod that a pass would evict, by which numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Choice {
    pub(super) eviction: Option<Eviction>,
    pub(super) had_memory: bool,
    pub(super) stats_ages: Vec<(Signal, Duration)>,
}

impl Engine {
    /// The first pod of the ranking that may be evicted and is not being killed already.
    pub(super) fn choose(
        &self,
        now: Timestamp,
        starvation: Starvation,
        fresh: &[Trigger],
        observation: &Observation,
        readings: &Readings,
        pods: &[ActivePod<'_>],
    ) -> Choice {
        if pods.is_empty() {
            return Choice::default();
        }
        let signal = starvation.trigger.signal();
        let may_go =
            |pod: &ActivePod<'_>| !pod.candidate.is_exempt && !self.is_dying(pod.candidate);
        let (layout, order) = (self.settings.layout, self.settings.profile.eviction_rank());
        let candidates = pods.iter().copied().filter(may_go);
        let victim = rank::first(signal, layout, order, candidates).map(|ranked| ranked.pod);
        let stall = match (starvation.trigger, &self.settings.memory_stall) {
            (Trigger::MemoryStall, Some(rule)) => observation
                .memory_stall
                .map(|stall| message::stalled(stall.full_avg10, rule.full_avg10)),
            _ => None,
        };
        let eviction = victim.map(|pod| {
            let shortage = self.shortage(starvation.trigger, readings);
            let resource = starvation.resource;
            let (message, annotations) =
                message::eviction(resource, shortage.as_ref(), stall.as_deref(), pod);
            let exhausted_in = readings
                .get(signal)
                .and_then(|reading| self.state.trends.time_to_lose(signal, reading.available));
            let mut eviction = Eviction {
                annotations,
                exhausted_in,
                ..eviction(
                    pod.candidate,
                    self.grace(starvation.is_soft, pod.candidate),
                    Cause::Starvation(starvation),
                    message,
                )
            };
            eviction.is_immediate = !self.settings.always_give_grace && eviction.leaves_no_time();
            eviction
        });
        let age = |trigger: &Trigger| match *trigger {
            Trigger::Threshold(_, signal) => Some((signal, now - readings.get(signal)?.time?)),
            Trigger::MemoryStall => None,
        };
        Choice {
            eviction,
            had_memory: victim.is_some_and(had_memory),
            stats_ages: fresh.iter().filter_map(age).collect(),
        }
    }

    pub(super) fn is_dying(&self, candidate: &Candidate) -> bool {
        self.state.evictions.contains(&candidate.uid)
    }

    fn grace(&self, is_soft: bool, candidate: &Candidate) -> i64 {
        let profile = self.settings.profile;
        if !is_soft {
            return profile.hard_eviction_grace_seconds();
        }
        let maximum = self.settings.max_pod_grace_period_seconds;
        match profile.soft_eviction_grace() {
            SoftGrace::Maximum => maximum,
            SoftGrace::MinOfMaximumAndPod => candidate
                .termination_grace_period_seconds
                .map_or(maximum, |own| own.min(maximum)),
        }
    }

    /// All pods beyond a disk limit of their own, whatever the node's state.
    pub(super) fn evict_outgrown(&mut self, now: Timestamp, pods: &[ActivePod<'_>]) -> Vec<Action> {
        if !self.settings.local_storage_capacity_isolation {
            return Vec::new();
        }
        let mut actions = Vec::new();
        for pod in pods {
            let candidate = pod.candidate;
            let Some(usage) = pod.usage else { continue };
            if candidate.is_exempt || self.is_dying(candidate) {
                continue;
            }
            if let Some((limit, message)) = find_violation(candidate, usage, self.settings.layout) {
                let grace = self.settings.profile.hard_eviction_grace_seconds();
                let cause = Cause::LocalLimit(limit);
                let eviction = eviction(candidate, grace, cause, message);
                let (uid, had_memory) = (eviction.uid.clone(), had_memory(*pod));
                self.add_pending(now, uid, grace, had_memory);
                actions.push(Action::Evict(Arc::new(eviction)));
            }
        }
        actions
    }
}

fn had_memory(pod: ActivePod<'_>) -> bool {
    pod.usage.is_some_and(|usage| usage.working_set().0 > 0)
}

fn eviction(candidate: &Candidate, grace: i64, cause: Cause, message: String) -> Eviction {
    Eviction {
        pod_ref: candidate.pod_ref.clone(),
        uid: candidate.uid.clone(),
        generation: candidate.generation,
        grace_period_seconds: grace,
        is_immediate: false,
        cause,
        message,
        annotations: message::Annotations::new(),
        exhausted_in: None,
    }
}
