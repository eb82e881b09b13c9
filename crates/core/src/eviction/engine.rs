//! One pass at a time.
//!
//! A pass: read the signals; note which thresholds are met, since when, and what the node has to
//! report; evict pods that outgrew their own limits, if any; else take the most urgent due
//! threshold, free what the node can, look again, and evict at most one pod. Matches v1.36
//! `synchronize` of pkg/kubelet/eviction/eviction_manager.go.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::admission::node_admit::{self, PressureRule, Rejection};
use crate::object::identity::PodUid;
use crate::object::node::NodeCondition;
use crate::object::pod::PodView;
use crate::object::taint::ComparisonOperators;
use crate::object::timestamp::Timestamp;
use crate::threshold::{Duration, Signal, Threshold};

use super::candidate::ActivePod;
use super::decision::{Action, Decision, KillOutcome, Starvation, ThresholdId, Trigger, Verdict};
use super::forecast::{Forecast, Trends, forecast};
use super::look::Looks;
use super::message;
use super::observation::{Observation, Readings};
use super::outlook::Outlook;
use super::pending::{self, EarlierEviction, POLL};
use super::rank::Ranked;
use super::reclaim::NodeReclaim;
use super::settings::{Lines, Settings};
use super::shortage::is_short;
use super::shortfall::{Held, Shortfall};
use super::signal_source::MemorySource;
use super::state::{Reclaim, State, is_met};
use super::victim::Choice;

/// How long the engine can do without an input: upstream's `evictionMonitoringPeriod`.
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
    /// What came of killing a pod that the last decision was about.
    Outcome {
        /// The pod.
        uid: &'a PodUid,
        /// Its outcome.
        outcome: KillOutcome,
    },
}

/// The state machine of node-pressure eviction.
#[derive(Clone, Debug)]
pub struct Engine {
    pub(super) settings: Settings,
    lines: Lines,
    pub(super) state: State,
    pub(super) reclaiming: Option<Reclaiming>,
    /// Evictions of an earlier agent whose pods were not seen yet.
    pub(super) earlier: Vec<EarlierEviction>,
    pub(super) looks: Looks,
    pub(super) outlook: Outlook,
    /// Until when it is not said again that no pod may be evicted.
    quiet_until: Timestamp,
    /// What pods hold that a record has left out; `None` if that is not known.
    pub(super) unlisted: Option<Held>,
}

/// A pass between its two looks at the node. The victim is chosen by the first.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Reclaiming {
    pub(super) since: Timestamp,
    starvation: Starvation,
    choice: Choice,
}

/// What a pass is about.
#[derive(Clone, Copy, Debug, Default)]
struct Urgent {
    starvation: Option<Starvation>,
    /// What evicting all pods falls short of, where it does.
    shortfall: Option<Shortfall>,
    /// The first that is left alone.
    held_back: Option<(Starvation, Shortfall)>,
}

impl Engine {
    /// An engine that has seen nothing.
    pub fn new(settings: Settings) -> Engine {
        Engine {
            lines: Lines::new(&settings),
            settings,
            state: State::default(),
            reclaiming: None,
            earlier: Vec::new(),
            looks: Looks::default(),
            outlook: Outlook::default(),
            quiet_until: Timestamp::default(),
            unlisted: Some(Held::default()),
        }
    }

    /// Takes the next input and says what to do.
    pub fn step(&mut self, now: Timestamp, input: Input<'_>) -> Decision {
        if let Input::Outcome { uid, outcome } = input {
            return self.take_outcome(now, uid, outcome);
        }
        let mut decision = match self.is_watching() {
            true => self.step_pass(now, input),
            false => self.decide(now, Verdict::NothingToWatch, Vec::new()),
        };
        if matches!(decision.verdict, Verdict::NoPodToEvict(_)) {
            decision.is_repeated = now < self.quiet_until;
            if !decision.is_repeated {
                self.quiet_until = now + INTERVAL;
            }
        }
        self.looks.next_step = decision.next_step_by;
        decision
    }

