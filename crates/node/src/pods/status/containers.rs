//! The status of each container.
//!
//! Matches v1.36 pkg/kubelet/kubelet_pods.go, `convertToAPIContainerStatuses`, and
//! pkg/kubelet/prober/prober_manager.go, `UpdatePodStatus`. Departures, all for the better: a
//! container that is gone when its pod ends is not counted as restarted, and readiness that was
//! known before the agent restarted is kept per container.

use k8s_openapi::api::core::v1::{
    Container, ContainerState, ContainerStateRunning, ContainerStateTerminated,
    ContainerStateWaiting, ContainerStatus, VolumeMountStatus,
};
use plimsoll_core::object::timestamp::Timestamp;

use super::{Input, Stage, is_restarting_all, resources};
use crate::pod_fields::{self, Kind};
use crate::pods::observed::{self, State};
use crate::pods::plan::{Health, Verdict, has_created_any_app};
use crate::pods::restart;

/// The reason in the status of containers that were removed so that all start over.
pub(super) const RESTARTING_ALL: &str = "RestartingAllContainers";
/// The reason of an end that was not observed.
pub(super) const UNKNOWN_END: &str = "ContainerStatusUnknown";
const CREATING: &str = "ContainerCreating";
const INITIALIZING: &str = "PodInitializing";
const KILLED_EXIT_CODE: i32 = 137;

/// Statuses of regular containers, by name.
pub(super) fn app(input: Input<'_>) -> Vec<ContainerStatus> {
    let mut statuses = statuses(input, Kind::App);
    statuses.sort_by(|a, b| a.name.cmp(&b.name));
    statuses
}

/// Statuses of init containers and sidecars, in their order.
pub(super) fn init(input: Input<'_>) -> Vec<ContainerStatus> {
    statuses(input, Kind::Init)
}

/// Statuses of ephemeral containers, by name.
pub(super) fn ephemeral(input: Input<'_>) -> Vec<ContainerStatus> {
    let mut statuses = statuses(input, Kind::Ephemeral);
    statuses.sort_by(|a, b| a.name.cmp(&b.name));
    statuses
}

/// Statuses of one list of containers; sidecars stand among init containers.
fn statuses(input: Input<'_>, list: Kind) -> Vec<ContainerStatus> {
    let previous = match list {
        Kind::Init | Kind::Sidecar => &input.previous.init_container_statuses,
        Kind::App => &input.previous.container_statuses,
        Kind::Ephemeral => &input.previous.ephemeral_container_statuses,
    };
    let is_of_list = |kind: Kind| match kind {
        Kind::Sidecar => list == Kind::Init,
        kind => kind == list,
    };
    pod_fields::parts(input.pod)
        .filter(|part| is_of_list(part.kind))
        .map(|part| {
            let mut known = previous.iter().flatten();
            let known = known.find(|known| known.name == part.container.name);
            let mut status = state_of(input, &part.container, known);
            if matches!(part.kind, Kind::Init | Kind::Sidecar) {
                infer_done_init(input, &part.container, &mut status);
            }
            add_start_failure(input, part.kind, &part.container, &mut status);
            add_health(input, part.kind, &part.container, known, &mut status);
            status
        })
        .collect()
}

/// What the runtime says, or what can be concluded from its silence.
fn state_of(
    input: Input<'_>,
    container: &Container,
    known: Option<&ContainerStatus>,
) -> ContainerStatus {
    let all = input.observed.containers.iter();
    let mut own = all.filter(|seen| seen.name == container.name);
    let Some(newest) = own.next() else {
        return state_of_absent(input, container, known);
    };
    let mut status = convert(input, container, newest, known);
    if let Some(before) = own.next() {
        status.last_state = convert(input, container, before, known).state;
    }
    status
}

fn waiting(reason: &str, message: Option<&str>) -> ContainerState {
    ContainerState {
        waiting: Some(ContainerStateWaiting {
            reason: (!reason.is_empty()).then(|| reason.to_owned()),
            message: message.filter(|m| !m.is_empty()).map(str::to_owned),
        }),
        ..ContainerState::default()
    }
}

fn terminated(reason: &str, message: &str) -> ContainerState {
    ContainerState {
        terminated: Some(ContainerStateTerminated {
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
            exit_code: KILLED_EXIT_CODE,
            ..ContainerStateTerminated::default()
        }),
        ..ContainerState::default()
    }
}

