//! Pods that ended for other reasons than node-pressure eviction: preemption, drain, taints,
//! rejection by their node, OOM kills.

use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStatus, Event, Pod};
use plimsoll_core::eviction::summary::PodStats;
use plimsoll_core::object::pod::status::DISRUPTION_TARGET;
use plimsoll_core::resources::Bytes;
use plimsoll_core::scheduling::preemption::{PREEMPTED_EVENT_REASON, PREEMPTION_CONDITION_REASON};

use crate::text::Unit;

use super::deleted::explain_deletion;
use super::events;
use super::pod::Found;
use super::report::{Ended, OomKilled};

/// The status reason of pods that a node under pressure evicted or rejected.
pub(crate) const EVICTED: &str = "Evicted";
pub(super) const OOM_KILLED: &str = "OOMKilled";
/// The beginning of the status message of pods that a node under pressure rejected.
const REJECTED: &str = "Pod was rejected: ";

/// Whether the pod was evicted after admission, and not rejected.
pub fn is_evicted(pod: &Pod) -> bool {
    let status = pod.status.as_ref();
    let reason = status.and_then(|status| status.reason.as_deref());
    reason == Some(EVICTED) && !message_of(pod).starts_with(REJECTED)
}

/// The message of the pod's status.
pub(crate) fn message_of(pod: &Pod) -> &str {
    let status = pod.status.as_ref();
    status
        .and_then(|status| status.message.as_deref())
        .unwrap_or_default()
}

/// Why the pod ended, from its status or else from its events.
pub(crate) fn explain_end(found: &Found, events: &[Event]) -> Option<Ended> {
    let pod = found.pod.as_ref();
    let status = pod.and_then(|pod| pod.status.as_ref());
    let conditions = status.and_then(|status| status.conditions.as_ref());
    let target = conditions
        .into_iter()
        .flatten()
        .find(|condition| condition.type_ == DISRUPTION_TARGET && condition.status == "True");
    if let Some(target) = target {
        let reason = target.reason.clone().unwrap_or_default();
        let mut why = vec![disruption(&reason).to_owned()];
        if reason == PREEMPTION_CONDITION_REASON {
            why.extend(preempted_by(events));
        }
        return Some(Ended {
            message: target.message.clone().unwrap_or_default(),
            reason,
            why,
        });
    }
    if let Some(pod) = pod.filter(|pod| is_rejected(pod)) {
        let reason = status.and_then(|status| status.reason.clone());
        let reason = reason.unwrap_or_default();
        return Some(Ended {
            why: vec![rejection(&reason)],
            message: message_of(pod).to_owned(),
            reason,
        });
    }
    if pod.is_some_and(|pod| pod.metadata.deletion_timestamp.is_none()) {
        return None;
    }
    if let Some(preempted) = preempted_by(events).filter(|_| pod.is_none()) {
        return Some(Ended {
            reason: PREEMPTION_CONDITION_REASON.to_owned(),
            message: preempted,
            why: vec![disruption(PREEMPTION_CONDITION_REASON).to_owned()],
        });
    }
    explain_deletion(found, events)
}

fn preempted_by(events: &[Event]) -> Option<String> {
    let event = events::latest(events, PREEMPTED_EVENT_REASON)?;
    let by = event.related.as_ref().and_then(|related| {
        let (namespace, name) = (related.namespace.as_ref()?, related.name.as_ref()?);
        Some(format!("By {namespace}/{name}."))
    });
    by.or_else(|| event.message.clone())
}

fn disruption(reason: &str) -> &'static str {
    match reason {
        PREEMPTION_CONDITION_REASON => {
            "The scheduler evicted it to make room for a pod of higher priority."
        }
        "DeletionByTaintManager" => {
            "Its node got a taint that it does not tolerate, or not for longer."
        }
        "EvictionByEvictionAPI" => {
            "A client requested its eviction, as kubectl drain does, and no disruption budget \
             forbade it."
        }
        "DeletionByPodGC" => "Its node is gone.",
        "TerminationByKubelet" => "Its node ended it: it ran short, or was shut down.",
        _ => "It was disrupted.",
    }
}

