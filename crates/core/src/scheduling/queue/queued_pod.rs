//! A pod with its history in the queue.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::facts::PodFacts;
use super::rejector::Plugin;
use super::time::Time;

/// The plugins that rejected a pod. None of them means that the attempt ended in an error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rejectors {
    /// Those that said unschedulable, resolvable or not.
    pub unschedulable: BTreeSet<Plugin>,
    /// Those that said pending: they wait for something, and the pod need not back off when it
    /// comes.
    pub pending: BTreeSet<Plugin>,
}

impl Rejectors {
    /// Plugins that said unschedulable.
    pub fn unschedulable(plugins: impl IntoIterator<Item = Plugin>) -> Rejectors {
        Rejectors {
            unschedulable: plugins.into_iter().collect(),
            pending: BTreeSet::new(),
        }
    }

    /// Whether no plugin is to blame.
    pub fn is_empty(&self) -> bool {
        self.unschedulable.is_empty() && self.pending.is_empty()
    }

    /// All of them, in order and each once.
    pub fn iter(&self) -> impl Iterator<Item = Plugin> {
        self.unschedulable.union(&self.pending).copied()
    }
}

/// A pod with its history in the queue. Popping gives it out; a failed attempt hands it back.
#[derive(Clone, Debug)]
pub struct QueuedPod {
    /// The pod.
    pub pod: Arc<PodFacts>,
    /// When it was added, or its last attempt failed.
    pub timestamp: Time,
    /// How often it was popped.
    pub attempts: u32,
    /// When it could first be tried.
    pub initial_attempt: Option<Time>,
    /// The plugins that rejected it in the last attempt or keep it out.
    pub rejectors: Rejectors,
    /// Whether it was woken by the passing of time alone, and not tried since.
    pub was_flushed: bool,
    /// Orders pods of the same timestamp.
    pub(super) sequence: u64,
    /// Attempts that plugins rejected.
    pub(super) unschedulable_count: u32,
    /// Errors since the last attempt that plugins rejected.
    pub(super) consecutive_errors: u32,
    /// The window in which its backoff ends.
    pub(super) backoff_expiry: Option<Time>,
    /// The plugin that keeps it out of the queues that are popped.
    pub(super) gating: Option<Plugin>,
    /// When it was last woken by the passing of time alone.
    pub(super) flushed_at: Time,
}

/// The order of the active queue: priority, then waiting time, then order of arrival.
pub(super) type ActiveKey = (Reverse<i32>, Time, u64);

impl QueuedPod {
    pub(super) fn new(pod: Arc<PodFacts>, now: Time, sequence: u64) -> QueuedPod {
        QueuedPod {
            pod,
            timestamp: now,
            attempts: 0,
            initial_attempt: None,
            rejectors: Rejectors::default(),
            was_flushed: false,
            sequence,
            unschedulable_count: 0,
            consecutive_errors: 0,
            backoff_expiry: None,
            gating: None,
            flushed_at: Time::default(),
        }
    }

    pub(super) fn active_key(&self) -> ActiveKey {
        (Reverse(self.pod.priority), self.timestamp, self.sequence)
    }

    /// The failures that its backoff counts.
    pub(super) fn failures(&self) -> u32 {
        if self.consecutive_errors > 0 {
            self.consecutive_errors
        } else {
            self.unschedulable_count
        }
    }

    /// Since when it has been left alone.
    pub(super) fn unschedulable_since(&self) -> Time {
        self.timestamp.max(self.flushed_at)
    }
}
