//! The loop of daemon sets.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use plimsoll_core::admission::daemon_set::{assign_to_node, create_pod_template};
use plimsoll_core::object::event::Note;
use plimsoll_core::object::identity::NodeName;
use plimsoll_core::object::selector::LabelSelector;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::work_queue::WorkQueue;
use crate::workloads::claiming::{ClaimError, Claimant, PodIndex};
use crate::workloads::control_loop::{self, ControlLoop};
use crate::workloads::expectations::Expectations;
use crate::workloads::ownership::{controller_of, is_claimable, is_controlled_by};
use crate::workloads::pod_orders::PodOrders;
use crate::workloads::pod_owners::PodOwners;
use crate::workloads::pod_state;
use crate::workloads::pod_template::pod_from_template;
use crate::workloads::revision::{REVISION_HASH, create_revision};
use crate::workloads::writes::{WriteError, Writer, failed};
use crate::workloads::{Options, as_refs};
use plimsoll_client::events::reference;
use plimsoll_client::informer::{Change, Informer, Informers, Key, Subscription};

use super::{
    BURST_REPLICAS, FailedPods, Fit, Fitness, KIND, TerminatedPods, Work, cleanup, compute_status,
    is_status_current, manage, placement, plan_history, roll, snapshot,
};

const COMPONENT: &str = "daemonset-controller";

/// Why a pass failed.
#[derive(Debug, thiserror::Error)]
pub enum SyncError {
    /// Pods or revisions could not be claimed.
    #[error(transparent)]
    Claim(#[from] ClaimError),
    /// A write failed.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The name of a revision is taken by one with another template.
    #[error("hash collision: revision {0} exists with another template")]
    Collision(String),
}

struct Controller {
    options: Options,
    sets: Arc<Informer<DaemonSet>>,
    revisions: Arc<Informer<ControllerRevision>>,
    nodes: Arc<Informer<Node>>,
    pods: PodIndex,
    writer: Writer,
    expectations: Arc<Expectations>,
    failed_pods: Mutex<FailedPods>,
}

/// Runs the loop until `stop`.
pub async fn run(informers: Arc<Informers>, options: Options, stop: CancellationToken) {
    let workers = options.workers;
    let controller = Controller {
        options,
        sets: informers.of(),
        revisions: informers.of(),
        nodes: informers.of(),
        pods: PodIndex::new(&informers),
        writer: Writer::of(&informers, COMPONENT, &stop),
        expectations: Arc::default(),
        failed_pods: Mutex::default(),
    };
    control_loop::run(controller, workers, &stop).await;
}

impl ControlLoop for Controller {
    const QUEUE: &'static str = "daemonset";
    type Error = SyncError;

    async fn synced(&self) {
        self.sets.synced().await;
        self.revisions.synced().await;
        self.nodes.synced().await;
        self.pods.pods().synced().await;
    }

    fn watch(self: &Arc<Self>, queue: &Arc<WorkQueue<Key>>) -> Vec<Subscription> {
        let owners = Arc::new(PodOwners {
            kind: KIND,
            controllers: Arc::clone(&self.sets),
            selector: |set: &DaemonSet| set.spec.as_ref().map(|spec| spec.selector.clone()),
            queue: Arc::clone(queue),
            expectations: Arc::clone(&self.expectations),
            delay: Duration::ZERO,
        });
        let mut subscriptions = Vec::from(owners.watch(self.pods.pods()));
        subscriptions.extend(self.watch_others(queue));
        subscriptions
    }