    fn step_pass(&mut self, now: Timestamp, input: Input<'_>) -> Decision {
        let reclaiming = self.reclaiming.take();
        match input {
            Input::NotObserved => {
                self.state.has_passed = true;
                self.decide(now, Verdict::NotObserved, Vec::new())
            }
            Input::Observed { observation, pods } => {
                self.track(now, |uid| pending::remains(uid, pods));
                let earlier = self.state.evictions.pods.len();
                let mut decision = self.pass(now, observation, pods);
                self.end_grace_periods(earlier, &mut decision);
                decision
            }
            Input::Reclaimed { observation } => match reclaiming {
                Some(reclaiming) => self.settle(now, reclaiming, observation),
                None => self.decide(now, Verdict::NoPassUnderWay, Vec::new()),
            },
            Input::Outcome { uid, outcome } => self.take_outcome(now, uid, outcome),
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

    /// What to tell the operator about them: thresholds on the containerfs are replaced.
    pub fn warning(&self) -> Option<&str> {
        self.lines.warning()
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

    /// The order of eviction if the signal were starved at this moment; exempt pods are listed too.
    pub fn ranking<'a>(&self, signal: Signal, pods: &[ActivePod<'a>]) -> Vec<Ranked<'a>> {
        self.settings.ranking(signal, pods)
    }

    /// How far each threshold with an observed signal is.
    pub fn forecast(&self, observation: &Observation) -> Vec<Forecast> {
        let readings = observation.readings(self.settings.memory_source);
        self.forecast_by(&self.state.trends, &readings)
    }

