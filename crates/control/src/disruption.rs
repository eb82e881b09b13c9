//! Records on a pod why it is deleted, before it is.

use k8s_openapi::api::core::v1::{Pod, PodCondition};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use plimsoll_core::object::pod::status::DISRUPTION_TARGET;
use plimsoll_core::object::timestamp::Timestamp;
use serde_json::{Value, json};

/// Why a pod is deleted, for its condition `DisruptionTarget`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Disruption {
    /// The machine-readable reason.
    pub(crate) reason: &'static str,
    /// The human-readable message.
    pub(crate) message: &'static str,
}

/// The patch that sets the condition in a pod's status; nothing if the pod has it already. The time
/// of the change stays when the condition held before for another reason.
pub(crate) fn disruption_patch(pod: &Pod, why: Disruption, now: Timestamp) -> Option<Value> {
    let mut conditions = pod
        .status
        .iter()
        .flat_map(|s| s.conditions.iter().flatten());
    let known = conditions.find(|condition| condition.type_ == DISRUPTION_TARGET);
    let held = known.filter(|condition| condition.status == "True");
    let is_reported = held.is_some_and(|condition| {
        condition.reason.as_deref() == Some(why.reason)
            && condition.message.as_deref() == Some(why.message)
    });
    if is_reported {
        return None;
    }
    let since = held.and_then(|condition| condition.last_transition_time.clone());
    let condition = PodCondition {
        type_: DISRUPTION_TARGET.to_owned(),
        status: "True".to_owned(),
        reason: Some(why.reason.to_owned()),
        message: Some(why.message.to_owned()),
        last_transition_time: Some(since.unwrap_or_else(|| now.to_api_seconds())),
        observed_generation: pod.metadata.generation,
        ..PodCondition::default()
    };
    Some(conditions_patch(pod, json!(condition)))
}

/// The patch of a pod's status that changes one condition, in its place or at the end.
pub(crate) fn conditions_patch(pod: &Pod, condition: Value) -> Value {
    let known = pod
        .status
        .iter()
        .flat_map(|s| s.conditions.iter().flatten());
    let mut order: Vec<Value> = known.map(|c| json!({"type": c.type_})).collect();
    let own = json!({"type": condition["type"]});
    if !order.contains(&own) {
        order.push(own);
    }
    json!({"conditions": [condition], "$setElementOrder/conditions": order})
}

/// Patches the status of exactly this pod, not of another of the same name.
pub(crate) async fn patch_status(
    client: &Client,
    pod: &Pod,
    status: Value,
) -> Result<(), kube::Error> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let api: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let patch = Patch::Strategic(json!({
        "metadata": {"uid": pod.metadata.uid},
        "status": status,
    }));
    let params = PatchParams::default();
    api.patch_status(name, &params, &patch).await.map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISRUPTION: Disruption = Disruption {
        reason: "DeletionByTaintManager",
        message: "Taint manager: deleting due to NoExecute taint",
    };

    fn patch(condition: Value) -> Option<Value> {
        let pod = json!({
            "metadata": {"generation": 3},
            "status": {"conditions": [condition]},
        });
        let pod: Pod = serde_json::from_value(pod).unwrap();
        let patch = disruption_patch(&pod, DISRUPTION, Timestamp::from_secs(0))?;
        Some(patch["conditions"].clone())
    }

    #[test]
    fn new_condition_is_last() {
        let pod = json!({"status": {"conditions": [
            {"type": "Ready", "status": "True"},
            {"type": "PodScheduled", "status": "True"},
        ]}});
        let pod: Pod = serde_json::from_value(pod).unwrap();
        let order = |kind: &str| {
            let patch = conditions_patch(&pod, json!({"type": kind, "status": "True"}));
            patch["$setElementOrder/conditions"].clone()
        };
        let [ready, scheduled, own] =
            ["Ready", "PodScheduled", "DisruptionTarget"].map(|kind| json!({"type": kind}));
        assert_eq!(order("DisruptionTarget"), json!([ready, scheduled, own]));
        assert_eq!(order("Ready"), json!([ready, scheduled]));
    }

    #[test]
    fn condition_is_written_once_and_keeps_its_time() {
        let disrupted = |since: &str| {
            json!({
                "type": "DisruptionTarget",
                "status": "True",
                "reason": DISRUPTION.reason,
                "message": DISRUPTION.message,
                "lastTransitionTime": since,
                "observedGeneration": 3,
            })
        };
        let epoch = "1970-01-01T00:00:00Z";
        let fresh = patch(json!({"type": "Ready", "status": "True"}));
        assert_eq!(fresh, Some(json!([disrupted(epoch)])));
        assert_eq!(patch(disrupted(epoch)), None);
        let earlier = "1969-01-01T00:00:00Z";
        let mut other = disrupted(earlier);
        other["reason"] = "EvictionByEvictionAPI".into();
        assert_eq!(patch(other), Some(json!([disrupted(earlier)])));
        let ended = json!({"type": "DisruptionTarget", "status": "False"});
        assert_eq!(patch(ended), Some(json!([disrupted(epoch)])));
    }
}