    async fn sync(&self, key: &Key) -> Result<Option<Duration>, SyncError> {
        let Some(set) = self.sets.get(key) else {
            self.expectations.forget(key);
            return Ok(None);
        };
        let spec = set.spec.clone().unwrap_or_default();
        let Ok(selector) = LabelSelector::from_api(Some(&spec.selector)) else {
            return Ok(None);
        };
        if selector.is_empty() {
            let message =
                "This daemon set is selecting all pods. A non-empty selector is required.";
            self.writer
                .record_event(&reference(&*set), Note::warning("SelectingAll", message));
            return Ok(None);
        }
        if set.metadata.deletion_timestamp.is_some() {
            return Ok(None);
        }
        let claimant = Claimant {
            controller: &*set,
            kind: KIND,
            selector: &selector,
            finalizer: None,
            writer: &self.writer,
        };
        let uid = set.metadata.uid.as_deref().unwrap_or_default();
        let pods = claimant
            .claim(self.pods.claimable(&key.namespace, uid))
            .await?;
        let mut revisions = self.revisions.in_namespace(&key.namespace);
        revisions.retain(|revision| is_claimable(&revision.metadata, &set.metadata));
        let revisions = claimant.claim(revisions).await?;
        let (hash, old) = self
            .ensure_history(&set, &as_refs(&revisions), &as_refs(&pods))
            .await?;
        self.work_on(key, &set, &pods, &hash, &old).await
    }
}

impl Controller {
    fn watch_others(self: &Arc<Self>, queue: &Arc<WorkQueue<Key>>) -> [Subscription; 2] {
        let (wake, controller) = (Arc::clone(queue), Arc::clone(self));
        let of_nodes = self.nodes.on_change(move |change| match change {
            Change::Updated { before, after } if !matters(before, after) => {}
            Change::Deleted(_) => {}
            change => controller.wake_for_node(change.object(), &wake),
        });
        let (wake, controller) = (Arc::clone(queue), Arc::clone(self));
        let of_revisions = self.revisions.on_change(move |change| {
            let revision = change.object();
            let namespace = revision.metadata.namespace.as_deref().unwrap_or_default();
            let owner = controller_of(&revision.metadata).filter(|r| KIND.is_named_by(r));
            if let Some(owner) = owner {
                let key = Key::new(namespace, owner.name.as_str());
                if controller.sets.get(&key).is_some() {
                    wake.add(key);
                }
            }
        });
        [of_nodes, of_revisions]
    }

    /// Wakes the sets whose answer for the node may be another than it was.
    fn wake_for_node(&self, node: &Node, queue: &WorkQueue<Key>) {
        let name = node.metadata.name.as_deref().unwrap_or_default();
        let on_node = self.pods.pods().on_node(name);
        for set in self.sets.list() {
            let has_pod = on_node
                .iter()
                .any(|pod| is_controlled_by(&pod.metadata, &set.metadata));
            let misplaced = set
                .status
                .as_ref()
                .map_or(0, |status| status.number_misscheduled);
            let is_concerned = match Fitness::of(&set).on(node) {
                Fit::Run => !has_pod || misplaced > 0,
                Fit::Stay => has_pod && misplaced > 0,
                Fit::Leave => has_pod,
            };
            if is_concerned {
                queue.add(Key::of(&set.metadata));
            }
        }
    }

    async fn work_on(
        &self,
        key: &Key,
        set: &DaemonSet,
        pods: &[Arc<Pod>],
        hash: &str,
        old: &[ControllerRevision],
    ) -> Result<Option<Duration>, SyncError> {
        let nodes = self.nodes.list();
        let nodes = as_refs(&nodes);
        let pods = as_refs(pods);
        let placed = placement(&pods, TerminatedPods::Left);
        let is_due = self.expectations.are_met(key);
        let mut again_after = None;
        let mut result = Ok(());
        if is_due {
            let now = self.options.clock.now();
            let managed = {
                let mut failed = self
                    .failed_pods
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                failed.forget_old(now);
                manage(set, &nodes, &placed, hash, &mut failed, now)
            };
            for note in managed.notes {
                self.writer.record_event(&reference(set), note);
            }
            again_after = managed.again_after;
            result = self.carry_out(key, set, managed.work, hash).await;
            if result.is_ok() && self.expectations.are_met(key) {
                let work = roll(set, &nodes, &placed, hash, now);
                result = self.carry_out(key, set, work, hash).await;
            }
            if result.is_ok() {
                result = self.clean_up(set, old, &pods).await;
            }
        }
        let now = self.options.clock.now();
        let status = compute_status(set, &nodes, &placed, hash, is_due, now);
        let min_ready = set
            .spec
            .as_ref()
            .and_then(|spec| spec.min_ready_seconds)
            .unwrap_or(0);
        if min_ready > 0 && status.number_ready != status.number_available.unwrap_or(0) {
            let next = pod_state::until_next_available(pods.iter().copied(), min_ready, now);
            again_after = again_after.into_iter().chain(next).min();
        }
        if !is_status_current(set.status.as_ref(), &status) {
            let changed = DaemonSet {
                status: Some(status),
                ..set.clone()
            };
            self.writer
                .replace_status(&changed)
                .await
                .map_err(failed("status"))?;
        }
        result.map(|()| again_after)
    }

