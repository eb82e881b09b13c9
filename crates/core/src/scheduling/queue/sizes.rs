//! The sizes of the queue, for metrics.

use std::collections::BTreeMap;
use std::fmt;

/// A place in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum QueueName {
    /// To be tried.
    Active,
    /// To be tried after its backoff.
    Backoff,
    /// Not to be tried for now, or gated.
    Unschedulable,
}

/// As the label `queue` of metrics has it.
impl fmt::Display for QueueName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            QueueName::Active => "active",
            QueueName::Backoff => "backoff",
            QueueName::Unschedulable => "unschedulable",
        })
    }
}

/// How many pods are where: the metric `scheduler_pending_pods`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// To be tried.
    pub active: usize,
    /// Backing off, after errors too.
    pub backoff: usize,
    /// Not to be tried for now.
    pub unschedulable: usize,
    /// Not to be tried at all until a plugin lets them.
    pub gated: usize,
    /// Being tried.
    pub in_flight: usize,
}

/// How many pods came where because of what: `scheduler_queue_incoming_pods_total`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Incoming(BTreeMap<(QueueName, String), u64>);

impl Incoming {
    pub(super) fn count(&mut self, queue: QueueName, event: &str) {
        *self.0.entry((queue, event.to_owned())).or_default() += 1;
    }

    /// How many came to a queue because of an event.
    pub fn get(&self, queue: QueueName, event: &str) -> u64 {
        let count = self.0.get(&(queue, event.to_owned()));
        count.copied().unwrap_or(0)
    }

    /// All counts: queue, label of the event, number.
    pub fn iter(&self) -> impl Iterator<Item = (QueueName, &str, u64)> {
        let counts = self.0.iter();
        counts.map(|((queue, event), count)| (*queue, event.as_str(), *count))
    }
}
