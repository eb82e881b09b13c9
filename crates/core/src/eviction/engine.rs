//! One pass at a time.
//!
//! A pass: read the signals; note which thresholds are met, since when, and what the node has to
//! report; evict pods that outgrew their own limits, if any; else take the most urgent due
//! threshold, free what the node can, look again, and evict at most one pod. Matches v1.36
//! `synchronize` of pkg/kubelet/eviction/eviction_manager.go.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::admission::node_admit::{self, PressureRule, Rejection};
use crate::config::SoftGrace;
use crate::object::node::NodeCondition;
use crate::object::pod::PodView;
use crate::object::taint::ComparisonOperators;
use crate::object::timestamp::Timestamp;
use crate::quantity::Quantity;
use crate::threshold::{Duration, Signal, StarvedResource, Threshold};

use super::candidate::{ActivePod, Candidate};
use super::decision::{
    Action, Cause, Decision, Eviction, Starvation, ThresholdId, Trigger, Verdict,
};
use super::forecast::{Forecast, forecast};
use super::hold::{Hold, POLL, Victim, patience};
use super::local_storage::find_violation;
use super::message::{self, Shortage};
use super::observation::{Observation, Readings};
use super::rank::{self, Ranked};
use super::reclaim::NodeReclaim;
use super::settings::{Lines, Settings};
use super::signal_source::MemorySource;
use super::state::{Reclaim, State, is_met};

/// How long the engine is content to hear nothing.
const INTERVAL: Duration = Duration::from_secs(10);
/// How soon it may ask to be called when a threshold comes near.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(50);

/// What happened.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// The node was observed. A pass begins; one that waits for its reclaim is abandoned.
    Observed {
        /// What was measured.
        observation: &'a Observation,
        /// The pods that hold resources of the node, those being killed included.
        pods: &'a [ActivePod<'a>],
    },
    /// The node could not be observed.
    NotObserved,
    /// What the last decision wanted to be freed is freed, as far as that was possible.
    Reclaimed {
        /// A fresh look at the node; `None` if that failed.
        observation: Option<&'a Observation>,
    },
}

/// The state machine of node-pressure eviction.
#[derive(Clone, Debug)]
pub struct Engine {
    settings: Settings,
    lines: Lines,
    pub(super) state: State,
    pending: Option<Pending>,
}

/// A pass between its two looks at the node. The victim is chosen by the first.
#[derive(Clone, Debug, PartialEq)]
struct Pending {
    starvation: Starvation,
    choice: Choice,
}

/// Whom it would hit, by which numbers.
#[derive(Clone, Debug, Default, PartialEq)]
struct Choice {
    eviction: Option<Eviction>,
    had_memory: bool,
    stats_ages: Vec<(Signal, Duration)>,
}

impl Engine {
    /// An engine that has seen nothing.
    pub fn new(settings: Settings) -> Engine {
        Engine {
            lines: Lines::new(&settings),
            settings,
            state: State::default(),
            pending: None,
        }
    }

    /// Takes the next input and says what to do.
    pub fn step(&mut self, now: Timestamp, input: Input<'_>) -> Decision {
        if !self.is_watching() {
            return self.decide(now, Verdict::NothingToWatch, Vec::new());
        }
        let pending = self.pending.take();
        match input {
            Input::NotObserved => {
                self.state.has_passed = true;
                self.decide(now, Verdict::NotObserved, Vec::new())
            }
            Input::Observed { observation, pods } => self.pass(now, observation, pods),
            Input::Reclaimed { observation } => match pending {
                Some(pending) => self.settle(now, pending, observation),
                None => self.decide(now, Verdict::NoPassUnderWay, Vec::new()),
            },
        }
    }

    /// The settings it was made with.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The thresholds it watches, by [`ThresholdId::index`]: the configured ones and those
    /// derived for the containerfs.
    pub fn thresholds(&self) -> &[Threshold] {
        self.lines.all()
    }

    /// One of them.
    pub fn threshold(&self, id: ThresholdId) -> &Threshold {
        &self.lines.all()[id.0]
    }

    /// The pressure conditions of the node.
    pub fn conditions(&self) -> &BTreeSet<NodeCondition> {
        &self.state.conditions
    }