fn is_running(status: &ContainerStatus) -> bool {
    let state = status.state.as_ref();
    state.is_some_and(|state| state.running.is_some())
}

fn end_of(state: Option<&ContainerState>) -> Option<&ContainerStateTerminated> {
    state.and_then(|state| state.terminated.as_ref())
}

/// The status of a container of which the runtime has nothing.
fn state_of_absent(
    input: Input<'_>,
    container: &Container,
    known: Option<&ContainerStatus>,
) -> ContainerStatus {
    let default_reason = match pod_fields::init_containers(input.pod) {
        [] => CREATING,
        _ => INITIALIZING,
    };
    let mut status = ContainerStatus {
        name: container.name.clone(),
        image: container.image.clone().unwrap_or_default(),
        state: Some(waiting(default_reason, None)),
        volume_mounts: volume_mounts(container),
        ..ContainerStatus::default()
    };
    let Some(known) = known else {
        return status;
    };
    let was_waiting = known.state.as_ref().is_some_and(|s| s.waiting.is_some());
    if is_restarting_all(input) && !was_waiting {
        let message = "The container is removed because RestartAllContainers in place";
        status.state = Some(waiting(RESTARTING_ALL, Some(message)));
        status.last_state = Some(terminated(RESTARTING_ALL, message));
        status.restart_count = known.restart_count + 1;
        return status;
    }
    if end_of(known.state.as_ref()).is_some() {
        return known.clone();
    }
    status.restart_count = known.restart_count;
    status.last_state.clone_from(&known.last_state);
    if is_running(known) && end_of(known.last_state.as_ref()).is_none() {
        let message = "The container could not be located when the pod was deleted.  The container used to be Running";
        status.last_state = Some(terminated(UNKNOWN_END, message));
        // A pod that is ending starts nothing again.
        let is_ending = pod_fields::is_deleted(input.pod) || input.stage > Stage::Running;
        status.restart_count += i32::from(!is_ending);
    }
    status
}

/// The status of a container the runtime has.
fn convert(
    input: Input<'_>,
    container: &Container,
    seen: &observed::Container,
    known: Option<&ContainerStatus>,
) -> ContainerStatus {
    let id = format!("{}://{}", input.runtime_name, seen.id);
    let restart_count = i32::try_from(seen.restart_count).unwrap_or(i32::MAX);
    let mut status = ContainerStatus {
        name: seen.name.clone(),
        restart_count,
        image: seen.image.clone(),
        image_id: seen.image_ref.clone(),
        container_id: Some(id.clone()),
        volume_mounts: volume_mounts(container),
        ..ContainerStatus::default()
    };
    let known_end = known.and_then(|known| end_of(known.state.as_ref()));
    if let Some(known) = known {
        status.restart_count = restart_count.max(known.restart_count);
        let known_last = known.last_state.as_ref();
        status.last_state = if known.container_id != status.container_id && known_end.is_some() {
            known.state.clone()
        } else {
            end_of(known_last).and(known_last.cloned())
        };
        if known.container_id == status.container_id {
            status.started = known.started;
        }
    }
    status.state = Some(match seen.state {
        State::Running => {
            // Containers that were removed so that all start over leave no count behind.
            if let Some(known) = known
                && known_end.is_some()
                && known.container_id != status.container_id
                && known.restart_count >= restart_count
            {
                status.restart_count = known.restart_count + 1;
            }
            ContainerState {
                running: Some(ContainerStateRunning {
                    started_at: seen.started_at.map(Timestamp::to_api_seconds),
                }),
                ..ContainerState::default()
            }
        }
        State::Created => waiting("", None),
        State::Exited => ContainerState {
            terminated: Some(ContainerStateTerminated {
                exit_code: seen.exit_code,
                reason: Some(seen.reason.clone()).filter(|text| !text.is_empty()),
                message: Some(seen.message.clone()).filter(|text| !text.is_empty()),
                started_at: seen.started_at.map(Timestamp::to_api_seconds),
                finished_at: seen.finished_at.map(Timestamp::to_api_seconds),
                container_id: Some(id),
                signal: None,
            }),
            ..ContainerState::default()
        },
        State::Unknown if known.is_some_and(is_running) => {
            let reason = match is_restarting_all(input) {
                true => RESTARTING_ALL,
                false => UNKNOWN_END,
            };
            let message = "The container could not be located when the pod was terminated";
            terminated(reason, message)
        }
        State::Unknown => waiting("", None),
    });
    resources::add(input, container, seen, known, &mut status);
    status
}

