//! Records of decisions: what was known, what was decided, and why.
//!
//! A [`Record`] holds everything a pass depended on, so that [`Record::replay`] comes to the same
//! decision on any machine at any time. Its size is bounded by that of one node. A [`Recorder`]
//! drives an engine and keeps the latest records of passes that did something.
//!
//! Reading order: this file, then [`settings`], `state`, [`pod`], [`shortfall`], [`decision`] and
//! [`distances`], the forms in which the parts are written down, `recorder`, which writes them, `replay`,
//! which decides again, `crossing` and `earlier`, which read them; [`ranking`] stands beside them:
//! which pods would be next. Engine types themselves are never serialised.

mod crossing;
pub mod decision;
pub mod distances;
mod earlier;
pub mod pod;
pub mod ranking;
mod recorder;
mod replay;
pub mod settings;
pub mod shortfall;
mod state;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::config::Profile;
use crate::object::identity::PodUid;
use crate::object::timestamp::Timestamp;
use crate::threshold::{Signal, StarvedResource};

use super::candidate::ActivePod;
use super::decision::{Decision, KillOutcome, Verdict};
use super::engine::Engine;
use super::observation::Observation;
use super::rank::{self, Key};
use super::shortfall::Held;
use super::summary::{Summary, time};

use decision::{DecisionRecord, EvictionRecord};
use pod::PodRecord;
use settings::SettingsRecord;
use shortfall::{Consumer, OmittedMemory};

pub use earlier::earlier_evictions;
pub use recorder::Recorder;
pub use replay::{Difference, ReplayError};
pub use state::StateRecord;

/// How many pods a record holds beside those that were evicted; those next in rank are kept.
const PODS_LIMIT: usize = 512;

/// The record of a pass.
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
    /// Whether the kernel's OOM killer had killed in a pod since the observation before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_oom_killed: bool,
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
    /// What came of each kill; `None` if the decision was not carried out, as far as is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcomes: Option<Vec<OutcomeRecord>>,
    /// What earlier releases wrote instead: uids of pods that were killed at once.
    #[serde(default, skip_serializing)]
    struck: Option<Vec<String>>,
    /// What earlier releases wrote instead: uids of pods in which the kernel was quicker.
    #[serde(default, skip_serializing)]
    spared: Option<Vec<String>>,
    /// What holds the memory where evicting pods could not help, the largest first. Read by
    /// whichever process carried the decision out; `None` if none has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consumers: Option<Vec<Consumer>>,
}

/// What came of killing a pod.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct OutcomeRecord {
    /// The pod.
    pub uid: String,
    /// The name of a [`KillOutcome`].
    pub outcome: String,
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

impl Record {
    /// The evictions that were carried out, as far as is known: nothing may have come of an eviction
    /// whose outcome is not.
    pub fn carried_out(&self) -> impl Iterator<Item = &EvictionRecord> {
        let evictions = self.decision.evictions.iter();
        evictions.filter(|eviction| {
            let outcome = self.outcome(&eviction.uid);
            outcome.is_some_and(|outcome| outcome != KillOutcome::OomKilled)
        })
    }

    /// What came of killing a pod, as far as is known.
    pub fn outcome(&self, uid: &str) -> Option<KillOutcome> {
        if let Some(outcomes) = &self.outcomes {
            let found = outcomes.iter().rev().find(|outcome| outcome.uid == uid)?;
            return KillOutcome::from_name(&found.outcome);
        }
        let names = |list: &Option<Vec<String>>| {
            let mut list = list.iter().flatten();
            list.any(|known| known == uid)
        };
        match (&self.struck, &self.spared) {
            _ if names(&self.struck) => Some(KillOutcome::Killed),
            _ if names(&self.spared) => Some(KillOutcome::OomKilled),
            (_, Some(_)) => Some(KillOutcome::Graceful),
            (_, None) => None,
        }
    }

    /// Whether a pod was killed at once.
    pub fn is_killed(&self, uid: &str) -> bool {
        self.outcome(uid) == Some(KillOutcome::Killed)
    }

    /// Whether nothing was done to a pod, because the kernel's OOM killer was quicker.
    pub fn is_oom_killed_first(&self, uid: &str) -> bool {
        self.outcome(uid) == Some(KillOutcome::OomKilled)
    }

    /// What the pods were ranked by; empty for an unknown profile.
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
            is_oom_killed: observation.is_oom_killed,
            pods: Vec::new(),
            omitted_pods: 0,
            omitted_memory: None,
            after_reclaim: None,
            decision,
            outcomes: None,
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
                Verdict::Reclaiming(s) | Verdict::Evicting(s) | Verdict::NoPodToEvict(s) => {
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
