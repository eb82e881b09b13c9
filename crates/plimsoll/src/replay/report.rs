//! Recorded and replayed decisions as data.

use std::collections::BTreeSet;

use plimsoll_core::eviction::record::decision::{DecisionRecord, LineRecord};
use plimsoll_core::eviction::record::{Difference, OutcomeRecord, Record};
use plimsoll_core::object::timestamp::Timestamp;
use serde::Serialize;
use serde_json::Value;

/// All decisions.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    api_version: &'static str,
    kind: &'static str,
    pub(super) items: Vec<Replayed>,
}

/// One decision.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Replayed {
    /// When it was made, in RFC 3339.
    pub(super) at: Option<String>,
    pub(super) input: Input,
    /// What was decided.
    pub(super) decision: DecisionRecord,
    /// Whether the replay agrees with the record.
    pub(super) is_same: bool,
    /// Fields that differ.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) differences: Vec<Changed>,
    /// Why the record cannot be replayed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
}

/// The inputs of the decision.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Input {
    pub(super) profile: String,
    pub(super) memory_source: String,
    /// Thresholds, with the amounts that were available.
    pub(super) thresholds: Vec<LineRecord>,
    /// How many pods there were.
    pub(super) pods: usize,
    pub(super) is_oom_killed: bool,
    /// Whether the node reclaimed resources first, and was observed again.
    pub(super) is_reclaimed: bool,
    /// The results of kills.
    pub(super) outcomes: Vec<OutcomeRecord>,
}

/// A field that differs.
#[derive(Debug, Serialize)]
pub(super) struct Changed {
    pub(super) field: String,
    pub(super) recorded: Value,
    pub(super) replayed: Value,
}

impl Report {
    pub(super) fn new(records: &[Record]) -> Report {
        Report {
            api_version: "plimsoll.dev/v1",
            kind: "EvictionReplayList",
            items: records.iter().map(Replayed::new).collect(),
        }
    }

    pub(super) fn is_same(&self) -> bool {
        self.items.iter().all(|one| one.is_same)
    }
}

impl Replayed {
    fn new(record: &Record) -> Replayed {
        let (differences, error) = match record.differences() {
            Ok(differences) => (differences, None),
            Err(error) => (Vec::new(), Some(error.to_string())),
        };
        let differences = differences.into_iter().flat_map(|difference| {
            let Difference {
                field,
                recorded,
                replayed,
            } = difference;
            Changed::within(field, recorded, replayed)
        });
        let differences: Vec<Changed> = differences.collect();
        Replayed {
            at: record.at.map(rfc3339),
            input: Input {
                profile: record.settings.profile.clone(),
                memory_source: record.settings.memory_source.clone(),
                thresholds: record.decision.lines.clone(),
                pods: record.pods.len() + record.omitted_pods,
                is_oom_killed: record.is_oom_killed,
                is_reclaimed: record.after_reclaim.is_some(),
                outcomes: record.outcomes.clone().unwrap_or_default(),
            },
            decision: record.decision.clone(),
            is_same: differences.is_empty() && error.is_none(),
            differences,
            error,
        }
    }
}

impl Changed {
    /// The innermost fields that differ. Lists of different lengths are compared as one value.
    fn within(field: String, recorded: Value, replayed: Value) -> Vec<Changed> {
        match (recorded, replayed) {
            (recorded, replayed) if recorded == replayed => Vec::new(),
            (Value::Array(recorded), Value::Array(replayed))
                if recorded.len() == replayed.len() =>
            {
                let pairs = recorded.into_iter().zip(replayed).enumerate();
                let inner = pairs.map(|(index, (recorded, replayed))| {
                    Changed::within(format!("{field}[{index}]"), recorded, replayed)
                });
                inner.flatten().collect()
            }
            (Value::Object(mut recorded), Value::Object(mut replayed)) => {
                let names = recorded.keys().chain(replayed.keys()).cloned();
                let names: BTreeSet<String> = names.collect();
                let inner = names.into_iter().map(|name| {
                    let recorded = recorded.remove(&name).unwrap_or_default();
                    let replayed = replayed.remove(&name).unwrap_or_default();
                    Changed::within(format!("{field}.{name}"), recorded, replayed)
                });
                inner.flatten().collect()
            }
            (recorded, replayed) => vec![Changed {
                field,
                recorded,
                replayed,
            }],
        }
    }
}

fn rfc3339(at: Timestamp) -> String {
    at.to_api().0.to_string()
}
