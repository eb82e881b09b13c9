//! The conditions of a pod.
//!
//! Matches v1.36 pkg/kubelet/status/generate.go.

use k8s_openapi::api::core::v1::{PodCondition, PodStatus};
use plimsoll_core::object::pod::status::{DISRUPTION_TARGET, set_condition};

use super::{Input, all_containers, find, is_restarting_all, known_disruption};
use crate::pod_fields;
use crate::pods::plan::compute_sandbox;
use crate::pods::restart;

pub(super) const SCHEDULED: &str = "PodScheduled";
pub(super) const READY_TO_START: &str = "PodReadyToStartContainers";
pub(super) const INITIALIZED: &str = "Initialized";
pub(super) const CONTAINERS_READY: &str = "ContainersReady";
pub(super) const READY: &str = "Ready";
pub(super) const RESIZE_PENDING: &str = "PodResizePending";
pub(super) const RESIZE_IN_PROGRESS: &str = "PodResizeInProgress";
pub(super) const ALL_RESTARTING: &str = "AllContainersRestarting";

/// Whether the node alone writes conditions of that type.
pub(super) fn is_nodes_own(condition_type: &str) -> bool {
    [
        SCHEDULED,
        READY_TO_START,
        INITIALIZED,
        CONTAINERS_READY,
        READY,
        RESIZE_PENDING,
        RESIZE_IN_PROGRESS,
        ALL_RESTARTING,
    ]
    .contains(&condition_type)
}

/// What a condition says, before it has times.
struct Said {
    status: bool,
    reason: &'static str,
    message: String,
}

impl Said {
    fn yes() -> Said {
        Said {
            status: true,
            reason: "",
            message: String::new(),
        }
    }

    fn no(reason: &'static str, message: impl Into<String>) -> Said {
        Said {
            status: false,
            reason,
            message: message.into(),
        }
    }
}

/// Sets all conditions: those of others as they are, then the node's own.
pub(super) fn set(input: Input<'_>, status: &mut PodStatus) {
    // A disruption just begun was put there with the phase.
    let begun = status.conditions.take().unwrap_or_default();
    let api = input.pod.status.as_ref();
    let others = api.and_then(|status| status.conditions.as_deref());
    let others = others.unwrap_or_default().iter();
    let mut conditions: Vec<PodCondition> = others
        .filter(|condition| !is_nodes_own(&condition.type_))
        .cloned()
        .collect();
    conditions.extend(input.resize.iter().cloned());
    let disruption = begun.into_iter().next().or_else(|| known_disruption(input));
    if let Some(mut disruption) = disruption {
        if let Some(known) = known_disruption(input)
            && known.status == disruption.status
        {
            disruption.last_transition_time = known.last_transition_time;
        }
        conditions.retain(|condition| condition.type_ != DISRUPTION_TARGET);
        conditions.push(disruption);
    }
    status.conditions = Some(conditions);

    let containers_ready = containers_ready(input, status);
    let ready = ready(input, status, &containers_ready);
    let mut own = vec![
        (READY_TO_START, ready_to_start(input)),
        (INITIALIZED, initialized(input, status)),
        (READY, ready),
        (CONTAINERS_READY, containers_ready),
        (SCHEDULED, Said::yes()),
    ];
    if restart::could_restart_all(input.pod) {
        own.push((ALL_RESTARTING, all_restarting(input, status)));
    }
    for (condition_type, said) in own {
        let mut condition = condition(input, condition_type, &said);
        let previous = input.previous.conditions.iter().flatten();
        let mut same_type = previous.filter(|previous| previous.type_ == condition_type);
        condition.last_transition_time = match same_type.next() {
            Some(known) if known.status == condition.status => known.last_transition_time.clone(),
            _ => Some(input.now.to_api_seconds()),
        };
        status.conditions.get_or_insert_default().push(condition);
    }
}

fn condition(input: Input<'_>, condition_type: &str, said: &Said) -> PodCondition {
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    PodCondition {
        type_: condition_type.to_owned(),
        status: if said.status { "True" } else { "False" }.to_owned(),
        reason: text(said.reason),
        message: text(&said.message),
        observed_generation: input.pod.metadata.generation,
        ..PodCondition::default()
    }
}

/// Containers can be started once there is a sandbox with a network.
fn ready_to_start(input: Input<'_>) -> Said {
    Said {
        status: !compute_sandbox(input.pod, input.observed).is_new,
        ..Said::yes()
    }
}