    /// Whether the node takes on one more pod under its present conditions.
    pub fn admit(&self, pod: &PodView, comparison: ComparisonOperators) -> Result<(), Rejection> {
        let rule = PressureRule::of(self.settings.profile);
        node_admit::admit(pod, &self.state.conditions, rule, comparison)
    }

    /// Who would go first if the signal were starved at this moment; exempt pods are listed too.
    pub fn ranking<'a>(&self, signal: Signal, pods: &[ActivePod<'a>]) -> Vec<Ranked<'a>> {
        let order = self.settings.profile.eviction_rank();
        rank::rank(signal, self.settings.layout, order, pods.iter().copied())
    }

    /// How far each threshold with an observed signal is.
    pub fn forecast(&self, observation: &Observation) -> Vec<Forecast> {
        let readings = observation.readings(self.settings.memory_source);
        let of = |(index, threshold): (usize, &Threshold)| {
            let reading = readings.get(threshold.signal)?;
            let id = ThresholdId(index);
            Some(forecast(id, threshold, &reading, &self.state.trends))
        };
        self.lines.all().iter().enumerate().filter_map(of).collect()
    }

    /// Which thresholds would be met if the memory signals came from that source.
    pub fn met_by(
        &self,
        source: MemorySource,
        observation: &Observation,
    ) -> impl Iterator<Item = ThresholdId> {
        let readings = observation.readings(source);
        let lines = self.lines.all().iter().enumerate();
        lines
            .filter(move |(_, threshold)| is_met(threshold, &readings, Reclaim::Ignored))
            .map(|(index, _)| ThresholdId(index))
    }

    fn is_watching(&self) -> bool {
        !self.settings.thresholds.is_empty()
            || self.settings.local_storage_capacity_isolation
            || self.settings.memory_stall.is_some()
    }

    fn pass(
        &mut self,
        now: Timestamp,
        observation: &Observation,
        pods: &[ActivePod<'_>],
    ) -> Decision {
        let readings = observation.readings(self.settings.memory_source);
        let fresh = self.take_in(now, observation, &readings);
        if let Some(hold) = &mut self.state.hold {
            hold.prune(pods);
        }
        let outgrown = self.evict_outgrown(now, pods);
        if !outgrown.is_empty() {
            return self.decide(now, Verdict::LocalLimits, outgrown);
        }
        let Some(starvation) = self.most_urgent(&fresh, &readings) else {
            let is_stalled = self.state.stalled_since.is_some();
            let verdict = if self.state.first_observed.is_empty() && !is_stalled {
                Verdict::NotStarved
            } else if self.state.due.is_empty() {
                Verdict::WithinGrace
            } else {
                Verdict::StaleStats
            };
            return self.decide(now, verdict, Vec::new());
        };
        let hold = self.state.hold.as_ref();
        if let Some(hold) = hold.filter(|hold| hold.is_waiting(now, pods)) {
            let victims = hold.victims.iter().map(|victim| victim.uid.clone());
            return self.decide(now, Verdict::WaitingFor(victims.collect()), Vec::new());
        }
        let choice = self.choose(now, starvation, &fresh, observation, &readings, pods);
        let announced = message::attempting_to_reclaim(starvation.resource);
        let mut actions = vec![Action::Announce(announced)];
        let signal = starvation.trigger.signal();
        let reclaims = NodeReclaim::for_signal(signal, self.settings.layout);
        if reclaims.is_empty() {
            return self.conclude(now, starvation, choice, actions);
        }
        actions.extend(reclaims.iter().copied().map(Action::Reclaim));
        self.pending = Some(Pending { starvation, choice });
        self.decide(now, Verdict::Reclaiming(starvation), actions)
    }

    /// Ends a pass whose reclaim is done. It was enough only if every threshold is clear, soft
    /// ones within their grace and other resources too, each with its minimum reclaim.
    fn settle(
        &mut self,
        now: Timestamp,
        pending: Pending,
        observation: Option<&Observation>,
    ) -> Decision {
        let is_relieved = observation.is_some_and(|observation| {
            let readings = observation.readings(self.settings.memory_source);
            let mut lines = self.lines.all().iter();
            !lines.any(|threshold| is_met(threshold, &readings, Reclaim::Included))
        });
        if is_relieved {
            return self.decide(now, Verdict::Relieved(pending.starvation), Vec::new());
        }
        self.conclude(now, pending.starvation, pending.choice, Vec::new())
    }

    /// Updates what is remembered and gives what may be acted upon.
    fn take_in(
        &mut self,
        now: Timestamp,
        observation: &Observation,
        readings: &Readings,
    ) -> Vec<Trigger> {
        let (state, all) = (&mut self.state, self.lines.all());
        let watched = self.lines.of_pass(!state.has_passed);
        state.has_passed = true;
        state.trends.note(now, readings);
        state.observe(now, watched, all, readings);
        let stalls = observation.memory_stall.filter(|stall| {
            let rule = self.settings.memory_stall.as_ref();
            rule.is_some_and(|rule| stall.full_avg10 >= rule.full_avg10)
        });
        state.stalled_since = stalls.map(|_| state.stalled_since.unwrap_or(now));
        state.sight_conditions(
            now,
            all,
            stalls.is_some(),
            self.settings.pressure_transition_period,
        );
        let due = state.advance_due(now, all, readings);
        let mut fresh: Vec<Trigger> = due
            .into_iter()
            .map(|id| Trigger::Threshold(id, all[id.0].signal))
            .collect();
        if let (Some(rule), Some(since)) = (&self.settings.memory_stall, state.stalled_since) {
            let time = stalls.and_then(|_| observation.stall_time());
            let is_fresh = time.is_none() || time > state.last_stall_time;
            if is_fresh && now - since >= rule.grace_period {
                fresh.push(Trigger::MemoryStall);
            }
        }
        state.last_stall_time = observation.stall_time();
        fresh
    }

    /// Upstream defines only that memory comes first. Beyond that: hard before soft, so that a
    /// long grace is never given while a hard line is crossed; then the order of the signals;
    /// then the larger deficit.
    fn most_urgent(&self, fresh: &[Trigger], readings: &Readings) -> Option<Starvation> {
        let trigger = fresh.iter().copied().min_by_key(|trigger| {
            let signal = trigger.signal();
            let is_other = signal.resource() != StarvedResource::Memory;
            let place = match trigger {
                Trigger::Threshold(..) => Some(urgency(signal)),
                Trigger::MemoryStall => None,
            };
            // A stall comes behind the thresholds that say more about it.
            (is_other, self.is_soft(*trigger), place.is_none(), place, {
                Reverse(self.deficit(*trigger, readings))
            })
        })?;
        let resource = trigger.signal().resource();
        let mut same_resource = fresh.iter().filter(|t| t.signal().resource() == resource);
        let is_soft = if self.settings.profile.is_okd() {
            // Before 1.10 one hard threshold made the eviction hard, whichever was first.
            same_resource.all(|trigger| self.is_soft(*trigger))
        } else {
            self.is_soft(trigger)
        };
        Some(Starvation {
            trigger,
            resource,
            is_soft,
        })
    }

    fn is_soft(&self, trigger: Trigger) -> bool {
        match trigger {
            Trigger::Threshold(id, _) => !self.threshold(id).is_hard(),
            Trigger::MemoryStall => false,
        }
    }

    fn deficit(&self, trigger: Trigger, readings: &Readings) -> Quantity {
        let Some(Shortage {
            mut threshold,
            available,
        }) = self.shortage(trigger, readings)
        else {
            return Quantity::ZERO;
        };
        threshold.sub(&available);
        threshold
    }

    fn shortage(&self, trigger: Trigger, readings: &Readings) -> Option<Shortage> {
        let Trigger::Threshold(id, signal) = trigger else {
            return None;
        };
        let reading = readings.get(signal)?;
        let capacity = reading.capacity_quantity(signal);
        Some(Shortage {
            threshold: self.threshold(id).value.at_capacity(&capacity),
            available: reading.available_quantity(signal),
        })
    }

    /// The first pod of the ranking that may be evicted and is not being killed already.
    fn choose(
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
            Eviction {
                annotations,
                exhausted_in,
                ..eviction(
                    pod.candidate,
                    self.grace(starvation.is_soft, pod.candidate),
                    Cause::Starvation(starvation),
                    message,
                )
            }
        });
        let age = |trigger: &Trigger| {
            let signal = trigger.signal();
            Some((signal, now - readings.get(signal)?.time?))
        };
        Choice {
            eviction,
            had_memory: victim.is_some_and(had_memory),
            stats_ages: fresh.iter().filter_map(age).collect(),
        }
    }

    fn is_dying(&self, candidate: &Candidate) -> bool {
        let hold = self.state.hold.as_ref();
        hold.is_some_and(|hold| hold.contains(&candidate.uid))
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
    fn evict_outgrown(&mut self, now: Timestamp, pods: &[ActivePod<'_>]) -> Vec<Action> {
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
                self.hold(now, &eviction, had_memory(*pod));
                actions.push(Action::Evict(Box::new(eviction)));
            }
        }
        actions
    }

    fn conclude(
        &mut self,
        now: Timestamp,
        starvation: Starvation,
        choice: Choice,
        mut actions: Vec<Action>,
    ) -> Decision {
        let verdict = match choice.eviction {
            Some(eviction) => {
                self.hold(now, &eviction, choice.had_memory);
                actions.push(Action::Evict(Box::new(eviction)));
                Verdict::Evicting(starvation)
            }
            None => Verdict::NobodyToEvict(starvation),
        };
        Decision {
            stats_ages: choice.stats_ages,
            ..self.decide(now, verdict, actions)
        }
    }

    fn hold(&mut self, now: Timestamp, eviction: &Eviction, had_memory: bool) {
        let hold = self.state.hold.get_or_insert_default();
        hold.until = now + patience(eviction.grace_period_seconds);
        hold.victims.push(Victim {
            uid: eviction.uid.clone(),
            had_memory,
        });
    }

    fn decide(&self, now: Timestamp, verdict: Verdict, actions: Vec<Action>) -> Decision {
        Decision {
            conditions: self.state.conditions.clone(),
            observed: self.state.first_observed.keys().copied().collect(),
            due: self.state.due.iter().copied().collect(),
            verdict,
            actions,
            stats_ages: Vec::new(),
            next_step_by: self.next_step_by(now),
        }
    }

    /// After the usual interval; earlier when a victim is waited for, a grace or a transition
    /// period ends, or a threshold is going to be reached. Half of the estimated time leaves room
    /// for a rate that doubles.
    fn next_step_by(&self, now: Timestamp) -> Timestamp {
        let state = &self.state;
        let is_killing = |hold: &Hold| !hold.victims.is_empty() && now < hold.until;
        let interval = match &state.hold {
            Some(hold) if is_killing(hold) => POLL,
            _ => INTERVAL,
        };
        let graces = state.first_observed.iter();
        let graces = graces.map(|(id, since)| *since + self.threshold(*id).grace_period);
        let transitions = state.last_sighted.values();
        let transitions = transitions.map(|at| *at + self.settings.pressure_transition_period);
        let ends = graces.chain(transitions).filter(|end| *end > now);
        ends.chain(self.approach(now))
            .chain([now + interval])
            .min()
            .unwrap_or(now + interval)
    }

    fn approach(&self, now: Timestamp) -> Option<Timestamp> {
        let soonest = self.state.trends.soonest_crossing(self.lines.all())?;
        let half = Duration::from_nanos(soonest.as_nanos() / 2);
        Some(now + half.max(SHORTEST_INTERVAL))
    }
}

/// Bytes before inodes, the nodefs first, process ids last.
fn urgency(signal: Signal) -> u8 {
    match signal {
        Signal::MemoryAvailable => 0,
        Signal::AllocatableMemoryAvailable => 1,
        Signal::NodeFsAvailable => 2,
        Signal::ImageFsAvailable => 3,
        Signal::ContainerFsAvailable => 4,
        Signal::NodeFsInodesFree => 5,
        Signal::ImageFsInodesFree => 6,
        Signal::ContainerFsInodesFree => 7,
        Signal::PidAvailable => 8,
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
        cause,
        message,
        annotations: message::Annotations::new(),
        exhausted_in: None,
    }
}
