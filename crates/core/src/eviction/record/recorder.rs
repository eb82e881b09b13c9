//! Writing passes down.

use std::collections::VecDeque;

use crate::object::identity::PodUid;
use crate::object::timestamp::Timestamp;

use super::super::decision::{Decision, KillOutcome, Verdict};
use super::super::engine::{Engine, Input};
use super::super::state::State;
use super::super::summary::Summary;
use super::decision::DecisionRecord;
use super::state::StateRecord;
use super::{AfterReclaim, OutcomeRecord, Record};

/// Drives an engine and keeps the latest records.
///
/// A pass is [`Recorder::decide`], then, when the decision is carried out, [`Recorder::outcome`] for
/// each kill, then [`Recorder::write`]. Writing takes memory and time, which a node may not have
/// before it has killed.
#[derive(Clone, Debug)]
pub struct Recorder {
    capacity: usize,
    records: VecDeque<Record>,
    /// The pass that waits for its reclaim.
    open: Option<Record>,
    /// What the engine remembered before the pass.
    before: State,
    outcomes: Vec<OutcomeRecord>,
    terminated: Vec<String>,
}

impl Recorder {
    /// A recorder that keeps that many records.
    pub fn new(capacity: usize) -> Recorder {
        Recorder {
            capacity,
            records: VecDeque::new(),
            open: None,
            before: State::default(),
            outcomes: Vec::new(),
            terminated: Vec::new(),
        }
    }

    /// The records, oldest first.
    pub fn records(&self) -> impl DoubleEndedIterator<Item = &Record> {
        self.records.iter()
    }

    /// Steps the engine, and writes the pass down if it does anything. Nothing is carried out.
    pub fn step(&mut self, engine: &mut Engine, now: Timestamp, input: Input<'_>) -> Decision {
        let decision = self.decide(engine, now, input);
        self.write(engine, now, input, &decision);
        decision
    }

    /// Steps the engine.
    pub fn decide(&mut self, engine: &mut Engine, now: Timestamp, input: Input<'_>) -> Decision {
        self.before.clone_from(&engine.state);
        self.outcomes.clear();
        self.terminated.clear();
        engine.step(now, input)
    }

    /// Passes the outcome of a kill to the engine, and records it.
    pub fn outcome(
        &mut self,
        engine: &mut Engine,
        now: Timestamp,
        uid: &PodUid,
        outcome: KillOutcome,
    ) -> Decision {
        let decision = engine.step(now, Input::Outcome { uid, outcome });
        self.outcomes.push(OutcomeRecord {
            uid: uid.to_string(),
            outcome: outcome.as_str().to_owned(),
        });
        if decision.terminates(uid) {
            self.terminated.push(uid.to_string());
        }
        decision
    }

    /// Writes the pass down that was decided, if it did anything; the record, if the pass is over.
    pub fn write(
        &mut self,
        engine: &Engine,
        now: Timestamp,
        input: Input<'_>,
        decision: &Decision,
    ) -> Option<&mut Record> {
        let open = self.open.take();
        let mut record = match input {
            Input::Observed { observation, pods } => {
                if !decision.is_news() || decision.is_repeated {
                    return None;
                }
                let before = StateRecord::of(&self.before);
                let text = DecisionRecord::new(engine, decision, observation, pods);
                let mut record = Record::begin(engine, now, observation, before, text);
                record.keep_pods(engine, decision, pods);
                record
            }
            Input::Reclaimed { observation } => {
                let mut record = open?;
                record.after_reclaim = Some(AfterReclaim {
                    at: Some(now),
                    observation: observation.map(Summary::of_node),
                });
                record.decision.conclude(decision);
                record
            }
            Input::NotObserved | Input::Outcome { .. } => return None,
        };
        if !self.outcomes.is_empty() {
            let earlier = record.outcomes.take().unwrap_or_default().into_iter();
            record.outcomes = Some(earlier.chain(self.outcomes.drain(..)).collect());
            let terminated = &mut record.decision.terminated;
            let earlier = terminated.take().unwrap_or_default().into_iter();
            *terminated = Some(earlier.chain(self.terminated.drain(..)).collect());
        }
        if matches!(decision.verdict, Verdict::Reclaiming(_)) {
            self.open = Some(record);
            return None;
        }
        self.records.push_back(record);
        while self.records.len() > self.capacity {
            self.records.pop_front();
        }
        self.records.back_mut()
    }
}
