//! Carrying out a decision, phase by phase, and reporting the outcomes.

use std::collections::BTreeSet;
use std::sync::Arc;

use plimsoll_core::eviction::record::{Record, Recorder};
use plimsoll_core::eviction::{
    Action, Decision, Engine, Eviction, Input, KillOutcome, NodeReclaim, Phase, message,
};
use plimsoll_core::object::identity::PodUid;
use plimsoll_core::object::node::NodeCondition;
use plimsoll_core::object::timestamp::Timestamp;
use plimsoll_runtime::cgroup::Layout;

use super::consumers::consumers;
use super::gauge::{Look, Reading};
use super::kill::{Outcomes, kill_pods};
use super::log;
use super::settings::Settings;
use super::shell::Shared;
use super::surroundings::Surroundings;
use super::target::Targets;

/// What it takes to carry out what an engine decides.
pub(super) struct Execution<'a> {
    pub(super) engine: &'a mut Engine,
    pub(super) recorder: &'a mut Recorder,
    pub(super) targets: &'a mut Targets,
    pub(super) reading: &'a mut Reading,
    /// There is room for more than a decision kills.
    pub(super) outcomes: &'a mut Outcomes,
    pub(super) shared: &'a Arc<Shared>,
    pub(super) surroundings: &'a dyn Surroundings,
    pub(super) settings: &'a Settings,
    pub(super) layout: &'a Layout,
    /// The latest look at the memory.
    pub(super) look: &'a Look,
}

/// What is left to do about a decision.
#[derive(Default)]
struct Rest {
    /// When the decision was made, by its record.
    at: Timestamp,
    /// Pods whose workers are to end them.
    terminating: Vec<Arc<Eviction>>,
    /// All that are evicted.
    evicted: Vec<(Arc<Eviction>, KillOutcome)>,
    warnings: Vec<(&'static str, String)>,
}

impl Execution<'_> {
    /// Has the engine decide, and does what it says.
    pub(super) fn run(&mut self, now: Timestamp, input: Input<'_>) {
        let decision = self.recorder.decide(self.engine, now, input);
        let mut rest = Rest {
            at: now,
            ..Rest::default()
        };
        for phase in Phase::ORDER {
            match phase {
                Phase::Kill => {
                    kill_pods(&decision, self.targets, self.reading, self.outcomes);
                }
                Phase::Conditions => self.report_conditions(&decision.conditions),
                Phase::Outcomes => self.report_outcomes(now, &decision, &mut rest),
                Phase::Record => self.record(now, input, &decision, &mut rest),
                Phase::Terminate => {
                    for eviction in rest.terminating.drain(..) {
                        self.surroundings.terminate(&eviction);
                    }
                }
                Phase::Events => self.record_events(&decision, &mut rest),
                Phase::Reclaim => {
                    let wanted: Vec<NodeReclaim> = decision.reclaims().collect();
                    if !wanted.is_empty() {
                        self.surroundings.reclaim(wanted, self.shared.ticket());
                    }
                }
            }
        }
        log::waiting(&decision, &input);
    }

    /// Has the API server learn that the node is under pressure, so that no other pod comes to it.
    fn report_conditions(&self, now: &BTreeSet<NodeCondition>) {
        let is_changed = {
            let mut conditions = self.shared.conditions();
            let is_changed = *conditions != *now;
            if is_changed {
                conditions.clone_from(now);
            }
            is_changed
        };
        if is_changed {
            let conditions: Vec<String> = now.iter().map(ToString::to_string).collect();
            tracing::info!(?conditions, "pressure conditions of the node changed");
            self.surroundings.conditions_changed(now);
        }
    }

    fn report_outcomes(&mut self, now: Timestamp, decision: &Decision, rest: &mut Rest) {
        let mut outcomes = std::mem::take(self.outcomes);
        for (index, outcome) in outcomes.drain(..) {
            match decision.actions.get(index) {
                Some(Action::Evict(eviction)) => self.evicted(now, eviction, outcome, rest),
                Some(Action::Kill(uid)) => {
                    let outcome = self.outcome(uid, outcome);
                    tracing::info!(
                        pod = %uid, outcome = outcome.as_str(),
                        "hard eviction threshold met; killed pod before its grace period was over"
                    );
                    self.recorder.outcome(self.engine, now, uid, outcome);
                    self.release(uid);
                }
                _ => {}
            }
        }
        *self.outcomes = outcomes;
    }

    fn evicted(
        &mut self,
        now: Timestamp,
        eviction: &Arc<Eviction>,
        outcome: Result<KillOutcome, plimsoll_runtime::cgroup::Error>,
        rest: &mut Rest,
    ) {
        let uid = &eviction.uid;
        let outcome = self.outcome(uid, outcome);
        let follows = self.recorder.outcome(self.engine, now, uid, outcome);
        if !follows.terminates(uid) {
            // Its status says OOMKilled, which is the truth.
            let pod = &eviction.pod_ref;
            tracing::info!(%pod, "pod already OOM-killed; not evicting");
            return;
        }
        rest.evicted.push((Arc::clone(eviction), outcome));
        if outcome == KillOutcome::Graceful {
            rest.terminating.push(Arc::clone(eviction));
        } else {
            self.surroundings.terminate(eviction);
            // Only now: it takes a while, and the worker that sees the pod dead is to know why.
            self.release(uid);
        }
    }

    fn outcome(
        &self,
        uid: &PodUid,
        outcome: Result<KillOutcome, plimsoll_runtime::cgroup::Error>,
    ) -> KillOutcome {
        outcome.unwrap_or_else(|error| {
            tracing::warn!(pod = %uid, %error, "failed to kill pod");
            KillOutcome::Failed
        })
    }

    fn release(&self, uid: &PodUid) {
        if let Some(target) = self.targets.get(uid) {
            target.release();
        }
    }

    fn record(&mut self, now: Timestamp, input: Input<'_>, decision: &Decision, rest: &mut Rest) {
        let record = self.recorder.write(self.engine, now, input, decision);
        let Some(record) = record.filter(|_| decision.is_recorded()) else {
            return;
        };
        let mut record: Record = record.clone();
        rest.at = record.at.unwrap_or(now);
        let shortfall = record.decision.shortfall.as_ref();
        if let Some(shortfall) = shortfall.filter(|shortfall| shortfall.is_new) {
            let found = consumers(self.settings, self.layout, self.look, self.reading);
            let message = message::backing_off(shortfall, &found);
            tracing::warn!(reason = message, "evicting pods cannot bring memory back");
            rest.warnings.push((message::BACK_OFF_REASON, message));
            record.consumers = Some(found);
        }
        log::pass(&record);
        self.shared.decisions().add(record);
    }

    fn record_events(&self, decision: &Decision, rest: &mut Rest) {
        for (eviction, outcome) in &rest.evicted {
            log::evicted(eviction, *outcome);
            let ages = &decision.stats_ages;
            self.surroundings.record_eviction(eviction, rest.at, ages);
        }
        let announced = decision.announcements();
        let announced =
            announced.map(|message| (message::THRESHOLD_MET_REASON, message.to_owned()));
        for (reason, message) in announced.chain(rest.warnings.drain(..)) {
            self.surroundings.warn(reason, message);
        }
    }
}
