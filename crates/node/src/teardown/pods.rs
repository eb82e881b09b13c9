//! Pods stopped without an agent, by what their containers carry.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::join_all;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use plimsoll_runtime::wire::{ContainerFilter, ContainerState, PodSandbox, PodSandboxFilter};
use plimsoll_runtime::{Error, Runtime};
use tokio::time::Instant;

use crate::pods::hook::Hook;
use crate::pods::observed::{Observed, Sandbox};
use crate::pods::spec::labels::{self, ContainerNotes};
use crate::pods::worker::MIN_STOP;

/// The default grace period of pods, as in Kubernetes.
const DEFAULT_GRACE_SECS: i64 = 30;

/// Which sandboxes of a runtime are the node's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ownership {
    /// All of them: it is the agent's own runtime.
    All,
    /// Those of pods. An agent stops every one of them that it does not know, too.
    Pods,
}

impl Ownership {
    pub(super) fn covers(self, labels: &BTreeMap<String, String>) -> bool {
        self == Ownership::All || labels.contains_key(labels::POD_UID)
    }
}

/// The sandboxes of the node.
pub(super) async fn sandboxes(
    runtime: &dyn Runtime,
    ownership: Ownership,
) -> Result<Vec<PodSandbox>, Error> {
    let mut all = runtime
        .list_pod_sandboxes(&PodSandboxFilter::default())
        .await?;
    all.retain(|sandbox| ownership.covers(&sandbox.labels));
    Ok(all)
}

/// Stops all pods concurrently and removes them. Each has its grace period, or less if
/// `longest` is shorter. Returns the failures.
pub(super) async fn stop_all(
    runtime: &dyn Runtime,
    ownership: Ownership,
    longest: Option<Duration>,
) -> Vec<String> {
    let all = match sandboxes(runtime, ownership).await {
        Ok(all) => all,
        Err(error) => return vec![format!("cannot list pods: {}", error.chain())],
    };
    let stops = all.iter().map(|sandbox| stop(runtime, sandbox, longest));
    let mut problems: Vec<String> = join_all(stops).await.into_iter().flatten().collect();
    problems.extend(remove_strays(runtime, ownership).await);
    problems
}

async fn stop(
    runtime: &dyn Runtime,
    sandbox: &PodSandbox,
    longest: Option<Duration>,
) -> Vec<String> {
    let failed = |doing: &str, error: &Error| {
        let name = pod_name(sandbox);
        format!("cannot {doing} pod {name}: {}", error.chain())
    };
    let mut problems = Vec::new();
    match running(runtime, sandbox).await {
        Ok(containers) => {
            let stops = containers.iter().map(|one| one.stop(runtime, longest));
            let failures = join_all(stops).await.into_iter().filter_map(Result::err);
            problems.extend(failures.map(|error| failed("stop", &error)));
        }
        Err(error) => problems.push(failed("look at", &error)),
    }
    let stopped = runtime.stop_pod_sandbox(&sandbox.id).await;
    let removed = match stopped {
        Ok(()) => runtime.remove_pod_sandbox(&sandbox.id).await,
        Err(error) => Err(error),
    };
    problems.extend(removed.err().map(|error| failed("remove", &error)));
    problems
}

/// Containers whose sandbox is gone.
async fn remove_strays(runtime: &dyn Runtime, ownership: Ownership) -> Vec<String> {
    let listed = runtime.list_containers(&ContainerFilter::default()).await;
    let listed = match listed {
        Ok(listed) => listed,
        Err(error) => return vec![format!("cannot list containers: {}", error.chain())],
    };
    let mut problems = Vec::new();
    for container in listed {
        if !ownership.covers(&container.labels) {
            continue;
        }
        if let Err(error) = runtime.remove_container(&container.id).await {
            let id = &container.id;
            problems.push(format!("cannot remove container {id}: {}", error.chain()));
        }
    }
    problems
}

/// The pod of a sandbox, as kubectl names it.
pub(super) fn pod_name(sandbox: &PodSandbox) -> String {
    let metadata = sandbox.metadata.clone().unwrap_or_default();
    format!("{}/{}", metadata.namespace, metadata.name)
}

