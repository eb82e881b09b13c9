//! The loops of ReplicaSets and ReplicationControllers.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetStatus};
use k8s_openapi::api::core::v1::{ObjectReference, Pod, ReplicationController};
use kube::Resource;
use plimsoll_core::object::selector::LabelSelector;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use crate::housekeeping::evicted_pods::wait_before_recreating;
use crate::work_queue::WorkQueue;
use crate::workloads::claiming::{ClaimError, Claimant, PodIndex};
use crate::workloads::control_loop::{self, ControlLoop};
use crate::workloads::expectations::Expectations;
use crate::workloads::ownership::{ControllerKind, controller_of, is_controlled_by};
use crate::workloads::pod_orders::PodOrders;
use crate::workloads::pod_owners::PodOwners;
use crate::workloads::pod_state;
use crate::workloads::pod_template::pod_from_template;
use crate::workloads::writes::{Writer, message_of};
use crate::workloads::{Options, as_refs};
use plimsoll_client::events::reference;
use plimsoll_client::informer::{Informer, Informers, Key, Subscription};

use super::{
    Plan, StatusInput, compute_status, from_replication_controller, is_status_current, plan,
    to_replication_controller_status,
};

/// A kind that keeps a number of pods.
pub trait Replicated:
    Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Clone
    + Debug
    + DeserializeOwned
    + Serialize
    + Send
    + Sync
    + 'static
{
    /// The kind in references to it.
    const KIND: ControllerKind;
    /// The component in events.
    const COMPONENT: &'static str;
    /// Whether its status has the number of pods that are being deleted.
    const REPORTS_TERMINATING: bool;

    /// The same as a ReplicaSet.
    fn as_replica_set(&self) -> ReplicaSet;

    /// The same with another status.
    fn with_status(&self, status: ReplicaSetStatus) -> Self;
}

impl Replicated for ReplicaSet {
    const KIND: ControllerKind = ControllerKind {
        api_version: "apps/v1",
        kind: "ReplicaSet",
    };
    const COMPONENT: &'static str = "replicaset-controller";
    const REPORTS_TERMINATING: bool = true;

    fn as_replica_set(&self) -> ReplicaSet {
        self.clone()
    }

    fn with_status(&self, status: ReplicaSetStatus) -> Self {
        ReplicaSet {
            status: Some(status),
            ..self.clone()
        }
    }
}

impl Replicated for ReplicationController {
    const KIND: ControllerKind = ControllerKind {
        api_version: "v1",
        kind: "ReplicationController",
    };
    const COMPONENT: &'static str = "replication-controller";
    const REPORTS_TERMINATING: bool = false;

    fn as_replica_set(&self) -> ReplicaSet {
        from_replication_controller(self)
    }

    fn with_status(&self, status: ReplicaSetStatus) -> Self {
        ReplicationController {
            status: Some(to_replication_controller_status(status)),
            ..self.clone()
        }
    }
}

/// Why a pass failed.
#[derive(Debug, thiserror::Error)]
pub enum SyncError {
    /// Pods could not be claimed.
    #[error(transparent)]
    Claim(#[from] ClaimError),
    /// Pods could not be made or deleted.
    #[error("{}", message_of(.0))]
    Pods(kube::Error),
    /// The status could not be written.
    #[error("cannot update status: {}", message_of(.0))]
    Status(kube::Error),
}

struct Controller<K> {
    options: Options,
    sets: Arc<Informer<K>>,
    pods: PodIndex,
    writer: Writer,
    expectations: Arc<Expectations>,
}

/// Runs the loop of a kind until `stop`.
pub async fn run<K: Replicated>(
    informers: Arc<Informers>,
    options: Options,
    stop: CancellationToken,
) {
    let workers = options.workers;
    let controller = Controller::<K> {
        options,
        sets: informers.of(),
        pods: PodIndex::new(&informers),
        writer: Writer::of(&informers, K::COMPONENT, &stop),
        expectations: Arc::default(),
    };
    control_loop::run(controller, workers, &stop).await;
}

impl<K: Replicated> ControlLoop for Controller<K> {
    const QUEUE: &'static str = "replicaset";
    type Error = SyncError;

    async fn synced(&self) {
        self.sets.synced().await;
        self.pods.pods().synced().await;
    }

    fn watch(self: &Arc<Self>, queue: &Arc<WorkQueue<Key>>) -> Vec<Subscription> {
        let owners = Arc::new(PodOwners {
            kind: K::KIND,
            controllers: Arc::clone(&self.sets),
            selector: |set: &K| set.as_replica_set().spec.map(|spec| spec.selector),
            queue: Arc::clone(queue),
            expectations: Arc::clone(&self.expectations),
            delay: Duration::ZERO,
        });
        Vec::from(owners.watch(self.pods.pods()))
    }