/// Init containers that are done may have been removed; that regular ones exist proves it.
fn infer_done_init(input: Input<'_>, container: &Container, status: &mut ContainerStatus) {
    let is_waiting = status.state.as_ref().is_some_and(|s| s.waiting.is_some());
    let is_gone = input.observed.latest(&container.name).is_none();
    if !pod_fields::is_sidecar(container)
        && is_gone
        && is_waiting
        && has_created_any_app(input.pod, input.observed)
    {
        status.state = Some(ContainerState {
            terminated: Some(ContainerStateTerminated {
                reason: Some("Completed".to_owned()),
                message: Some(
                    "Unable to get init container status from container runtime and pod has been initialized, treat it as exited normally"
                        .to_owned(),
                ),
                ..ContainerStateTerminated::default()
            }),
            ..ContainerState::default()
        });
    }
}

/// A container that is to start but could not is waiting, and its end is its last state.
fn add_start_failure(
    input: Input<'_>,
    kind: Kind,
    container: &Container,
    status: &mut ContainerStatus,
) {
    let end = end_of(status.state.as_ref());
    let is_done_init = matches!(kind, Kind::Init | Kind::Sidecar)
        && end.is_some_and(|end| end.exit_code == 0)
        && (kind == Kind::Init || input.observed.latest(&container.name).is_some());
    if is_done_init || !restart::is_to_start(input.pod, container, input.observed) {
        return;
    }
    let Some(failure) = input.failures.get(&container.name) else {
        return;
    };
    if end.is_some() {
        status.last_state = status.state.take();
    }
    status.state = Some(waiting(failure.reason, Some(&failure.message)));
}

/// Whether the container is started and ready.
fn add_health(
    input: Input<'_>,
    kind: Kind,
    container: &Container,
    known: Option<&ContainerStatus>,
    status: &mut ContainerStatus,
) {
    if kind == Kind::Ephemeral {
        return;
    }
    let known = known.filter(|known| known.container_id == status.container_id);
    let seen = input.observed.latest(&container.name);
    let health = seen.and_then(|seen| input.health.get(&seen.id));
    let health = health.copied().unwrap_or_default();
    let is_running = is_running(status);
    let was_started = known.is_some_and(|known| known.started == Some(true));
    let is_started = is_running && is_started(container, health, was_started);
    status.started = Some(is_started);
    status.ready = match kind {
        Kind::Init => end_of(status.state.as_ref()).is_some_and(|end| end.exit_code == 0),
        _ => is_started && is_ready(container, health, known.is_some_and(|known| known.ready)),
    };
}

fn is_started(container: &Container, health: Health, was_started: bool) -> bool {
    match (health.startup, &container.startup_probe) {
        (Some(verdict), _) => verdict == Verdict::Success,
        (None, Some(_)) => was_started,
        (None, None) => true,
    }
}

fn is_ready(container: &Container, health: Health, was_ready: bool) -> bool {
    match (health.readiness, &container.readiness_probe) {
        (Some(verdict), _) => verdict == Verdict::Success,
        (None, Some(_)) => was_ready,
        (None, None) => true,
    }
}

fn volume_mounts(container: &Container) -> Option<Vec<VolumeMountStatus>> {
    let mounts = container.volume_mounts.as_ref()?;
    let status_of = |mount: &k8s_openapi::api::core::v1::VolumeMount| {
        let is_read_only = mount.read_only == Some(true);
        let mode = match mount.recursive_read_only.as_deref() {
            Some("Enabled") => "Enabled",
            _ => "Disabled",
        };
        VolumeMountStatus {
            name: mount.name.clone(),
            mount_path: mount.mount_path.clone(),
            read_only: is_read_only.then_some(true),
            recursive_read_only: is_read_only.then(|| mode.to_owned()),
            ..VolumeMountStatus::default()
        }
    };
    Some(mounts.iter().map(status_of).collect())
}
