//! Dead containers, empty sandboxes and logs of pods that are gone.
//!
//! Matches v1.36 pkg/kubelet/kuberuntime/kuberuntime_gc.go.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_core::admission::node_admit;
use plimsoll_core::eviction::container_gc::{
    Container, ContainerState, Inventory, PodState, Policy, Sandbox, Scope, plan_containers,
    plan_logs, plan_sandboxes,
};
use plimsoll_core::object::identity::PodUid;
use plimsoll_core::object::timestamp::Timestamp;
use plimsoll_core::threshold;
use plimsoll_runtime::wire::{self, ContainerFilter, PodSandboxFilter, PodSandboxState};
use plimsoll_runtime::{Error, Runtime};

use crate::pods::note::reason;
use crate::pods::reports::Report;

/// How often dead containers are collected.
pub const PERIOD: Duration = Duration::from_secs(60);

/// How soon after the start, and after a pod is gone. Those that go together cost one run.
pub const SOON: Duration = Duration::from_secs(1);

/// Why the node ends pods itself.
const GIVEN_UP: [&str; 2] = [node_admit::REASON, reason::PREEMPTING];
const POD_UID: &str = "io.kubernetes.pod.uid";
const CONTAINER_NAME: &str = "io.kubernetes.container.name";

/// A container that was created no longer ago is about to be started.
const STARTS_WITHIN: threshold::Duration = threshold::Duration::from_secs(60);

/// What a run is about.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// Whether the run is periodic or requested by eviction.
    pub scope: Scope,
    /// What is kept.
    pub policy: Policy,
    /// The pods the node knows. They are listed after [`Found::new`], so that nothing is taken
    /// for a leftover because its pod was added meanwhile.
    pub pods: &'a [Report],
    /// Whether these are all of them.
    pub are_all_pods_known: bool,
    /// Where links to the logs of all containers are.
    pub log_links: &'a Path,
    /// The time.
    pub now: Timestamp,
}

/// What a node has of pods, whether they are there or gone.
#[derive(Debug)]
pub struct Found {
    sandboxes: Vec<Sandbox>,
    containers: Vec<wire::Container>,
    log_folders: BTreeMap<PodUid, PathBuf>,
}

impl Found {
    /// Asks the runtime, and looks into the directory of the logs of pods.
    pub async fn new(runtime: &dyn Runtime, pod_logs: &Path) -> Result<Found, Error> {
        let log_folders = log_folders(pod_logs);
        let filter = PodSandboxFilter::default();
        let sandboxes = runtime.list_pod_sandboxes(&filter).await?;
        Ok(Found {
            sandboxes: sandboxes.iter().map(sandbox).collect(),
            containers: runtime.list_containers(&ContainerFilter::default()).await?,
            log_folders,
        })
    }

    /// Removes what is dead. What cannot be removed is left for the next run.
    pub async fn collect(self, runtime: &dyn Runtime, run: Run<'_>) {
        let pods = pod_states(run.pods);
        let logs: Vec<PodUid> = self.log_folders.keys().cloned().collect();
        let containers = self.containers.iter();
        let containers: Vec<_> = containers.map(|c| container(c, run.now)).collect();
        let all = Inventory {
            containers: &containers,
            sandboxes: &self.sandboxes,
            logs: &logs,
            pods: &pods,
            are_all_pods_known: run.are_all_pods_known,
        };
        let mut removed = BTreeSet::new();
        for removal in plan_containers(run.now, run.policy, run.scope, all) {
            let is_stopped = !removal.stop_first
                || succeeded(runtime.stop_container(&removal.id, Duration::ZERO).await);
            if is_stopped && succeeded(runtime.remove_container(&removal.id).await) {
                removed.insert(removal.id);
            }
        }
        let left = containers.iter().filter(|c| !removed.contains(&c.id));
        let left: Vec<Container> = left.cloned().collect();
        let left = Inventory {
            containers: &left,
            ..all
        };
        for id in plan_sandboxes(run.scope, left) {
            succeeded(runtime.stop_pod_sandbox(&id).await);
            succeeded(runtime.remove_pod_sandbox(&id).await);
        }
        for uid in plan_logs(left) {
            if let Some(folder) = self.log_folders.get(&uid)
                && let Err(error) = std::fs::remove_dir_all(folder)
            {
                tracing::warn!(folder = %folder.display(), %error, "failed to remove pod logs");
            }
        }
        if let Err(error) = remove_dead_links(run.log_links) {
            tracing::warn!(folder = %run.log_links.display(), %error, "failed to remove dead log symlinks");
        }
    }
}

