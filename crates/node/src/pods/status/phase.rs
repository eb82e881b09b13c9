//! The phase of a pod, from the statuses of its containers.
//!
//! Matches v1.36 pkg/kubelet/kubelet_pods.go, `getPhase`.

use k8s_openapi::api::core::v1::{
    Container, ContainerStateTerminated, ContainerStatus, Pod, PodStatus,
};

use super::containers::RESTARTING_ALL;
use super::{Input, Stage, find};
use crate::pod_fields;
use crate::pods::restart;

/// Where a container stands.
enum Standing<'a> {
    /// There is no word of it.
    Unknown,
    /// It was never started.
    Waiting,
    /// It runs.
    Running(&'a ContainerStatus),
    /// It has ended, and may be waiting to start again.
    Stopped(&'a ContainerStateTerminated, bool),
}

fn standing<'a>(status: &'a PodStatus, container: &Container) -> Standing<'a> {
    let Some(own) = find(status, &container.name) else {
        return Standing::Unknown;
    };
    let Some(state) = &own.state else {
        return Standing::Unknown;
    };
    let last_end = own.last_state.as_ref().and_then(|s| s.terminated.as_ref());
    if state.running.is_some() {
        Standing::Running(own)
    } else if let Some(ended) = &state.terminated {
        Standing::Stopped(ended, false)
    } else if state.waiting.is_some() {
        last_end.map_or(Standing::Waiting, |ended| Standing::Stopped(ended, true))
    } else {
        Standing::Unknown
    }
}

fn is_restartable(pod: &Pod, container: &Container, ended: &ContainerStateTerminated) -> bool {
    restart::restarts_after(pod, container, ended.exit_code)
        || ended.reason.as_deref() == Some(RESTARTING_ALL)
}

#[derive(Default)]
struct Count {
    pending_init: usize,
    pending_sidecars: usize,
    unknown: usize,
    waiting: usize,
    running: usize,
    stopped: usize,
    stopped_for_good: usize,
    succeeded: usize,
}

/// The phase that containers speak for.
pub(super) fn compute(input: Input<'_>, status: &PodStatus) -> &'static str {
    let pod = input.pod;
    let mut count = Count::default();
    for container in pod_fields::init_containers(pod) {
        if pod_fields::is_sidecar(container) {
            count_sidecar(&mut count, standing(status, container));
        } else if count_init(&mut count, pod, container, status) {
            return "Failed";
        }
    }
    for container in pod_fields::app_containers(pod) {
        match standing(status, container) {
            Standing::Unknown => count.unknown += 1,
            Standing::Waiting => count.waiting += 1,
            Standing::Running(_) => count.running += 1,
            Standing::Stopped(ended, waits) => {
                count.stopped += 1;
                count.stopped_for_good += usize::from(!is_restartable(pod, container, ended));
                count.succeeded += usize::from(!waits && ended.exit_code == 0);
            }
        }
    }
    // Sidecars that start again do not send an initialized pod back to pending.
    let has_initialized = has_active_app(input);
    if count.pending_init > 0
        || count.pending_sidecars > 0 && !has_initialized
        || count.waiting > 0
        || count.unknown > 0
    {
        return "Pending";
    }
    if count.running > 0 {
        return "Running";
    }
    if count.stopped == 0 {
        return "Pending";
    }
    let is_over = input.stage == Stage::Terminated && !pod_fields::is_static(pod);
    match () {
        () if !is_over && count.stopped != count.stopped_for_good => "Running",
        () if count.stopped == count.succeeded => "Succeeded",
        () => "Failed",
    }
}

/// Answers whether the container has failed for good.
fn count_init(count: &mut Count, pod: &Pod, container: &Container, status: &PodStatus) -> bool {
    match standing(status, container) {
        Standing::Stopped(ended, _) if ended.exit_code != 0 => {
            return !is_restartable(pod, container, ended);
        }
        Standing::Stopped(..) => {}
        Standing::Unknown | Standing::Waiting | Standing::Running(_) => count.pending_init += 1,
    }
    false
}

fn count_sidecar(count: &mut Count, standing: Standing<'_>) {
    match standing {
        Standing::Unknown => count.unknown += 1,
        Standing::Waiting => {
            count.pending_sidecars += 1;
            count.waiting += 1;
        }
        Standing::Running(own) => {
            count.pending_sidecars += usize::from(own.started != Some(true));
            count.running += 1;
        }
        // Ended sidecars say nothing about the pod.
        Standing::Stopped(..) => {}
    }
}

/// Whether the sandbox in use has any regular container: then all init containers are done.
fn has_active_app(input: Input<'_>) -> bool {
    let Some(sandbox) = input.observed.active_sandbox() else {
        return false;
    };
    let all = input.observed.containers.iter();
    let mut active = all.filter(|seen| seen.sandbox_id == sandbox.id);
    let apps = pod_fields::app_containers(input.pod);
    active.any(|seen| apps.iter().any(|container| container.name == seen.name))
}
