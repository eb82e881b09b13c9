//! How an eviction went, by what the API and the node say of it.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use plimsoll_core::eviction::record::Record;
use plimsoll_core::object::timestamp::Timestamp;

/// What is known of the eviction of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Eviction {
    /// The signal of the threshold.
    pub(super) signal: String,
    /// What the pod's status says.
    pub(super) message: String,
    /// From crossing the threshold to the decision; the processes are killed at once.
    pub(super) decided_after: Option<Duration>,
    /// From crossing the threshold to the moment at which the API had it.
    pub(super) told_after: Option<Duration>,
}

/// Whether the pod is evicted, as the API says it.
pub(super) fn is_evicted(pod: &Pod) -> bool {
    let status = pod.status.as_ref();
    status.is_some_and(|status| {
        status.phase.as_deref() == Some("Failed") && status.reason.as_deref() == Some("Evicted")
    })
}

impl Eviction {
    /// Puts together what the API says of the pod since `told`, and the node's record.
    pub(super) fn new(pod: &Pod, record: Option<&Record>, told: Timestamp) -> Eviction {
        let status = pod.status.as_ref();
        let message = status.and_then(|status| status.message.clone());
        let crossed = record.and_then(Record::crossed_at);
        let after_crossing = |time: Timestamp| Some(time.saturating_since(crossed?));
        let starved = record.and_then(|record| record.decision.starved.clone());
        Eviction {
            signal: starved.unwrap_or_else(|| "memory.available".to_owned()),
            message: message.unwrap_or_default().trim().to_owned(),
            decided_after: record.and_then(|record| after_crossing(record.at?)),
            told_after: after_crossing(told),
        }
    }
}
