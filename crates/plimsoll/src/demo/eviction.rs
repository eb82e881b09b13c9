//! The timing of an eviction, from the API and the node's record.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use plimsoll_core::eviction::record::Record;
use plimsoll_core::object::timestamp::Timestamp;

/// The eviction of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Eviction {
    /// The signal of the threshold.
    pub(super) signal: String,
    /// The message in the pod's status.
    pub(super) message: String,
    /// Time from crossing the threshold to the decision; the processes are killed at once.
    pub(super) decided_after: Option<Duration>,
    /// Time from crossing the threshold to the status update in the API.
    pub(super) reported_after: Option<Duration>,
}

/// Whether the pod is evicted according to its status.
pub(super) fn is_evicted(pod: &Pod) -> bool {
    let status = pod.status.as_ref();
    status.is_some_and(|status| {
        status.phase.as_deref() == Some("Failed") && status.reason.as_deref() == Some("Evicted")
    })
}

impl Eviction {
    /// Combines the pod's status, in the API since `reported`, with the node's record.
    pub(super) fn new(pod: &Pod, record: Option<&Record>, reported: Timestamp) -> Eviction {
        let status = pod.status.as_ref();
        let message = status.and_then(|status| status.message.clone());
        let crossed = record.and_then(Record::crossed_at);
        let after_crossing = |time: Timestamp| Some(time.saturating_since(crossed?));
        let starved = record.and_then(|record| record.decision.starved.clone());
        Eviction {
            signal: starved.unwrap_or_else(|| "memory.available".to_owned()),
            message: message.unwrap_or_default().trim().to_owned(),
            decided_after: record.and_then(|record| after_crossing(record.at?)),
            reported_after: after_crossing(reported),
        }
    }
}
