//! Decisions on paper: what was known, what was decided, and why.
//!
//! A [`Record`] holds everything a pass depended on, so that [`Record::replay`] comes to the same
//! decision on any machine at any time. Its size is bounded by that of one node. A [`Recorder`]
//! drives an engine and keeps the latest records of passes that did something.
//!
//! Reading order: this file, then [`settings`], `state`, [`pod`], [`shortfall`], [`decision`] and
//! [`lines`], the forms in which the parts are written down, and `crossing`, which reads them. Engine types
//! themselves are never serialised.

mod crossing;
pub mod decision;
pub mod lines;
pub mod pod;
pub mod settings;
pub mod shortfall;
mod state;

use std::collections::{BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};

use crate::config::Profile;
use crate::duration;
use crate::object::identity::PodUid;
use crate::object::timestamp::Timestamp;
use crate::quantity;
use crate::threshold::{Signal, StarvedResource};

use super::candidate::ActivePod;
use super::decision::{Decision, Verdict};
use super::engine::{Engine, Input};
use super::observation::Observation;
use super::rank::{self, Key};
use super::shortfall::Held;
use super::summary::{Summary, time};

use decision::{DecisionRecord, EvictionRecord};
use pod::PodRecord;
use settings::SettingsRecord;
use shortfall::{Consumer, OmittedMemory};
pub use state::StateRecord;

/// How many pods a record holds beside those that were evicted; those next in rank are kept.
const PODS_LIMIT: usize = 512;

/// A pass on paper.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// When the pass began.
    #[serde(with = "time")]
    pub at: Option<Timestamp>,
    /// How the engine was set up.
    pub settings: SettingsRecord,
    /// What it remembered.
    pub before: StateRecord,
    /// What was measured on the node.
    pub observation: Summary,
    /// The pods and what they used.
    pub pods: Vec<PodRecord>,
    /// How many pods were left out.
    pub omitted_pods: usize,
    /// What they held of the memory, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub omitted_memory: Option<OmittedMemory>,
    /// The second look, if the node freed something first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_reclaim: Option<AfterReclaim>,
    /// What was decided.
    pub decision: DecisionRecord,
    /// Uids of those that were killed at once instead of being given their grace. Told by whoever
    /// carried the decision out; `None` if nobody has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub struck: Option<Vec<String>>,
    /// Uids of those to whom nothing was done, because the kernel had killed in them first. Told as
    /// `struck` is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spared: Option<Vec<String>>,
    /// What holds the memory where evicting pods could not help, the largest first. Read by
    /// whichever process carried the decision out; `None` if none has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consumers: Option<Vec<Consumer>>,
}

/// The look at the node after it freed what it could.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct AfterReclaim {
    /// When; the difference to the pass's begin is what the reclaim took.
    #[serde(with = "time")]
    pub at: Option<Timestamp>,
    /// What was measured; `None` if that failed.
    pub observation: Option<Summary>,
}

/// Why a record cannot be replayed: somebody changed it, or a later release wrote it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// A name that means nothing.
    #[error("{field}: {name:?} is not known")]
    UnknownName {
        /// Where it stands.
        field: &'static str,
        /// The name.
        name: String,
    },
    /// A text that is no quantity.
    #[error("{text:?} is no quantity")]
    Quantity {
        /// The text.
        text: String,
        /// What is wrong with it.
        source: quantity::ParseError,
    },
    /// A text that is no duration.
    #[error("{text:?} is no duration")]
    Duration {
        /// The text.
        text: String,
        /// What is wrong with it.
        source: duration::ParseError,
    },
    /// The state speaks of a threshold that the settings do not have.
    #[error("before: there is no threshold {index}")]
    NoSuchThreshold {
        /// Its place.
        index: usize,
    },
}

impl Record {
    /// Decides again from what the record holds.
    pub fn replay(&self) -> Result<DecisionRecord, ReplayError> {
        let mut engine = Engine::new(self.settings.to_settings()?);
        engine.state = self.before.to_state(engine.thresholds().len())?;
        engine.unlisted = match self.omitted_pods {
            0 => Some(Held::default()),
            _ => self.omitted_memory.map(OmittedMemory::to_held),
        };
        let pods = self.pods.iter().map(PodRecord::to_parts);
        let pods = pods.collect::<Result<Vec<_>, ReplayError>>()?;
        let active: Vec<ActivePod<'_>> = pods
            .iter()
            .map(|(candidate, usage)| ActivePod {
                candidate,
                usage: usage.as_ref(),
            })
            .collect();
        let observation = self.observation.observation();
        let at = self.at.unwrap_or_default();
        let input = Input::Observed {
            observation: &observation,
            pods: &active,
        };
        let mut decision = engine.step(at, input);
        let mut record = DecisionRecord::new(&engine, &decision, &observation, &active);
        if let Some(after) = &self.after_reclaim {
            let second = after.observation.as_ref().map(Summary::observation);
            let input = Input::Reclaimed {
                observation: second.as_ref(),
            };
            decision = engine.step(after.at.unwrap_or_default(), input);
            record.conclude(&decision);
        }
        Ok(record)
    }

    /// The evictions that were carried out, as far as is known: a pod that nobody has told of may have
    /// been spared.
    pub fn carried_out(&self) -> impl Iterator<Item = &EvictionRecord> {
        let is_told = self.spared.is_some();
        self.decision.evictions.iter().filter(move |eviction| {
            self.is_struck(&eviction.uid) || is_told && !self.is_spared(&eviction.uid)
        })
    }