    /// Makes and deletes pods.
    async fn carry_out(
        &self,
        key: &Key,
        set: &DaemonSet,
        mut work: Work,
        hash: &str,
    ) -> Result<(), SyncError> {
        if work.is_empty() {
            return Ok(());
        }
        work.create.truncate(BURST_REPLICAS);
        work.delete.truncate(BURST_REPLICAS);
        self.expectations
            .expect(key, work.create.len(), work.delete.clone());
        let template = create_pod_template(set, hash);
        let template = pod_from_template(&template, KIND.reference_to(&set.metadata));
        let orders = PodOrders {
            key,
            about: &reference(set),
            writer: &self.writer,
            expectations: &self.expectations,
        };
        let pod_on = |node: String| {
            let mut pod = template.clone();
            assign_to_node(pod.spec.get_or_insert_default(), &NodeName::new(node));
            pod
        };
        let (_, not_created) = orders.create(work.create, pod_on).await;
        let not_deleted = orders.delete(work.delete).await;
        match not_created.or(not_deleted) {
            Some(error) => Err(failed("pods")(error).into()),
            None => Ok(()),
        }
    }

    /// Brings the revisions up to date; answers the hash of the current one, and the others.
    async fn ensure_history(
        &self,
        set: &DaemonSet,
        revisions: &[&ControllerRevision],
        pods: &[&Pod],
    ) -> Result<(String, Vec<ControllerRevision>), SyncError> {
        let namespace = set.metadata.namespace.as_deref().unwrap_or_default();
        let api = self.writer.api::<ControllerRevision>(namespace);
        let plan = plan_history(set, revisions);
        for revision in &plan.update {
            let name = revision.metadata.name.as_deref().unwrap_or_default();
            let written = api.replace(name, &PostParams::default(), revision).await;
            written.map_err(failed("revision"))?;
        }
        let current = match plan.current {
            Some(current) => current,
            None => {
                self.create_revision(set, snapshot(set, plan.revision))
                    .await?
            }
        };
        let hash = current
            .metadata
            .labels
            .and_then(|mut labels| labels.remove(REVISION_HASH));
        let hash = hash.unwrap_or_default();
        if !plan.duplicates.is_empty() {
            self.relabel(namespace, pods, &hash).await?;
            for name in &plan.duplicates {
                let deleted = api.delete(name, &DeleteParams::default()).await;
                deleted.map_err(failed("deletion of revision"))?;
            }
        }
        Ok((hash, plan.old))
    }

    async fn create_revision(
        &self,
        set: &DaemonSet,
        revision: ControllerRevision,
    ) -> Result<ControllerRevision, SyncError> {
        if let Some(created) = create_revision(&self.writer, &revision).await? {
            return Ok(created);
        }
        let namespace = set.metadata.namespace.as_deref().unwrap_or_default();
        let sets = self.writer.api::<DaemonSet>(namespace);
        let set_name = set.metadata.name.as_deref().unwrap_or_default();
        let mut current = sets.get(set_name).await.map_err(failed("daemon set"))?;
        let status = current.status.get_or_insert_default();
        let known = set
            .status
            .as_ref()
            .and_then(|status| status.collision_count);
        if status.collision_count == known {
            status.collision_count = Some(known.unwrap_or(0).saturating_add(1));
            self.writer
                .replace_status(&current)
                .await
                .map_err(failed("status"))?;
        }
        let name = revision.metadata.name.unwrap_or_default();
        Err(SyncError::Collision(name))
    }

    async fn relabel(&self, namespace: &str, pods: &[&Pod], hash: &str) -> Result<(), SyncError> {
        let api = self.writer.api::<Pod>(namespace);
        let patch = Patch::Merge(json!({"metadata": {"labels": {REVISION_HASH: hash}}}));
        for pod in pods
            .iter()
            .filter(|pod| pod_state::label(pod, REVISION_HASH) != Some(hash))
        {
            let patched = api
                .patch(pod_state::name(pod), &PatchParams::default(), &patch)
                .await;
            patched.map_err(failed("label of pod"))?;
        }
        Ok(())
    }

    async fn clean_up(
        &self,
        set: &DaemonSet,
        old: &[ControllerRevision],
        pods: &[&Pod],
    ) -> Result<(), SyncError> {
        let limit = set
            .spec
            .as_ref()
            .and_then(|spec| spec.revision_history_limit)
            .unwrap_or(10);
        let namespace = set.metadata.namespace.as_deref().unwrap_or_default();
        let api = self.writer.api::<ControllerRevision>(namespace);
        for name in cleanup(limit, old, pods) {
            let deleted = api.delete(&name, &DeleteParams::default()).await;
            deleted.map_err(failed("deletion of revision"))?;
        }
        Ok(())
    }
}

/// Whether a change of a node can change where pods should run.
fn matters(before: &Node, after: &Node) -> bool {
    let taints = |node: &Node| node.spec.as_ref().and_then(|spec| spec.taints.clone());
    before.metadata.labels != after.metadata.labels || taints(before) != taints(after)
}