/// Whether its node rejected the pod: it has failed, and no container was ever started.
fn is_rejected(pod: &Pod) -> bool {
    let Some(status) = &pod.status else {
        return false;
    };
    let has_run = status.container_statuses.iter().flatten().any(has_run);
    let is_failed = status.phase.as_deref() == Some("Failed");
    is_failed && !has_run && status.reason.is_some() && !is_evicted(pod)
}

fn has_run(container: &ContainerStatus) -> bool {
    let state = container.state.as_ref();
    let has_ended = state.and_then(|state| state.terminated.as_ref()).is_some();
    has_ended || container.restart_count > 0
}

fn rejection(reason: &str) -> String {
    match reason {
        EVICTED => "Its node was under pressure and rejected it.".to_owned(),
        "NodeAffinity" | "NodeSelectorMismatching" => {
            "Its node selector or affinity does not match the node that it was bound to.".to_owned()
        }
        "NodeShutdown" | "Terminated" => "Its node was shutting down.".to_owned(),
        "NodePorts" => "A host port that it requests is in use on its node.".to_owned(),
        _ => match reason.strip_prefix("OutOf") {
            Some(resource) => format!(
                "When it came, its node had too little {resource} left. It was bound on old \
                 figures, or by a client that does not look at them. It is not started again; its \
                 owner, if it has one, creates another pod."
            ),
            None => "Its node rejected it.".to_owned(),
        },
    }
}

/// OOM-killed containers.
pub(crate) fn explain_oom(pod: &Pod, usage: Option<&PodStats>) -> Vec<OomKilled> {
    let Some(status) = &pod.status else {
        return Vec::new();
    };
    let init = status.init_container_statuses.iter().flatten();
    let all = status.container_statuses.iter().flatten().chain(init);
    all.filter_map(|container| {
        let killed = killed(container)?;
        Some(oom(pod, container, killed, usage))
    })
    .collect()
}

fn killed(container: &ContainerStatus) -> Option<&ContainerStateTerminated> {
    let states = [&container.state, &container.last_state];
    let ended = states
        .into_iter()
        .filter_map(|state| state.as_ref()?.terminated.as_ref());
    let mut ended = ended.filter(|ended| ended.reason.as_deref() == Some(OOM_KILLED));
    ended.next()
}

fn oom(
    pod: &Pod,
    container: &ContainerStatus,
    killed: &ContainerStateTerminated,
    usage: Option<&PodStats>,
) -> OomKilled {
    let limit = memory_limit(pod, &container.name);
    let usage = usage.and_then(|usage| {
        let mut containers = usage.containers.iter();
        let own = containers.find(|own| own.name == container.name)?;
        let bytes = own.memory.as_ref()?.working_set_bytes?;
        Some(Unit::Bytes.about(i64::try_from(bytes).ok()?))
    });
    let why = match &limit {
        Some(limit) => format!(
            "It wanted more than its limit of {limit}: the kernel killed it, in its own cgroup and \
             for itself alone. Raise the limit, or let it use less."
        ),
        None => "It has no limit of its own: a limit above it, or the node's memory, was \
                 exhausted, and the kernel chose it."
            .to_owned(),
    };
    let at = killed.finished_at.as_ref();
    OomKilled {
        container: container.name.clone(),
        at: at.map(|time| time.0.to_string()),
        limit,
        usage_now: usage,
        restarts: container.restart_count,
        why,
    }
}

fn memory_limit(pod: &Pod, name: &str) -> Option<String> {
    let spec = pod.spec.as_ref()?;
    let init = spec.init_containers.iter().flatten();
    let mut all = spec.containers.iter().chain(init);
    let container = all.find(|container| container.name == name)?;
    let limits = container.resources.as_ref()?.limits.as_ref()?;
    let quantity: plimsoll_core::quantity::Quantity = limits.get("memory")?.0.parse().ok()?;
    Some(Unit::Bytes.about(Bytes::from_quantity(&quantity).0))
}
