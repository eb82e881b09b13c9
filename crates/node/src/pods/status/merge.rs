//! What of a status the API gets to see, and how it is written there.

use k8s_openapi::api::core::v1::{Pod, PodCondition, PodStatus};
use plimsoll_core::object::pod::status::DISRUPTION_TARGET;
use serde_json::{Map, Value, json};

use super::{Timestamp, conditions};
use crate::pod_fields;

/// The status to show, given that the API has `api`.
///
/// A pod is not shown as over while anything of it may run: until then the API keeps its phase.
/// Matches v1.36 pkg/kubelet/status/status_manager.go, `mergePodStatus`.
pub fn for_api(
    pod: &Pod,
    api: &PodStatus,
    computed: &PodStatus,
    may_run: bool,
    now: Timestamp,
) -> PodStatus {
    let mut shown = computed.clone();
    let phase_of = |status: &PodStatus| {
        pod_fields::is_terminal_phase(status.phase.as_deref().unwrap_or_default())
    };
    let becomes_terminal = !phase_of(api) && phase_of(computed);
    let others = api.conditions.iter().flatten();
    let mut merged: Vec<PodCondition> = others
        .filter(|condition| !conditions::is_nodes_own(&condition.type_))
        .cloned()
        .collect();
    for condition in shown.conditions.take().unwrap_or_default() {
        if conditions::is_nodes_own(&condition.type_) {
            merged.push(condition);
        } else if condition.type_ == DISRUPTION_TARGET && becomes_terminal && !may_run {
            merged.retain(|other| other.type_ != DISRUPTION_TARGET);
            merged.push(condition);
        }
    }
    shown.conditions = Some(merged);
    shown
        .resource_claim_statuses
        .clone_from(&api.resource_claim_statuses);
    shown
        .extended_resource_claim_status
        .clone_from(&api.extended_resource_claim_status);
    shown
        .node_allocatable_resource_claim_statuses
        .clone_from(&api.node_allocatable_resource_claim_statuses);
    shown
        .nominated_node_name
        .clone_from(&api.nominated_node_name);
    if becomes_terminal && may_run {
        shown.phase.clone_from(&api.phase);
        shown.reason.clone_from(&api.reason);
        shown.message.clone_from(&api.message);
    }
    if phase_of(&shown) {
        conditions::unready(&mut shown, pod.metadata.generation, now);
    }
    shown
}

/// Fields of the status that only the node writes.
const OWN_FIELDS: [&str; 17] = [
    "allocatedResources",
    "containerStatuses",
    "ephemeralContainerStatuses",
    "hostIP",
    "hostIPs",
    "initContainerStatuses",
    "message",
    "observedGeneration",
    "phase",
    "podIP",
    "podIPs",
    "qosClass",
    "reason",
    "resize",
    "resources",
    "startTime",
    "conditions",
];

/// The strategic merge patch that makes the API show `shown`, for the pod of that uid only; `None`
/// if it does already.
pub fn patch(uid: &str, api: &PodStatus, shown: &PodStatus) -> Option<Value> {
    let as_map = |status: &PodStatus| match serde_json::to_value(status) {
        Ok(Value::Object(map)) => map,
        _ => Map::new(),
    };
    let (old, new) = (as_map(api), as_map(shown));
    let mut changes = Map::new();
    for field in OWN_FIELDS {
        let (had, has) = (old.get(field), new.get(field));
        if had == has {
            continue;
        }
        let value = match (field, has) {
            (_, None) => Value::Null,
            ("conditions", Some(has)) => conditions_patch(had, has),
            ("podIPs", Some(Value::Array(ips))) => {
                // The list is merged by address; an address that is gone must go.
                let replace = std::iter::once(json!({"$patch": "replace"}));
                Value::Array(replace.chain(ips.iter().cloned()).collect())
            }
            (_, Some(has)) => has.clone(),
        };
        changes.insert(field.to_owned(), value);
    }
    (!changes.is_empty()).then(|| json!({"metadata": {"uid": uid}, "status": changes}))
}

/// Conditions are merged by type: send those that differ and take away those that are gone.
fn conditions_patch(had: Option<&Value>, has: &Value) -> Value {
    let list = |value: Option<&Value>| value.and_then(Value::as_array).cloned().unwrap_or_default();
    let (had, has) = (list(had), list(Some(has)));
    let of_type = |list: &[Value], wanted: &Value| {
        let mut own = list.iter().filter(|condition| condition["type"] == *wanted);
        own.next().cloned()
    };
    let changed = has.iter().filter_map(|condition| {
        let before = of_type(&had, &condition["type"]);
        if before.as_ref() == Some(condition) {
            return None;
        }
        let mut sent = condition.clone();
        // Merging would keep what the condition no longer says.
        for gone in before
            .as_ref()
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            if condition.get(gone.0).is_none() {
                sent[gone.0] = Value::Null;
            }
        }
        Some(sent)
    });
    let gone = had.iter().filter(|condition| {
        let kind = condition["type"].as_str().unwrap_or_default();
        conditions::is_nodes_own(kind) && of_type(&has, &condition["type"]).is_none()
    });
    let gone = gone.map(|condition| json!({"$patch": "delete", "type": condition["type"]}));
    Value::Array(changed.chain(gone).collect())
}