    pub(super) fn forecast_by(&self, trends: &Trends, readings: &Readings) -> Vec<Forecast> {
        let of = |(index, threshold): (usize, &Threshold)| {
            let reading = readings.get(threshold.signal)?;
            let id = ThresholdId(index);
            Some(forecast(id, threshold, &reading, trends))
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
        if self.waits_for_oom_kill(now, observation.is_oom_killed) {
            return self.decide(now, Verdict::WaitingForOomKill, Vec::new());
        }
        let readings = observation.readings(self.settings.memory_source);
        let fresh = self.take_in(now, observation, &readings);
        let outgrown = self.evict_outgrown(now, pods);
        if !outgrown.is_empty() {
            return self.decide(now, Verdict::LocalLimits, outgrown);
        }
        let Urgent {
            starvation,
            shortfall,
            held_back,
        } = self.most_urgent_of_use(now, &fresh, &readings, pods);
        let Some(starvation) = starvation else {
            if let Some((starvation, shortfall)) = held_back {
                if shortfall.is_new {
                    self.back_off(&shortfall);
                }
                return Decision {
                    shortfall: Some(shortfall),
                    ..self.decide(now, Verdict::BackingOff(starvation), Vec::new())
                };
            }
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
        let evictions = &self.state.evictions;
        if evictions.is_waiting(now, starvation.resource, pods) {
            let waiting = evictions.pods.iter().map(|pod| pod.uid.clone());
            return self.decide(now, Verdict::WaitingFor(waiting.collect()), Vec::new());
        }
        let choice = self.choose(now, starvation, &fresh, observation, &readings, pods);
        let announced = message::attempting_to_reclaim(starvation.resource);
        let mut actions = vec![Action::Announce(announced)];
        let signal = starvation.trigger.signal();
        let reclaims = NodeReclaim::for_signal(signal, self.settings.layout);
        if reclaims.is_empty() {
            if let Some(shortfall) = shortfall.filter(|shortfall| shortfall.is_new) {
                self.back_off(&shortfall);
            }
            if choice.eviction.is_some() {
                self.note_eviction(now, starvation, &readings, pods);
            }
            return Decision {
                shortfall,
                ..self.conclude(now, starvation, choice, actions)
            };
        }
        actions.extend(reclaims.iter().copied().map(Action::Reclaim));
        self.reclaiming = Some(Reclaiming {
            since: now,
            starvation,
            choice,
        });
        Decision {
            shortfall,
            ..self.decide(now, Verdict::Reclaiming(starvation), actions)
        }
    }

    /// The most urgent shortage that is not left alone because evicting pods could not help.
    fn most_urgent_of_use(
        &self,
        now: Timestamp,
        fresh: &[Trigger],
        readings: &Readings,
        pods: &[ActivePod<'_>],
    ) -> Urgent {
        let mut urgent = Urgent::default();
        let mut left: Vec<Trigger> = Vec::new();
        let mut triggers = fresh;
        let is_waiting = |resource| self.state.evictions.is_waiting(now, resource, pods);
        while let Some(starvation) = self.most_urgent(triggers, readings) {
            // A victim's memory will be released.
            let is_open = !is_waiting(starvation.resource);
            let shortfall = is_open.then(|| self.shortfall(now, starvation, readings, pods));
            let shortfall = shortfall.flatten();
            let Some(shortfall) = shortfall.filter(|_| self.is_backing_off(now)) else {
                urgent.starvation = Some(starvation);
                urgent.shortfall = shortfall;
                break;
            };
            urgent.held_back.get_or_insert((starvation, shortfall));
            if left.is_empty() {
                left.extend_from_slice(fresh);
            }
            left.retain(|trigger| *trigger != starvation.trigger);
            triggers = &left;
        }
        // This pass is about another resource; what is held back gets a record of its own.
        urgent.shortfall = urgent.shortfall.or_else(|| {
            let (_, shortfall) = urgent.held_back?;
            let is_new = false;
            Some(Shortfall {
                is_new,
                ..shortfall
            })
        });
        urgent
    }

    /// Ends a pass whose reclaim is done. It was enough only if every threshold is clear, soft
    /// ones within their grace and other resources too, each with its minimum reclaim.
    fn settle(
        &mut self,
        now: Timestamp,
        reclaiming: Reclaiming,
        observation: Option<&Observation>,
    ) -> Decision {
        let Reclaiming {
            starvation, choice, ..
        } = reclaiming;
        let is_relieved = observation.is_some_and(|observation| {
            let readings = observation.readings(self.settings.memory_source);
            !is_short(&self.lines, &readings, |_| true)
        });
        if is_relieved {
            return self.decide(now, Verdict::Relieved(starvation), Vec::new());
        }
        self.conclude(now, starvation, choice, Vec::new())
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

    fn conclude(
        &mut self,
        now: Timestamp,
        starvation: Starvation,
        choice: Choice,
        mut actions: Vec<Action>,
    ) -> Decision {
        let verdict = match choice.eviction {
            Some(eviction) => {
                let (uid, grace) = (eviction.uid.clone(), eviction.grace_period_seconds);
                self.add_pending(now, uid, grace, choice.had_memory);
                actions.push(Action::Evict(Arc::new(eviction)));
                Verdict::Evicting(starvation)
            }
            None => Verdict::NoPodToEvict(starvation),
        };
        Decision {
            stats_ages: choice.stats_ages,
            ..self.decide(now, verdict, actions)
        }
    }

    pub(super) fn decide(
        &self,
        now: Timestamp,
        verdict: Verdict,
        actions: Vec<Action>,
    ) -> Decision {
        Decision {
            conditions: self.state.conditions.clone(),
            observed: self.state.first_observed.keys().copied().collect(),
            due: self.state.due.iter().copied().collect(),
            verdict,
            actions,
            shortfall: None,
            is_repeated: false,
            stats_ages: Vec::new(),
            next_step_by: self.next_step_by(now),
        }
    }

    /// After the usual interval; earlier when a victim is waited for, a grace or a transition
    /// period ends, or a threshold is going to be reached. Half of the estimated time leaves room
    /// for a rate that doubles.
    fn next_step_by(&self, now: Timestamp) -> Timestamp {
        let state = &self.state;
        let evictions = &state.evictions;
        let interval = match !evictions.pods.is_empty() && now < evictions.until {
            true => POLL,
            false => INTERVAL,
        };
        let graces = state.first_observed.iter();
        let graces = graces.map(|(id, since)| *since + self.threshold(*id).grace_period);
        let transitions = state.last_sighted.values();
        let transitions = transitions.map(|at| *at + self.settings.pressure_transition_period);
        let back_off = state.back_off.map(|back_off| back_off.until);
        let ends = graces.chain(transitions).chain(back_off);
        let ends = ends.filter(|end| *end > now);
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