    async fn sync(&self, key: &Key) -> Result<Option<Duration>, SyncError> {
        let Some(object) = self.sets.get(key) else {
            self.expectations.forget(key);
            return Ok(None);
        };
        let is_due = self.expectations.are_met(key);
        let set = object.as_replica_set();
        let spec = set.spec.clone().unwrap_or_default();
        let Ok(selector) = LabelSelector::from_api(Some(&spec.selector)) else {
            return Ok(None);
        };
        let uid = set.metadata.uid.as_deref().unwrap_or_default();
        let (active, others): (Vec<Arc<Pod>>, Vec<Arc<Pod>>) = self
            .pods
            .claimable(&key.namespace, uid)
            .into_iter()
            .partition(|pod| pod_state::is_active(pod));
        let claimant = Claimant {
            controller: &*object,
            kind: K::KIND,
            selector: &selector,
            finalizer: None,
            writer: &self.writer,
        };
        let active = claimant.claim(active).await?;
        let active = as_refs(&active);
        let terminating = others.iter().filter(|pod| {
            let labels = pod.metadata.labels.clone().unwrap_or_default();
            pod_state::is_terminating(pod)
                && is_controlled_by(&pod.metadata, &set.metadata)
                && selector.matches(&labels)
        });
        let terminating = terminating.count();
        let mut managed = Ok(None);
        if is_due && set.metadata.deletion_timestamp.is_none() {
            managed = self.manage(key, &object, &set, &active).await;
        }
        let now = self.options.clock.now();
        let message = managed.as_ref().err().map(message_of);
        let status = compute_status(StatusInput {
            set: &set,
            active: &active,
            terminating: K::REPORTS_TERMINATING.then_some(terminating),
            failure: message.as_deref(),
            now,
        });
        let min_ready = spec.min_ready_seconds.unwrap_or(0);
        let is_waiting = min_ready > 0 && status.ready_replicas != status.available_replicas;
        if !is_status_current(set.status.as_ref(), &status) {
            let changed = object.with_status(status);
            self.writer
                .replace_status(&changed)
                .await
                .map_err(SyncError::Status)?;
        }
        let wait = managed.map_err(SyncError::Pods)?;
        let pods = active.iter().copied().filter(|_| is_waiting);
        let next = pod_state::until_next_available(pods, min_ready, now);
        Ok(wait.into_iter().chain(next).min())
    }
}

impl<K: Replicated> Controller<K> {
    /// Makes or deletes pods; returns how long to wait if it is too early for that.
    async fn manage(
        &self,
        key: &Key,
        object: &K,
        set: &ReplicaSet,
        active: &[&Pod],
    ) -> Result<Option<Duration>, kube::Error> {
        let replicas = set
            .spec
            .as_ref()
            .and_then(|spec| spec.replicas)
            .unwrap_or(1);
        let sibling_pods = self.sibling_pods(set);
        let now = self.options.clock.now();
        match plan(replicas, active, &as_refs(&sibling_pods), now) {
            Plan::Keep => {}
            Plan::Create(count) => {
                let uid = set.metadata.uid.as_deref().unwrap_or_default();
                let settings = self.options.recreation;
                let wait = wait_before_recreating(self.pods.pods(), uid, settings, now);
                if wait.is_some() {
                    return Ok(wait);
                }
                self.create(key, object, set, count).await?;
            }
            Plan::Delete(pods) => self.delete(key, object, &pods).await?,
        }
        Ok(None)
    }

    /// The pods of all sets of the same owner.
    fn sibling_pods(&self, set: &ReplicaSet) -> Vec<Arc<Pod>> {
        let Some(owner) = controller_of(&set.metadata) else {
            return Vec::new();
        };
        let siblings = self.sets.owned_by(&owner.uid).into_iter();
        let uids = siblings.filter_map(|sibling| sibling.meta().uid.clone());
        uids.flat_map(|uid| self.pods.controlled_by(&uid)).collect()
    }

    async fn create(
        &self,
        key: &Key,
        object: &K,
        set: &ReplicaSet,
        count: usize,
    ) -> Result<(), kube::Error> {
        let template = set
            .spec
            .as_ref()
            .and_then(|spec| spec.template.clone())
            .unwrap_or_default();
        let pod = pod_from_template(&template, K::KIND.reference_to(&set.metadata));
        let about = reference(object);
        self.expectations.expect(key, count, []);
        let orders = self.orders(key, &about);
        let (_, error) = orders.create(vec![(); count], |()| &pod).await;
        error.map_or(Ok(()), Err)
    }

    async fn delete(&self, key: &Key, object: &K, pods: &[&Pod]) -> Result<(), kube::Error> {
        let names = pods.iter().map(|pod| pod_state::name(pod).to_owned());
        let names: Vec<String> = names.collect();
        let about = reference(object);
        self.expectations.expect(key, 0, names.clone());
        let error = self.orders(key, &about).delete(names).await;
        error.map_or(Ok(()), Err)
    }

    fn orders<'a>(&'a self, key: &'a Key, about: &'a ObjectReference) -> PodOrders<'a> {
        PodOrders {
            key,
            about,
            writer: &self.writer,
            expectations: &self.expectations,
        }
    }
}
