//! The last status of a pod, when nothing of it is left.
//!
//! Matches v1.36 pkg/kubelet/status/status_manager.go, `TerminatePod`.

use k8s_openapi::api::core::v1::{
    ContainerState, ContainerStateTerminated, ContainerStatus, Pod, PodStatus,
};

use super::containers::UNKNOWN_END;
use crate::pod_fields;

/// Gives every container that may have run an end, and the pod a terminal phase: a container whose end
/// was not observed counts as failed. Static pods keep their phase.
pub fn close(pod: &Pod, status: &mut PodStatus) {
    if has_initialized(pod, status) {
        for own in status.container_statuses.iter_mut().flatten() {
            end(own);
        }
    }
    if let Some(init) = &mut status.init_container_statuses {
        let started = started_prefix(init);
        for own in &mut init[..started] {
            end(own);
        }
    }
    let phase = status.phase.as_deref().unwrap_or_default();
    if !pod_fields::is_static(pod) && !pod_fields::is_terminal_phase(phase) {
        status.phase = Some("Failed".to_owned());
    }
}

fn is_ended(state: Option<&ContainerState>) -> bool {
    state.is_some_and(|state| state.terminated.is_some())
}

fn end(own: &mut ContainerStatus) {
    if is_ended(own.state.as_ref()) {
        return;
    }
    own.ready = false;
    own.started = Some(false);
    own.state = Some(ContainerState {
        terminated: Some(ContainerStateTerminated {
            reason: Some(UNKNOWN_END.to_owned()),
            message: Some(
                "The container could not be located when the pod was terminated".to_owned(),
            ),
            exit_code: 137,
            ..ContainerStateTerminated::default()
        }),
        ..ContainerState::default()
    });
}

/// Whether regular containers were ever to start.
fn has_initialized(pod: &Pod, status: &PodStatus) -> bool {
    let Some(last_init) = pod_fields::init_containers(pod).last() else {
        return true;
    };
    let mut apps = status.container_statuses.iter().flatten();
    let is_waiting =
        |own: &ContainerStatus| own.state.as_ref().is_some_and(|s| s.waiting.is_some());
    if apps.any(|own| is_ended(own.last_state.as_ref()) || !is_waiting(own)) {
        return true;
    }
    let init = status.init_container_statuses.as_deref();
    let Some(own) = init.and_then(<[ContainerStatus]>::last) else {
        return false;
    };
    if pod_fields::is_sidecar(last_init) {
        let is_running = own.state.as_ref().is_some_and(|s| s.running.is_some());
        return is_running && own.started == Some(true);
    }
    [&own.state, &own.last_state].into_iter().any(|state| {
        let ended = state.as_ref().and_then(|state| state.terminated.as_ref());
        ended.is_some_and(|ended| ended.exit_code == 0)
    })
}

/// How many init containers were tried: all but those at the end that only ever waited, and at
/// least one.
fn started_prefix(init: &[ContainerStatus]) -> usize {
    let was_tried = |own: &ContainerStatus| {
        let is_waiting = own.state.as_ref().is_some_and(|s| s.waiting.is_some());
        !is_waiting || is_ended(own.last_state.as_ref())
    };
    let last = init.iter().rposition(was_tried);
    last.map_or(init.len().min(1), |last| last + 1)
}