/// Removes links to logs that are gone.
fn remove_dead_links(folder: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let link = entry?.path();
        let is_link = link.is_symlink();
        // A link that cannot be read for another reason stays.
        let is_dead = matches!(link.metadata(), Err(e) if e.kind() == io::ErrorKind::NotFound);
        if is_link && is_dead {
            std::fs::remove_file(&link)?;
        }
    }
    Ok(())
}

/// Whether the removal worked; logs the reason if not.
fn succeeded(done: Result<(), Error>) -> bool {
    match done {
        Ok(()) => true,
        Err(error) if error.is_not_found() => true,
        Err(error) => {
            tracing::warn!(
                error = error.chain(),
                "failed to remove dead container or sandbox"
            );
            false
        }
    }
}

/// The state of each pod: one that may run, or whose end is not reported yet, lives. What the node
/// ended to free something keeps nothing, though its object stays.
fn pod_states(pods: &[Report]) -> BTreeMap<PodUid, PodState> {
    let kept = pods.iter().filter(|report| {
        let is_given_up = report.status.reason.as_deref();
        let is_given_up = is_given_up.is_some_and(|reason| GIVEN_UP.contains(&reason));
        !(report.is_finished && is_given_up)
    });
    let states = kept.map(|report| {
        let uid = report.pod.metadata.uid.as_deref().unwrap_or_default();
        let state = match report.is_finished {
            true => PodState::Ended,
            false => PodState::Living,
        };
        (PodUid::new(uid), state)
    });
    states.collect()
}

fn container(listed: &wire::Container, now: Timestamp) -> Container {
    use wire::ContainerState as Listed;
    let created_at = Timestamp::from_nanos(listed.created_at);
    let state = match Listed::try_from(listed.state) {
        Ok(Listed::ContainerRunning) => ContainerState::Running,
        // Counted as dead it would be the newest of them, and the one whose log is still needed
        // would be removed. Upstream does so, which shows less where runs are a minute apart.
        Ok(Listed::ContainerCreated) if now - created_at < STARTS_WITHIN => ContainerState::Running,
        Ok(Listed::ContainerCreated | Listed::ContainerExited) => ContainerState::Stopped,
        Ok(Listed::ContainerUnknown) | Err(_) => ContainerState::Unknown,
    };
    let label = |name| listed.labels.get(name).cloned().unwrap_or_default();
    Container {
        id: listed.id.clone(),
        name: label(CONTAINER_NAME),
        pod: PodUid::new(label(POD_UID)),
        sandbox: listed.pod_sandbox_id.clone(),
        created_at,
        state,
    }
}

fn sandbox(listed: &wire::PodSandbox) -> Sandbox {
    let uid = listed
        .metadata
        .as_ref()
        .map(|metadata| metadata.uid.clone());
    Sandbox {
        id: listed.id.clone(),
        pod: PodUid::new(uid.unwrap_or_default()),
        created_at: Timestamp::from_nanos(listed.created_at),
        is_ready: listed.state == PodSandboxState::SandboxReady as i32,
    }
}

/// Log directories by the pod they are of: `<namespace>_<name>_<uid>`.
fn log_folders(pod_logs: &Path) -> BTreeMap<PodUid, PathBuf> {
    let entries = std::fs::read_dir(pod_logs).into_iter().flatten().flatten();
    let folders = entries.filter_map(|entry| {
        let name = entry.file_name();
        let (_, uid) = name.to_str()?.rsplit_once('_')?;
        Some((PodUid::new(uid), entry.path()))
    });
    folders.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_links_to_nothing_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("file"), "").unwrap();
        std::os::unix::fs::symlink(path("file"), path("alive")).unwrap();
        std::os::unix::fs::symlink(path("gone"), path("dead")).unwrap();
        remove_dead_links(folder.path()).unwrap();
        assert!(path("alive").exists() && path("file").exists());
        assert!(!path("dead").is_symlink());
    }
}
