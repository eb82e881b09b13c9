//! The state of the pods of an owner, and why some are missing.

use k8s_openapi::api::core::v1::{ContainerStatus, Event, Pod};

use super::events;
use super::report::{API_VERSION, OwnerReport, PodReport, PodRow};

/// The maximum number of events about missing pods.
const EVENTS: usize = 3;

/// A kind whose objects own pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerKind {
    Deployment,
    ReplicaSet,
    StatefulSet,
    DaemonSet,
    Job,
    ReplicationController,
}

impl OwnerKind {
    /// The name of the kind in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            OwnerKind::Deployment => "Deployment",
            OwnerKind::ReplicaSet => "ReplicaSet",
            OwnerKind::StatefulSet => "StatefulSet",
            OwnerKind::DaemonSet => "DaemonSet",
            OwnerKind::Job => "Job",
            OwnerKind::ReplicationController => "ReplicationController",
        }
    }
}

/// Everything that was read of an owner of pods.
#[derive(Clone, Debug)]
pub struct FoundOwner {
    pub kind: OwnerKind,
    pub namespace: String,
    pub name: String,
    /// The desired number of pods.
    pub wanted: i32,
    /// The number of succeeded pods of a Job.
    pub succeeded: i32,
    /// Conditions that report a failure, as texts.
    pub conditions: Vec<String>,
    pub pods: Vec<Pod>,
    /// Events of the owner, and of the ReplicaSets of a Deployment.
    pub events: Vec<Event>,
}

impl FoundOwner {
    /// The pod that is explained: the first that is not ready.
    pub fn first_in_trouble(&self) -> Option<&Pod> {
        let mut pods = self.pods.iter().filter(|pod| !is_fine(pod));
        let first = pods.next()?;
        // A pod that has run has more details than a pending one.
        let mut placed = self.pods.iter().filter(|pod| !is_fine(pod));
        let placed = placed.find(|pod| {
            let spec = pod.spec.as_ref();
            spec.is_some_and(|spec| spec.node_name.is_some())
        });
        Some(placed.unwrap_or(first))
    }
}

/// The whole explanation; `first` is that of [`FoundOwner::first_in_trouble`].
pub fn explain_owner(found: &FoundOwner, first: Option<PodReport>) -> OwnerReport {
    let rows: Vec<PodRow> = found.pods.iter().map(row).collect();
    let ready = rows.iter().filter(|row| row.is_ready).count();
    let wanted = found.wanted;
    let headline = match found.kind {
        OwnerKind::Job => {
            let succeeded = found.succeeded;
            format!("has {succeeded} of {wanted} completions")
        }
        _ => format!("has {ready} of {wanted} pods ready"),
    };
    let is_short = usize::try_from(wanted).unwrap_or(0) > found.pods.len();
    let mut why = found.conditions.clone();
    if is_short {
        why.extend(warnings(&found.events));
    }
    OwnerReport {
        api_version: API_VERSION,
        kind: "OwnerExplanation",
        owner_kind: found.kind.as_str().to_owned(),
        namespace: found.namespace.clone(),
        name: found.name.clone(),
        headline,
        why,
        pods: rows,
        first,
    }
}

/// The latest warnings, each once.
fn warnings(all: &[Event]) -> Vec<String> {
    let mut warnings: Vec<&Event> = all
        .iter()
        .filter(|event| event.type_.as_deref() == Some("Warning"))
        .collect();
    warnings.sort_by_key(|event| std::cmp::Reverse(events::timestamp(event)));
    let texts = warnings.into_iter().map(|event| {
        let reason = event.reason.as_deref().unwrap_or_default();
        let message = event.message.as_deref().unwrap_or_default();
        format!("{reason}: {message}")
    });
    let mut kept: Vec<String> = Vec::new();
    for text in texts {
        if !kept.contains(&text) {
            kept.push(text);
        }
    }
    kept.truncate(EVENTS);
    kept
}

fn row(pod: &Pod) -> PodRow {
    let spec = pod.spec.as_ref();
    PodRow {
        pod: pod.metadata.name.clone().unwrap_or_default(),
        is_ready: is_ready(pod),
        status: status(pod),
        restarts: containers(pod)
            .map(|container| container.restart_count)
            .sum(),
        node: spec.and_then(|spec| spec.node_name.clone()),
    }
}

fn containers(pod: &Pod) -> impl Iterator<Item = &ContainerStatus> {
    let status = pod.status.iter();
    status.flat_map(|status| {
        let init = status.init_container_statuses.iter().flatten();
        init.chain(status.container_statuses.iter().flatten())
    })
}

/// The phase, or the reason of the first container that does not run.
fn status(pod: &Pod) -> String {
    if pod.metadata.deletion_timestamp.is_some() {
        return "Terminating".to_owned();
    }
    let phase = pod.status.as_ref().and_then(|status| status.phase.clone());
    let phase = phase.unwrap_or_else(|| "Unknown".to_owned());
    let mut reasons = containers(pod).filter_map(|container| {
        let state = container.state.as_ref()?;
        let waiting = state.waiting.as_ref().and_then(|one| one.reason.clone());
        let ended = state.terminated.as_ref();
        let ended = ended.filter(|ended| ended.exit_code != 0);
        waiting.or_else(|| ended.and_then(|ended| ended.reason.clone()))
    });
    let own = pod.status.as_ref().and_then(|status| status.reason.clone());
    own.or_else(|| reasons.next()).unwrap_or(phase)
}

fn is_ready(pod: &Pod) -> bool {
    let status = pod.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_ref());
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

fn is_fine(pod: &Pod) -> bool {
    let status = pod.status.as_ref();
    let phase = status.and_then(|status| status.phase.as_deref());
    is_ready(pod) || phase == Some("Succeeded")
}
