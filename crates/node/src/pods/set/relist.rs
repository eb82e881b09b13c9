//! Watching the runtime.
//!
//! The runtime is listed once for all pods, and only pods that have changed are inspected more
//! closely. A runtime that reports changes is listed at each change, and periodically in case
//! a change was lost; one that does not is listed every second.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use plimsoll_runtime::Error;
use plimsoll_runtime::wire::{ContainerFilter, PodSandboxFilter};
use tokio::sync::watch;
use tokio::time::Instant;

use super::Pods;
use crate::pods::look;
use crate::pods::spec::labels;

/// How often the runtime is listed while pods change, or if it does not report changes.
const PERIOD: Duration = Duration::from_secs(1);
/// How often the runtime is listed if it reports changes and there are none, and how often the agent
/// looks for leftovers of pods.
const QUIET_PERIOD: Duration = Duration::from_secs(60);
/// After so long without a change all is quiet.
const QUIET_AFTER: Duration = Duration::from_secs(5);
/// How often pods that want more resources are tried again.
const RESIZE_PERIOD: Duration = Duration::from_secs(180);
/// The grace period of orphaned pods, in seconds.
const ORPHAN_GRACE_SECS: i64 = 1;

/// The state of each sandbox and container of a pod, by id.
type Seen = BTreeMap<String, i32>;

impl Pods {
    /// Wakes workers when the runtime reports changes of their pods, and stops orphaned pods.
    pub(super) async fn watch_runtime(&self) {
        let mut changes = self.0.shared.runtime.changes();
        let mut known: BTreeMap<String, Seen> = BTreeMap::new();
        let mut last_change = Instant::now();
        let mut resize_due = Instant::now() + RESIZE_PERIOD;
        // What an agent that was killed has left is looked for first.
        let mut sweep_due = Instant::now();
        loop {
            match self.relist().await {
                Ok(seen) => {
                    if self.wake_changed(&known, &seen) {
                        last_change = Instant::now();
                    }
                    let is_due = Instant::now() >= sweep_due && self.table().is_ready();
                    let mut leftovers = BTreeSet::new();
                    if is_due {
                        sweep_due = Instant::now() + QUIET_PERIOD;
                        let known = self.table().entries.keys().cloned().collect();
                        leftovers = self.0.shared.host.leftovers(known).await;
                    }
                    self.stop_orphans(&seen, &leftovers);
                    known = seen;
                }
                Err(error) => tracing::warn!(%error, "failed to list pods of container runtime"),
            }
            self.note_relist();
            if Instant::now() >= resize_due {
                self.retry_resizes(&mut self.table());
                resize_due = Instant::now() + RESIZE_PERIOD;
            }
            let is_quiet = changes.is_some() && last_change.elapsed() > QUIET_AFTER;
            let period = if is_quiet { QUIET_PERIOD } else { PERIOD };
            tokio::select! {
                () = tokio::time::sleep(period) => {}
                is_live = changed(changes.as_mut()) => if !is_live {
                    // No more changes will be reported: poll instead.
                    changes = None;
                },
            }
        }
    }

    async fn relist(&self) -> Result<BTreeMap<String, Seen>, Error> {
        let runtime = &self.0.shared.runtime;
        let mut pods: BTreeMap<String, Seen> = BTreeMap::new();
        let sandboxes = runtime
            .list_pod_sandboxes(&PodSandboxFilter::default())
            .await?;
        for sandbox in sandboxes {
            if let Some(uid) = sandbox.labels.get(labels::POD_UID) {
                let pod = pods.entry(uid.clone()).or_default();
                pod.insert(sandbox.id, sandbox.state);
            }
        }
        let containers = runtime.list_containers(&ContainerFilter::default()).await?;
        for container in containers {
            if let Some(uid) = container.labels.get(labels::POD_UID) {
                let pod = pods.entry(uid.clone()).or_default();
                pod.insert(container.id, container.state);
            }
        }
        Ok(pods)
    }

    /// Wakes the workers of pods of which something has changed; answers whether there were any.
    fn wake_changed(&self, old: &BTreeMap<String, Seen>, new: &BTreeMap<String, Seen>) -> bool {
        let gone = old.keys().filter(|uid| !new.contains_key(*uid));
        let changed = new
            .iter()
            .filter(|(uid, seen)| old.get(*uid) != Some(seen))
            .map(|(uid, _)| uid);
        let mut is_any = false;
        for uid in gone.chain(changed) {
            is_any = true;
            self.wake(uid);
        }
        is_any
    }

    /// Stops the containers of pods that no source has, and removes what is left of them. Their
    /// sandboxes are left to garbage collection.
    fn stop_orphans(&self, seen: &BTreeMap<String, Seen>, leftovers: &BTreeSet<String>) {
        let mut table = self.table();
        if !table.is_ready() {
            return;
        }
        let orphans: BTreeSet<String> = seen
            .keys()
            .chain(leftovers)
            .filter(|uid| !table.entries.contains_key(*uid) && !table.stopping.contains(*uid))
            .cloned()
            .collect();
        for uid in orphans {
            table.stopping.insert(uid.clone());
            let pods = self.clone();
            let is_left = leftovers.contains(&uid);
            self.0.tasks.spawn(async move {
                let (own, orphan) = (pods.clone(), uid.clone());
                let stopping = async move { own.stop_orphan(&orphan, is_left).await };
                match tokio::spawn(stopping).await {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => {
                        tracing::warn!(uid, %error, "failed to stop orphaned pod");
                    }
                    // It is found again by the next look at what is left.
                    Err(error) => tracing::error!(uid, %error, "task that stops pod failed"),
                }
                pods.table().stopping.remove(&uid);
            });
        }
    }

    async fn stop_orphan(&self, uid: &str, is_left: bool) -> Result<(), Error> {
        let runtime = &self.0.shared.runtime;
        let observed = look::look(&**runtime, uid, &Default::default()).await?;
        if observed.is_idle() && !is_left {
            return Ok(());
        }
        tracing::info!(uid, "stopping orphaned pod");
        let grace = Duration::from_secs(u64::try_from(ORPHAN_GRACE_SECS).unwrap_or_default());
        for container in observed.running() {
            let grace = grace.max(crate::pods::worker::MIN_STOP);
            runtime.stop_container(&container.id, grace).await?;
        }
        for sandbox in observed.sandboxes.iter().filter(|sandbox| sandbox.is_ready) {
            runtime.stop_pod_sandbox(&sandbox.id).await?;
        }
        let pod = Pod {
            metadata: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                uid: Some(uid.to_owned()),
                ..Default::default()
            },
            ..Pod::default()
        };
        if let Err(error) = self.0.shared.host.clean_up(&pod).await {
            tracing::warn!(uid, %error, "failed to clean up orphaned pod");
        }
        Ok(())
    }
}

/// Waits for a change, for ever if none is reported; returns whether there may be more.
async fn changed(changes: Option<&mut watch::Receiver<u64>>) -> bool {
    match changes {
        Some(changes) => changes.changed().await.is_ok(),
        None => std::future::pending().await,
    }
}
