//! Deciding again.

use serde_json::Value;

use crate::duration;
use crate::object::identity::PodUid;
use crate::object::timestamp::Timestamp;
use crate::quantity;

use super::super::candidate::ActivePod;
use super::super::decision::KillOutcome;
use super::super::engine::{Engine, Input};
use super::super::observation::Observation;
use super::super::shortfall::Held;
use super::super::summary::Summary;
use super::Record;
use super::decision::DecisionRecord;
use super::pod::PodRecord;
use super::settings::unknown;
use super::shortfall::OmittedMemory;

/// Why a record cannot be replayed: it was changed, or a later release wrote it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// A name that means nothing.
    #[error("{field}: unknown value {name:?}")]
    UnknownName {
        /// Where it stands.
        field: &'static str,
        /// The name.
        name: String,
    },
    /// A text that is no quantity.
    #[error("invalid quantity {text:?}")]
    Quantity {
        /// The text.
        text: String,
        /// What is wrong with it.
        source: quantity::ParseError,
    },
    /// A text that is no duration.
    #[error("invalid duration {text:?}")]
    Duration {
        /// The text.
        text: String,
        /// What is wrong with it.
        source: duration::ParseError,
    },
    /// The state speaks of a threshold that the settings do not have.
    #[error("before: no threshold {index} in the settings")]
    NoSuchThreshold {
        /// Its place.
        index: usize,
    },
}

/// A field of a decision that comes out otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Its name in the record.
    pub field: String,
    /// What was decided.
    pub recorded: Value,
    /// What is decided now.
    pub replayed: Value,
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
        let observation = Observation {
            is_oom_killed: self.is_oom_killed,
            ..self.observation.observation()
        };
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
        record.terminated = self.replay_outcomes(&mut engine, at)?;
        Ok(record)
    }

    /// What comes out otherwise, field by field; nothing if the same is decided.
    pub fn differences(&self) -> Result<Vec<Difference>, ReplayError> {
        let replayed = self.replay()?;
        if replayed == self.decision {
            return Ok(Vec::new());
        }
        let fields = |decision: &DecisionRecord| match serde_json::to_value(decision) {
            Ok(Value::Object(fields)) => fields,
            _ => serde_json::Map::new(),
        };
        let (recorded, replayed) = (fields(&self.decision), fields(&replayed));
        let mut names: Vec<&String> = recorded.keys().chain(replayed.keys()).collect();
        names.sort();
        names.dedup();
        let value = |fields: &serde_json::Map<String, Value>, name: &str| {
            fields.get(name).cloned().unwrap_or_default()
        };
        let all = names.into_iter().map(|name| Difference {
            field: name.clone(),
            recorded: value(&recorded, name),
            replayed: value(&replayed, name),
        });
        Ok(all.filter(|one| one.recorded != one.replayed).collect())
    }

    /// The evicted that are to be ended after these outcomes.
    fn replay_outcomes(
        &self,
        engine: &mut Engine,
        now: Timestamp,
    ) -> Result<Option<Vec<String>>, ReplayError> {
        let Some(outcomes) = &self.outcomes else {
            return Ok(None);
        };
        let mut terminated = Vec::new();
        for record in outcomes {
            let uid = PodUid::new(&*record.uid);
            let outcome = KillOutcome::from_name(&record.outcome);
            let outcome = outcome.ok_or_else(|| unknown("outcomes", &record.outcome))?;
            let input = Input::Outcome { uid: &uid, outcome };
            if engine.step(now, input).terminates(&uid) {
                terminated.push(record.uid.clone());
            }
        }
        Ok(Some(terminated))
    }
}