    /// Whether a pod was killed at once.
    pub fn is_struck(&self, uid: &str) -> bool {
        let mut struck = self.struck.iter().flatten();
        struck.any(|known| known == uid)
    }

    /// Whether nothing was done to a pod, because the kernel was first.
    pub fn is_spared(&self, uid: &str) -> bool {
        let mut spared = self.spared.iter().flatten();
        spared.any(|known| known == uid)
    }

    /// What the pods were ranked by; empty for a profile that nobody knows.
    pub fn rank_keys(&self) -> &'static [Key] {
        let Some(profile) = Profile::from_word(&self.settings.profile) else {
            return &[];
        };
        let starved = self.decision.starved.as_deref();
        let signal = starved.and_then(Signal::from_name);
        let is_pids = signal.is_some_and(|signal| signal.resource() == StarvedResource::Pids);
        rank::keys(profile.eviction_rank(), is_pids)
    }

    /// The pass before its decision.
    fn begin(
        engine: &Engine,
        now: Timestamp,
        observation: &Observation,
        before: StateRecord,
        decision: DecisionRecord,
    ) -> Record {
        Record {
            at: Some(now),
            settings: SettingsRecord::of(engine.settings()),
            before,
            observation: Summary::of_node(observation),
            pods: Vec::new(),
            omitted_pods: 0,
            omitted_memory: None,
            after_reclaim: None,
            decision,
            struck: None,
            spared: None,
            consumers: None,
        }
    }

    /// Writes down the pods, in their order. Leaving out the last in rank changes no decision.
    fn keep_pods(&mut self, engine: &Engine, decision: &Decision, pods: &[ActivePod<'_>]) {
        let mut kept: BTreeSet<&PodUid> = decision.evictions().map(|e| &e.uid).collect();
        if pods.len() > PODS_LIMIT {
            let signal = match &decision.verdict {
                Verdict::Reclaiming(s) | Verdict::Evicting(s) | Verdict::NobodyToEvict(s) => {
                    s.trigger.signal()
                }
                _ => Signal::MemoryAvailable,
            };
            let ranking = engine.ranking(signal, pods);
            let first = ranking.iter().take(PODS_LIMIT);
            kept.extend(first.map(|ranked| &ranked.pod.candidate.uid));
        } else {
            kept.extend(pods.iter().map(|pod| &pod.candidate.uid));
        }
        let listed = pods.iter().filter(|pod| kept.contains(&pod.candidate.uid));
        self.pods = listed.map(PodRecord::of).collect();
        self.omitted_pods = pods.len() - self.pods.len();
        let omitted = pods.iter().filter(|pod| {
            let candidate = pod.candidate;
            !kept.contains(&candidate.uid) && !engine.is_dying(candidate)
        });
        let omitted = (self.omitted_pods > 0).then(|| Held::by(omitted));
        self.omitted_memory = omitted.flatten().map(OmittedMemory::of);
    }
}

/// Drives an engine and keeps the latest records.
#[derive(Clone, Debug)]
pub struct Recorder {
    capacity: usize,
    records: VecDeque<Record>,
    /// The pass that waits for its reclaim.
    open: Option<Record>,
}

impl Recorder {
    /// A recorder that keeps that many records.
    pub fn new(capacity: usize) -> Recorder {
        Recorder {
            capacity,
            records: VecDeque::new(),
            open: None,
        }
    }

    /// The records, oldest first.
    pub fn records(&self) -> impl DoubleEndedIterator<Item = &Record> {
        self.records.iter()
    }

    /// Steps the engine, and writes the pass down if it does anything.
    pub fn step(&mut self, engine: &mut Engine, now: Timestamp, input: Input<'_>) -> Decision {
        self.step_acting(engine, now, input, |_| {})
    }

    /// The same, and has somebody act on the decision before it is written down: that takes memory
    /// and time.
    pub fn step_acting(
        &mut self,
        engine: &mut Engine,
        now: Timestamp,
        input: Input<'_>,
        act: impl FnOnce(&Decision),
    ) -> Decision {
        match input {
            Input::NotObserved => {
                self.open = None;
                let decision = engine.step(now, input);
                act(&decision);
                decision
            }
            Input::Observed { observation, pods } => {
                self.open = None;
                let before = engine.state.clone();
                let decision = engine.step(now, input);
                act(&decision);
                if decision.is_news() {
                    let before = StateRecord::of(&before);
                    let text = DecisionRecord::new(engine, &decision, observation, pods);
                    let mut record = Record::begin(engine, now, observation, before, text);
                    record.keep_pods(engine, &decision, pods);
                    self.take(record, &decision);
                }
                decision
            }
            Input::Reclaimed { observation } => {
                let decision = engine.step(now, input);
                act(&decision);
                if let Some(mut record) = self.open.take() {
                    record.after_reclaim = Some(AfterReclaim {
                        at: Some(now),
                        observation: observation.map(Summary::of_node),
                    });
                    record.decision.conclude(&decision);
                    self.keep(record);
                }
                decision
            }
        }
    }

    fn take(&mut self, record: Record, decision: &Decision) {
        if matches!(decision.verdict, Verdict::Reclaiming(_)) {
            self.open = Some(record);
        } else {
            self.keep(record);
        }
    }

    fn keep(&mut self, record: Record) {
        self.records.push_back(record);
        while self.records.len() > self.capacity {
            self.records.pop_front();
        }
    }
}
