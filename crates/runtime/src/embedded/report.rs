//! Sandboxes and containers as CRI describes them.

use std::collections::BTreeMap;

use super::record::SandboxRecord;
use super::spec::sandbox_options;
use super::table::{Container, Phase, Sandbox};
use crate::wire::{
    self, ContainerConfig, ContainerFilter, ContainerResources, ContainerState, ContainerStatus,
    ImageSpec, LinuxPodSandboxStatus, Namespace, PodIp, PodSandbox, PodSandboxConfig,
    PodSandboxFilter, PodSandboxNetworkStatus, PodSandboxState, PodSandboxStatus,
};

/// The name under which a sandbox may be made only once.
pub(super) fn sandbox_name(config: &PodSandboxConfig) -> String {
    let metadata = config.metadata.clone().unwrap_or_default();
    format!(
        "{}_{}_{}_{}",
        metadata.name, metadata.namespace, metadata.uid, metadata.attempt
    )
}

/// The name under which a container may be made only once.
pub(super) fn container_name(config: &ContainerConfig, sandbox: &PodSandboxConfig) -> String {
    let metadata = config.metadata.clone().unwrap_or_default();
    let pod = sandbox.metadata.clone().unwrap_or_default();
    format!(
        "{}_{}_{}_{}_{}",
        metadata.name, pod.name, pod.namespace, pod.uid, metadata.attempt
    )
}

pub(super) fn sandbox(sandbox: &Sandbox) -> PodSandbox {
    PodSandbox {
        id: sandbox.id.clone(),
        metadata: sandbox.config.metadata.clone(),
        state: sandbox_state(sandbox).into(),
        created_at: sandbox.record().created_at,
        labels: sandbox.config.labels.clone(),
        annotations: sandbox.config.annotations.clone(),
        runtime_handler: String::new(),
    }
}

fn sandbox_state(sandbox: &Sandbox) -> PodSandboxState {
    if *sandbox.is_ready.borrow() {
        PodSandboxState::SandboxReady
    } else {
        PodSandboxState::SandboxNotready
    }
}

pub(super) fn sandbox_status(sandbox: &Sandbox) -> PodSandboxStatus {
    let record = sandbox.record();
    PodSandboxStatus {
        id: sandbox.id.clone(),
        metadata: sandbox.config.metadata.clone(),
        state: sandbox_state(sandbox).into(),
        created_at: record.created_at,
        network: Some(network_status(&record)),
        linux: Some(LinuxPodSandboxStatus {
            namespaces: Some(Namespace {
                options: Some(sandbox_options(&sandbox.config)),
            }),
        }),
        labels: sandbox.config.labels.clone(),
        annotations: sandbox.config.annotations.clone(),
        runtime_handler: String::new(),
    }
}

fn network_status(record: &SandboxRecord) -> PodSandboxNetworkStatus {
    let mut ips = record.ips.iter().map(ToString::to_string);
    PodSandboxNetworkStatus {
        ip: ips.next().unwrap_or_default(),
        additional_ips: ips.map(|ip| PodIp { ip }).collect(),
    }
}

pub(super) fn container(container: &Container) -> wire::Container {
    let config = container.config();
    wire::Container {
        id: container.id.clone(),
        pod_sandbox_id: container.record.sandbox.clone(),
        metadata: config.metadata,
        image: config.image,
        image_ref: container.record.image_ref.clone(),
        state: container_state(&container.phase()).into(),
        created_at: container.record.created_at,
        labels: config.labels,
        annotations: config.annotations,
        image_id: container.record.image_id.clone(),
    }
}

fn container_state(phase: &Phase) -> ContainerState {
    match phase {
        Phase::Created => ContainerState::ContainerCreated,
        Phase::Running(_) => ContainerState::ContainerRunning,
        Phase::Exited { .. } => ContainerState::ContainerExited,
    }
}

pub(super) fn container_status(container: &Container) -> ContainerStatus {
    let config = container.config();
    let phase = container.phase();
    let log_path = container.record.log_path.as_ref();
    let mut status = ContainerStatus {
        id: container.id.clone(),
        metadata: config.metadata,
        state: container_state(&phase).into(),
        created_at: container.record.created_at,
        image: config.image.map(user_image),
        image_ref: container.record.image_ref.clone(),
        labels: config.labels,
        annotations: config.annotations,
        mounts: config.mounts,
        log_path: log_path
            .map(|path| path.display().to_string())
            .unwrap_or_default(),
        resources: Some(ContainerResources {
            linux: config.linux.and_then(|linux| linux.resources),
        }),
        image_id: container.record.image_id.clone(),
        ..ContainerStatus::default()
    };
    match phase {
        Phase::Created => {}
        Phase::Running(started) => status.started_at = started.started_at,
        Phase::Exited { started_at, exit } => {
            status.started_at = started_at;
            status.finished_at = exit.finished_at;
            status.exit_code = exit.code;
            status.message = exit.message;
            status.reason = match (exit.reason.as_str(), exit.code) {
                ("", 0) => "Completed".to_owned(),
                ("", _) => "Error".to_owned(),
                (reason, _) => reason.to_owned(),
            };
        }
    }
    status
}

/// The image by the name that the user gave it.
fn user_image(image: ImageSpec) -> ImageSpec {
    match image.user_specified_image.as_str() {
        "" => image,
        name => ImageSpec {
            image: name.to_owned(),
            ..image
        },
    }
}

pub(super) fn matches_sandbox(sandbox: &PodSandbox, filter: &PodSandboxFilter) -> bool {
    sandbox.id.starts_with(&filter.id)
        && filter
            .state
            .is_none_or(|state| state.state == sandbox.state)
        && has_labels(&sandbox.labels, &filter.label_selector)
}

pub(super) fn matches_container(container: &wire::Container, filter: &ContainerFilter) -> bool {
    container.id.starts_with(&filter.id)
        && container.pod_sandbox_id.starts_with(&filter.pod_sandbox_id)
        && filter
            .state
            .is_none_or(|state| state.state == container.state)
        && has_labels(&container.labels, &filter.label_selector)
}

fn has_labels(labels: &BTreeMap<String, String>, wanted: &BTreeMap<String, String>) -> bool {
    wanted
        .iter()
        .all(|(name, value)| labels.get(name) == Some(value))
}
