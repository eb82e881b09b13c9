//! Records of decisions.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

use crate::object::timestamp::Timestamp;
use crate::quantity::Quantity;
use crate::resources::Bytes;
use crate::threshold::{Signal, StarvedResource};

use super::super::candidate::ActivePod;
use super::super::decision::{Decision, Eviction, Starvation, ThresholdId, Trigger, Verdict};
use super::super::engine::Engine;
use super::super::local_storage::LocalLimit;
use super::super::observation::{Observation, format_of};
use super::super::rank::{Key, Ranked};
use super::super::signal_source::MemorySource;
use super::super::summary::time;
use super::shortfall::ShortfallRecord;

/// How many places of the ranking are written down.
const RANKING_LIMIT: usize = 32;

/// What was decided, and why.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DecisionRecord {
    /// Why these actions and no others.
    #[serde(deserialize_with = "verdict")]
    pub verdict: String,
    /// What the node was short of: `memory.available`, or `memory.stall`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starved: Option<String>,
    /// Conditions reported.
    pub conditions: Vec<String>,
    /// Every line with what it was compared with.
    pub lines: Vec<LineRecord>,
    /// `memory.available` by every source that was measured, and what it would have met.
    pub memory_sources: Vec<SourceRecord>,
    /// The first pods in the order of eviction.
    pub ranking: Vec<RankRecord>,
    /// What the node freed first.
    pub reclaims: Vec<String>,
    /// The pods to evict.
    pub evictions: Vec<EvictionRecord>,
    /// Uids of pods that were being evicted and whose grace period ended with this decision.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kills: Vec<String>,
    /// Uids of the evicted whose workers were to end them, by the outcomes of their kills; `None` if
    /// the outcomes are not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminated: Option<Vec<String>>,
    /// What evicting all pods falls short of, where it could not help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shortfall: Option<ShortfallRecord>,
    /// How old the numbers were, in nanoseconds: from measurement to decision.
    pub stats_ages: Vec<(String, i64)>,
    /// When the engine wanted to be called again.
    #[serde(with = "time")]
    pub next_step_by: Option<Timestamp>,
}

/// A line and what it was compared with.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LineRecord {
    /// Its place among the engine's thresholds.
    pub threshold: usize,
    /// The signal.
    pub signal: String,
    /// Where the line is on this node.
    pub line: i64,
    /// What was left.
    pub available: i64,
    /// Whether it was met or unresolved.
    pub is_observed: bool,
    /// Whether its grace was over.
    pub is_due: bool,
    /// At the measured rate, in how many nanoseconds it is reached.
    pub reached_in_nanos: Option<i64>,
}

/// What a source of the memory signal says.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceRecord {
    /// Its name.
    pub source: String,
    /// What would be left.
    pub available: i64,
    /// Which thresholds that would meet.
    pub would_meet: Vec<usize>,
    /// Whether the engine uses it.
    pub is_used: bool,
}

/// A place in the ranking.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RankRecord {
    /// Namespace and name.
    pub pod: String,
    /// Usage; `None` without statistics.
    pub usage: Option<String>,
    /// Whether usage is above the request.
    pub exceeds_request: bool,
    /// By how much.
    pub excess: String,
    /// Priority.
    pub priority: i32,
    /// QoS class.
    pub qos_class: String,
    /// Whether it was passed over as critical.
    pub is_exempt: bool,
}

/// An eviction.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EvictionRecord {
    /// Namespace and name.
    pub pod: String,
    /// Unique id.
    pub uid: String,
    /// The metric's label.
    pub signal: String,
    /// How long it got.
    pub grace_period_seconds: i64,
    /// Whether it was to be killed at once instead. Not in records of earlier releases.
    #[serde(default)]
    pub is_immediate: bool,
    /// The message in its status.
    pub message: String,
    /// Annotations of its event.
    pub annotations: BTreeMap<String, String>,
    /// In how many nanoseconds the node would have run dry.
    pub exhausted_in_nanos: Option<i64>,
}

impl EvictionRecord {
    /// Whether the pod was evicted for other pods, as in [`Eviction::failure`]: it was unless
    /// it broke a limit of its own.
    pub fn is_disruption(&self) -> bool {
        let limits = LocalLimit::ALL.map(LocalLimit::as_str);
        !limits.contains(&self.signal.as_str())
    }
}

impl DecisionRecord {
    pub(super) fn new(
        engine: &Engine,
        decision: &Decision,
        observation: &Observation,
        pods: &[ActivePod<'_>],
    ) -> DecisionRecord {
        let mut record = DecisionRecord {
            verdict: String::new(),
            starved: None,
            conditions: decision
                .conditions
                .iter()
                .map(ToString::to_string)
                .collect(),
            lines: lines(engine, decision, observation),
            memory_sources: sources(engine, observation),
            ranking: Vec::new(),
            reclaims: decision.reclaims().map(|r| r.as_str().to_owned()).collect(),
            evictions: Vec::new(),
            kills: Vec::new(),
            terminated: None,
            shortfall: None,
            stats_ages: Vec::new(),
            next_step_by: None,
        };
        if let Some(starvation) = starvation(&decision.verdict) {
            let ranking = engine.ranking(starvation.trigger.signal(), pods);
            record.ranking = ranking
                .iter()
                .take(RANKING_LIMIT)
                .map(RankRecord::of)
                .collect();
        }
        record.conclude(decision);
        record
    }

    /// What only the end of a pass knows.
    pub(super) fn conclude(&mut self, decision: &Decision) {
        self.verdict = name(&decision.verdict).to_owned();
        self.starved = starvation(&decision.verdict).map(|starvation| match starvation.trigger {
            Trigger::Threshold(_, signal) => signal.to_string(),
            Trigger::MemoryStall => "memory.stall".to_owned(),
        });
        self.shortfall = decision.shortfall.as_ref().map(ShortfallRecord::of);
        self.evictions = decision.evictions().map(EvictionRecord::of).collect();
        self.kills = decision.kills().map(ToString::to_string).collect();
        let ages = decision.stats_ages.iter();
        self.stats_ages = ages
            .map(|(signal, age)| (signal.to_string(), age.as_nanos()))
            .collect();
        self.next_step_by = Some(decision.next_step_by);
    }
}

/// Reads records of earlier releases too, in which one verdict had another name.
fn verdict<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let name = String::deserialize(from)?;
    Ok(match name.as_str() {
        "nobodyToEvict" => "noPodToEvict".to_owned(),
        _ => name,
    })
}