fn initialized(input: Input<'_>, status: &PodStatus) -> Said {
    let (mut unknown, mut incomplete) = (Vec::new(), Vec::new());
    for container in pod_fields::init_containers(input.pod) {
        match find(status, &container.name) {
            None => unknown.push(container.name.as_str()),
            Some(own) => {
                let is_done = match pod_fields::is_sidecar(container) {
                    true => own.started == Some(true),
                    false => own.ready,
                };
                if !is_done {
                    incomplete.push(container.name.as_str());
                }
            }
        }
    }
    if status.phase.as_deref() == Some("Succeeded") && unknown.is_empty() {
        return Said {
            reason: "PodCompleted",
            ..Said::yes()
        };
    }
    // Once a regular container has run, sidecars that start again do not undo it.
    let has_started_app = pod_fields::app_containers(input.pod)
        .iter()
        .any(|container| {
            let state = find(status, &container.name).and_then(|own| own.state.as_ref());
            state.is_some_and(|state| state.running.is_some() || state.terminated.is_some())
        });
    let was_initialized = || {
        let mut previous = input.previous.conditions.iter().flatten();
        previous.any(|known| known.type_ == INITIALIZED && known.status == "True")
    };
    let message = listed(&[
        ("containers with unknown status", &unknown),
        ("containers with incomplete status", &incomplete),
    ]);
    if has_started_app || message.is_empty() || was_initialized() {
        return Said::yes();
    }
    Said::no("ContainersNotInitialized", message)
}

fn containers_ready(input: Input<'_>, status: &PodStatus) -> Said {
    let (mut unknown, mut unready) = (Vec::new(), Vec::new());
    let sidecars = pod_fields::init_containers(input.pod).iter();
    let sidecars = sidecars.filter(|container| pod_fields::is_sidecar(container));
    for container in sidecars.chain(pod_fields::app_containers(input.pod)) {
        match find(status, &container.name) {
            None => unknown.push(container.name.as_str()),
            Some(own) if !own.ready => unready.push(container.name.as_str()),
            Some(_) => {}
        }
    }
    match status.phase.as_deref() {
        Some("Succeeded") if unknown.is_empty() => return Said::no("PodCompleted", ""),
        Some("Failed") => return Said::no("PodFailed", ""),
        _ => {}
    }
    if all_containers(status).next().is_none() {
        return Said::no("UnknownContainerStatuses", "");
    }
    let message = listed(&[
        ("containers with unknown status", &unknown),
        ("containers with unready status", &unready),
    ]);
    if message.is_empty() {
        return Said::yes();
    }
    Said::no("ContainersNotReady", message)
}

/// The pod is ready if its containers are and all gates are open.
fn ready(input: Input<'_>, status: &PodStatus, containers_ready: &Said) -> Said {
    if !containers_ready.status {
        return Said::no(containers_ready.reason, containers_ready.message.clone());
    }
    let gates = pod_fields::spec(input.pod).and_then(|spec| spec.readiness_gates.as_deref());
    let closed: Vec<String> = gates
        .unwrap_or_default()
        .iter()
        .filter_map(|gate| {
            let gate = &gate.condition_type;
            let mut all = status.conditions.iter().flatten();
            match all.find(|condition| condition.type_ == *gate) {
                None => Some(format!(
                    "corresponding condition of pod readiness gate {gate:?} does not exist."
                )),
                Some(condition) if condition.status != "True" => Some(format!(
                    "the status of pod readiness gate {gate:?} is not \"True\", but {}",
                    condition.status
                )),
                Some(_) => None,
            }
        })
        .collect();
    if closed.is_empty() {
        return Said::yes();
    }
    Said::no("ReadinessGatesNotReady", closed.join(", "))
}

fn all_restarting(input: Input<'_>, status: &PodStatus) -> Said {
    match status.phase.as_deref() {
        Some("Succeeded") => return Said::no("PodCompleted", ""),
        Some("Failed") => return Said::no("PodFailed", ""),
        _ => {}
    }
    let init = pod_fields::init_containers(input.pod).iter();
    let mut all = init.chain(pod_fields::app_containers(input.pod));
    let is_any_left = all.any(|container| input.observed.latest(&container.name).is_some());
    if !is_restarting_all(input) || !is_any_left {
        return Said::no("", "");
    }
    Said {
        reason: "RestartAllContainersStarted",
        message: "container exited with restart policy rule".to_owned(),
        ..Said::yes()
    }
}

/// `what: [a b], other: [c]`, as Go prints lists; empty if all lists are.
fn listed(groups: &[(&str, &[&str])]) -> String {
    let filled = groups.iter().filter(|(_, names)| !names.is_empty());
    let texts: Vec<String> = filled
        .map(|(what, names)| format!("{what}: [{}]", names.join(" ")))
        .collect();
    texts.join(", ")
}

/// A ready condition that says no, for a pod that is over; where it says yes.
pub(super) fn unready(status: &mut PodStatus, generation: Option<i64>, now: super::Timestamp) {
    let reason = match status.phase.as_deref() {
        Some("Succeeded") => "PodCompleted",
        _ => "PodFailed",
    };
    let mut conditions = status.conditions.iter().flatten();
    let is_ready = conditions
        .any(|c| [READY, CONTAINERS_READY].contains(&c.type_.as_str()) && c.status == "True");
    if !is_ready {
        return;
    }
    for condition_type in [CONTAINERS_READY, READY] {
        let condition = PodCondition {
            type_: condition_type.to_owned(),
            status: "False".to_owned(),
            reason: Some(reason.to_owned()),
            observed_generation: generation,
            ..PodCondition::default()
        };
        set_condition(status, condition, now);
    }
}