/// A container that runs.
struct Running {
    id: String,
    name: String,
    pod: Pod,
    pod_ip: Option<String>,
    notes: ContainerNotes,
}

async fn running(runtime: &dyn Runtime, sandbox: &PodSandbox) -> Result<Vec<Running>, Error> {
    let filter = ContainerFilter {
        pod_sandbox_id: sandbox.id.clone(),
        ..ContainerFilter::default()
    };
    let mut listed = runtime.list_containers(&filter).await?;
    listed.retain(|container| container.state == ContainerState::ContainerRunning as i32);
    if listed.is_empty() {
        return Ok(Vec::new());
    }
    let status = runtime.pod_sandbox_status(&sandbox.id).await?;
    let status = Observed::new(vec![Sandbox::from_wire(&status)], Vec::new());
    let pod_ip = status.ips().first().cloned();
    let metadata = sandbox.metadata.clone().unwrap_or_default();
    let pod = Pod {
        metadata: ObjectMeta {
            name: Some(metadata.name),
            namespace: Some(metadata.namespace),
            uid: Some(metadata.uid),
            ..ObjectMeta::default()
        },
        ..Pod::default()
    };
    let containers = listed.into_iter().map(|container| Running {
        id: container.id,
        name: container
            .metadata
            .map(|metadata| metadata.name)
            .unwrap_or_default(),
        pod: pod.clone(),
        pod_ip: pod_ip.clone(),
        notes: ContainerNotes::from_annotations(&container.annotations),
    });
    Ok(containers.collect())
}

impl Running {
    async fn stop(&self, runtime: &dyn Runtime, longest: Option<Duration>) -> Result<(), Error> {
        let grace = grace(&self.notes, longest);
        if grace.is_zero() {
            return runtime.stop_container(&self.id, Duration::ZERO).await;
        }
        let deadline = Instant::now() + grace;
        self.run_pre_stop(runtime, deadline).await;
        let left = deadline.saturating_duration_since(Instant::now());
        runtime.stop_container(&self.id, left.max(MIN_STOP)).await
    }

    /// As the agent does; a hook that fails keeps no container.
    async fn run_pre_stop(&self, runtime: &dyn Runtime, deadline: Instant) {
        let Some(handler) = &self.notes.pre_stop else {
            return;
        };
        let container = k8s_openapi::api::core::v1::Container {
            name: self.name.clone(),
            ports: Some(self.notes.ports.clone()),
            ..Default::default()
        };
        let hook = Hook {
            pod: &self.pod,
            container: &container,
            id: &self.id,
            pod_ip: self.pod_ip.as_deref(),
        };
        let run = hook.run(handler, runtime, &|_| {});
        if let Ok(Err(error)) = tokio::time::timeout_at(deadline, run).await {
            tracing::debug!(container = self.name, error, "preStop hook failed");
        }
    }
}

/// How long a container may take to stop.
fn grace(notes: &ContainerNotes, longest: Option<Duration>) -> Duration {
    let asked = notes
        .deletion_grace_period_secs
        .or(notes.termination_grace_period_secs);
    let asked = u64::try_from(asked.unwrap_or(DEFAULT_GRACE_SECS)).unwrap_or_default();
    let asked = Duration::from_secs(asked);
    longest.map_or(asked, |longest| asked.min(longest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_get_their_grace_period_up_to_a_bound() {
        let notes = |deletion, termination| ContainerNotes {
            deletion_grace_period_secs: deletion,
            termination_grace_period_secs: termination,
            ..ContainerNotes::default()
        };
        let bound = Some(Duration::from_secs(10));
        for (deletion, termination, longest, expected) in [
            (None, None, None, 30),
            (None, Some(5), None, 5),
            (Some(1), Some(5), None, 1),
            (None, Some(60), bound, 10),
            (None, Some(5), bound, 5),
            (None, Some(-1), None, 0),
        ] {
            let got = grace(&notes(deletion, termination), longest);
            assert_eq!(got, Duration::from_secs(expected));
        }
    }
}