fn name(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::NothingToWatch => "nothingToWatch",
        Verdict::NotObserved => "notObserved",
        Verdict::NoPassUnderWay => "noPassUnderWay",
        Verdict::NotStarved => "notStarved",
        Verdict::WithinGrace => "withinGrace",
        Verdict::StaleStats => "staleStats",
        Verdict::LocalLimits => "localLimits",
        Verdict::WaitingFor(_) => "waitingForVictims",
        Verdict::WaitingForOomKill => "waitingForOomKill",
        Verdict::OutcomeNoted => "outcomeNoted",
        Verdict::Reclaiming(_) => "reclaiming",
        Verdict::Relieved(_) => "relieved",
        Verdict::Evicting(_) => "evicting",
        Verdict::NoPodToEvict(_) => "noPodToEvict",
        Verdict::BackingOff(_) => "backingOff",
    }
}

fn starvation(verdict: &Verdict) -> Option<Starvation> {
    match verdict {
        Verdict::Reclaiming(starvation)
        | Verdict::Relieved(starvation)
        | Verdict::Evicting(starvation)
        | Verdict::NoPodToEvict(starvation)
        | Verdict::BackingOff(starvation) => Some(*starvation),
        _ => None,
    }
}

fn lines(engine: &Engine, decision: &Decision, observation: &Observation) -> Vec<LineRecord> {
    let forecasts = engine.forecast(observation).into_iter();
    let contains = |ids: &[ThresholdId], id: ThresholdId| ids.contains(&id);
    forecasts
        .map(|forecast| LineRecord {
            threshold: forecast.threshold.index(),
            signal: forecast.signal.to_string(),
            line: forecast.line,
            available: forecast.available,
            is_observed: contains(&decision.observed, forecast.threshold),
            is_due: contains(&decision.due, forecast.threshold),
            reached_in_nanos: forecast.reached_in.map(|left| left.as_nanos()),
        })
        .collect()
}

fn sources(engine: &Engine, observation: &Observation) -> Vec<SourceRecord> {
    let used = engine.settings().memory_source;
    let of = |(source, available): (MemorySource, Bytes)| SourceRecord {
        source: source.as_str().to_owned(),
        available: available.0,
        would_meet: engine
            .met_by(source, observation)
            .filter(|id| engine.threshold(*id).signal.resource() == StarvedResource::Memory)
            .map(ThresholdId::index)
            .collect(),
        is_used: source == used,
    };
    observation
        .memory_available_by_source()
        .into_iter()
        .map(of)
        .collect()
}

impl LineRecord {
    /// The available amount, as messages print it.
    pub fn available_quantity(&self) -> Option<Quantity> {
        self.quantity(self.available)
    }

    /// The threshold, as messages print it.
    pub fn threshold_quantity(&self) -> Option<Quantity> {
        self.quantity(self.line)
    }

    fn quantity(&self, value: i64) -> Option<Quantity> {
        let signal = Signal::from_name(&self.signal)?;
        Some(Quantity::new(value, format_of(signal)))
    }
}

impl RankRecord {
    /// The first of the keys in which the two pods differ; `None` if only age or name do.
    pub fn differs_by(&self, other: &RankRecord, keys: &[Key]) -> Option<Key> {
        let differs = |key: &Key| match key {
            Key::Statistics => self.usage.is_some() != other.usage.is_some(),
            Key::AboveRequest => self.exceeds_request != other.exceeds_request,
            Key::Priority => self.priority != other.priority,
            Key::Excess => self.excess != other.excess,
            Key::QosClass => self.qos_class != other.qos_class,
        };
        keys.iter().copied().find(differs)
    }

    /// The record of a place.
    pub fn of(ranked: &Ranked<'_>) -> RankRecord {
        let candidate = ranked.pod.candidate;
        RankRecord {
            pod: candidate.pod_ref.to_string(),
            usage: ranked.usage.as_ref().map(ToString::to_string),
            exceeds_request: ranked.exceeds_request,
            excess: ranked.excess.to_string(),
            priority: candidate.priority,
            qos_class: candidate.qos_class.to_string(),
            is_exempt: candidate.is_exempt,
        }
    }
}

impl EvictionRecord {
    fn of(eviction: &Eviction) -> EvictionRecord {
        let annotations = eviction.annotations.iter();
        EvictionRecord {
            pod: eviction.pod_ref.to_string(),
            uid: eviction.uid.to_string(),
            signal: eviction.cause.metric_label().to_owned(),
            grace_period_seconds: eviction.grace_period_seconds,
            is_immediate: eviction.is_immediate,
            message: eviction.message.clone(),
            annotations: annotations
                .map(|(key, value)| ((*key).to_owned(), value.clone()))
                .collect(),
            exhausted_in_nanos: eviction.exhausted_in.map(|left| left.as_nanos()),
        }
    }
}
