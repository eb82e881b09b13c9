//! Recent decisions and their reasons.

use std::collections::VecDeque;
use std::sync::Mutex;

use plimsoll_client::events::Annotations;
use plimsoll_core::object::identity::{NodeName, PodRef, PodUid};
use plimsoll_core::scheduling::decision::{PLACEMENT_ANNOTATION, Placement, PlacementNote};
use plimsoll_core::scheduling::queue::Time;
use serde_json::{Value, json};

pub(super) fn annotations(placement: &Placement) -> Annotations {
    let note = PlacementNote {
        feasible_nodes: placement.feasible,
        score: placement.total,
    };
    let text = serde_json::to_string(&note).unwrap_or_default();
    Annotations::from([(PLACEMENT_ANNOTATION.to_owned(), text)])
}

/// How many decisions are kept.
const KEPT: usize = 4096;

/// A decision about a pod.
#[derive(Clone, Debug)]
pub struct Record {
    /// When.
    pub time: Time,
    /// About which pod.
    pub pod_ref: PodRef,
    /// Which pod of that name.
    pub uid: PodUid,
    /// Its how manieth attempt.
    pub attempt: u32,
    /// The decision.
    pub verdict: Verdict,
}

/// The decision.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// It goes to a node.
    Placed {
        /// The node.
        node: NodeName,
        /// How many nodes would have done.
        feasible: usize,
        /// The score of the node, if it took one to choose.
        score: Option<i64>,
    },
    /// It waits.
    Waits {
        /// Why.
        message: String,
        /// The plugins that something has to change for.
        plugins: Vec<&'static str>,
        /// Where room is made for it.
        nominated: Option<NodeName>,
        /// The pods that are preempted.
        victims: Vec<PodRef>,
    },
}

/// The latest decisions, of all pods; the oldest go first.
#[derive(Debug, Default)]
pub struct Records(Mutex<VecDeque<Record>>);

impl Records {
    pub(super) fn add(&self, record: Record) {
        // A panic elsewhere leaves whole records behind.
        let mut records = self.0.lock().unwrap_or_else(|poison| poison.into_inner());
        if records.len() == KEPT {
            records.pop_front();
        }
        records.push_back(record);
    }

    /// The decisions about a pod, the latest last.
    pub fn about(&self, pod_ref: &PodRef) -> Vec<Record> {
        let records = self.0.lock().unwrap_or_else(|poison| poison.into_inner());
        let about = records.iter().filter(|record| record.pod_ref == *pod_ref);
        about.cloned().collect()
    }
}

impl Record {
    /// The record as JSON.
    pub fn to_json(&self) -> Value {
        let decision = match &self.verdict {
            Verdict::Placed {
                node,
                feasible,
                score,
            } => json!({
                "node": node.as_str(), "feasibleNodes": feasible, "score": score,
            }),
            Verdict::Waits {
                message,
                plugins,
                nominated,
                victims,
            } => json!({
                "message": message, "plugins": plugins,
                "nominatedNodeName": nominated.as_ref().map(NodeName::as_str),
                "victims": victims.iter().map(ToString::to_string).collect::<Vec<_>>(),
            }),
        };
        json!({
            "unixNanoseconds": self.time.as_nanos(),
            "namespace": self.pod_ref.namespace, "name": self.pod_ref.name,
            "uid": self.uid.as_str(), "attempt": self.attempt, "decision": decision,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_decisions_are_forgotten() {
        let records = Records::default();
        let pod_ref = |name: &str| PodRef {
            namespace: "default".to_owned(),
            name: name.to_owned(),
        };
        let record = |name: &str| Record {
            time: Time::from_secs(1),
            pod_ref: pod_ref(name),
            uid: PodUid::from(name),
            attempt: 1,
            verdict: Verdict::Placed {
                node: NodeName::from("n"),
                feasible: 2,
                score: Some(7),
            },
        };
        records.add(record("first"));
        for _ in 0..KEPT - 1 {
            records.add(record("other"));
        }
        let about = records.about(&pod_ref("first"));
        assert_eq!(about[0].to_json()["decision"]["score"], 7);
        records.add(record("other"));
        assert!(records.about(&pod_ref("first")).is_empty());
        assert_eq!(records.about(&pod_ref("other")).len(), KEPT);
    }
}
