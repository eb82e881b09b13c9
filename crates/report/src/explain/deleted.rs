//! Pods that were deleted: the controller that deleted them, or other evidence.

use k8s_openapi::api::core::v1::{Event, Pod};

use super::events;
use super::pod::Found;
use super::report::Ended;

/// The event reason of the taint eviction controller for a pod that it deletes.
const TAINT_EVICTION: &str = "TaintManagerEviction";
/// The event reason of a controller for a pod that it deletes.
pub const DELETED_BY_OWNER: &str = "SuccessfulDelete";
const KILLING: &str = "Killing";
pub(super) const DELETED: &str = "Deleted";

/// Why a pod is being deleted, or was deleted.
pub(super) fn explain_deletion(found: &Found, events: &[Event]) -> Option<Ended> {
    let pod = found.pod.as_ref();
    let mut why = Vec::new();
    let mut message = String::new();
    if let Some(event) = events::latest(events, TAINT_EVICTION) {
        why.push(match found.node() {
            Some(node) => format!(
                "The taint eviction controller deleted it: node {node} got a NoExecute taint that \
                 the pod does not tolerate, or not for longer."
            ),
            None => "The taint eviction controller deleted it.".to_owned(),
        });
        message = event.message.clone().unwrap_or_default();
    } else if let Some(event) = by_owner(found) {
        let owner = &event.involved_object;
        let kind = owner.kind.as_deref().unwrap_or("controller");
        let name = owner.name.as_deref().unwrap_or_default();
        why.push(format!(
            "{kind} {name} deleted it: {}.",
            match kind {
                "DaemonSet" => "the node no longer matches, or its template has changed",
                "Job" => "the Job is over, suspended or has failed",
                _ => "it was scaled down, or its template has changed",
            }
        ));
        message = event.message.clone().unwrap_or_default();
    } else {
        let stopped = events::latest(events, KILLING);
        if pod.is_none() && stopped.is_none() && found.events.is_empty() {
            return None;
        }
        let node = found.node().filter(|_| stopped.is_some() && pod.is_none());
        why.extend(node.map(|node| {
            let at = stopped.and_then(events::time_of).unwrap_or_default();
            format!("It was deleted; node {node} stopped its containers at {at}.")
        }));
        if why.is_empty() {
            why.push("A client deleted it.".to_owned());
        }
        if let Some(node) = &found.cordoned_node {
            why.push(format!(
                "Node {node} is cordoned, as kubectl drain leaves it: the pod was probably drained."
            ));
        }
        why.push("Events do not name the client that asked; an audit log does.".to_owned());
    }
    why.extend(pod.into_iter().flat_map(pending_deletion));
    Some(Ended {
        reason: DELETED.to_owned(),
        message,
        why,
    })
}

/// The event of the controller that deleted it.
fn by_owner(found: &Found) -> Option<&Event> {
    let names_it = |event: &&Event| {
        let message = event.message.as_deref().unwrap_or_default();
        message.split_whitespace().any(|word| word == found.name)
    };
    let naming = found.deletions.iter().filter(names_it);
    naming.max_by_key(|event| events::timestamp(event))
}

/// What the deletion of a pod still waits for.
fn pending_deletion(pod: &Pod) -> Vec<String> {
    let mut texts = Vec::new();
    if let Some(deadline) = &pod.metadata.deletion_timestamp {
        let grace = pod.metadata.deletion_grace_period_seconds.unwrap_or(0);
        texts.push(format!(
            "Its containers have until {} to end (grace period {grace} s).",
            deadline.0
        ));
    }
    let finalizers = pod.metadata.finalizers.as_deref().unwrap_or_default();
    if !finalizers.is_empty() {
        texts.push(format!(
            "It stays until these finalizers are removed: {}.",
            finalizers.join(", ")
        ));
    }
    texts
}
