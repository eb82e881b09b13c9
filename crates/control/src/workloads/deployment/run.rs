//! The loop of deployments.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, PostParams};
use plimsoll_core::object::selector::LabelSelector;
use tokio_util::sync::CancellationToken;

use crate::work_queue::WorkQueue;
use crate::workloads::claiming::{ClaimError, Claimant};
use crate::workloads::control_loop::{self, ControlLoop};
use crate::workloads::owners::{adopters_in, owner_in};
use crate::workloads::ownership::{controller_of, is_claimable, is_controlled_by};
use crate::workloads::writes::{
    WriteError, Writer, failed, is_already_exists, is_namespace_terminating, is_not_found,
    message_of,
};
use crate::workloads::{Options, as_refs};
use plimsoll_client::events::reference;
use plimsoll_client::informer::{Change, Informer, Informers, Key, Subscription};

use super::{
    Action, KIND, View, is_same_template, on_failed_creation, on_hash_collision, reconcile,
};

const COMPONENT: &str = "deployment-controller";

/// Why a pass failed.
#[derive(Debug, thiserror::Error)]
pub enum SyncError {
    /// Sets could not be claimed.
    #[error(transparent)]
    Claim(#[from] ClaimError),
    /// A write failed.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The name of a set is taken by a set with another template.
    #[error("hash collision: replica set {0} exists with another template")]
    Collision(String),
}

struct Controller {
    options: Options,
    deployments: Arc<Informer<Deployment>>,
    sets: Arc<Informer<ReplicaSet>>,
    pods: Arc<Informer<Pod>>,
    writer: Writer,
}

/// Runs the loop until `stop`.
pub async fn run(informers: Arc<Informers>, options: Options, stop: CancellationToken) {
    let workers = options.workers;
    let controller = Controller {
        options,
        deployments: informers.of(),
        sets: informers.of(),
        pods: informers.of(),
        writer: Writer::of(&informers, COMPONENT, &stop),
    };
    control_loop::run(controller, workers, &stop).await;
}

impl ControlLoop for Controller {
    const QUEUE: &'static str = "deployment";
    type Error = SyncError;

    async fn synced(&self) {
        self.deployments.synced().await;
        self.sets.synced().await;
        self.pods.synced().await;
    }

    fn watch(self: &Arc<Self>, queue: &Arc<WorkQueue<Key>>) -> Vec<Subscription> {
        let wake = Arc::clone(queue);
        let of_deployments = self
            .deployments
            .on_change(move |change| wake.add(change.key()));
        let (wake, controller) = (Arc::clone(queue), Arc::clone(self));
        let of_sets = self.sets.on_change(move |change| {
            if let Change::Updated { before, .. } = change {
                // The former owner, if there was another.
                controller
                    .owner_of(before)
                    .into_iter()
                    .for_each(|key| wake.add(key));
            }
            for key in controller.concerned_by(change.object()) {
                wake.add(key);
            }
        });
        let (wake, controller) = (Arc::clone(queue), Arc::clone(self));
        let of_pods = self.pods.on_change(move |change| {
            // Sets do not report a roll-out that waits for old pods to end, since they do not count
            // pods that are terminating.
            if let Change::Deleted(pod) = change
                && let Some(key) = controller.recreated_by(pod)
            {
                wake.add(key);
            }
        });
        vec![of_deployments, of_sets, of_pods]
    }

    async fn sync(&self, key: &Key) -> Result<Option<Duration>, SyncError> {
        let Some(deployment) = self.deployments.get(key) else {
            return Ok(None);
        };
        let selector = deployment.spec.as_ref().map(|spec| &spec.selector);
        let Ok(selector) = LabelSelector::from_api(selector) else {
            return Ok(None);
        };
        let mut candidates = self.sets.in_namespace(&key.namespace);
        candidates.retain(|set| is_claimable(&set.metadata, &deployment.metadata));
        let claimant = Claimant {
            controller: &*deployment,
            kind: KIND,
            selector: &selector,
            finalizer: None,
            writer: &self.writer,
        };
        let sets = claimant.claim(candidates).await?;
        let uids = sets.iter().filter_map(|set| set.metadata.uid.as_deref());
        let pods: Vec<Arc<Pod>> = uids.flat_map(|uid| self.pods.owned_by(uid)).collect();
        let plan = reconcile(View {
            deployment: &deployment,
            sets: &as_refs(&sets),
            pods: &as_refs(&pods),
            now: self.options.clock.now(),
        });
        for action in plan.actions {
            if !self.carry_out(&deployment, action).await? {
                return Ok(None);
            }
        }
        if let Some(changed) = plan.status {
            self.writer
                .replace_status(&*changed)
                .await
                .map_err(failed("status"))?;
        }
        Ok(plan.again_after)
    }
}

impl Controller {
    fn owner_of(&self, set: &ReplicaSet) -> Option<Key> {
        owner_in(&self.deployments, KIND, &set.metadata)
    }

    /// The set's owner; or for a set that has none, all deployments that might adopt it.
    fn concerned_by(&self, set: &ReplicaSet) -> Vec<Key> {
        if controller_of(&set.metadata).is_some() {
            return self.owner_of(set).into_iter().collect();
        }
        let selector =
            |deployment: &Deployment| deployment.spec.as_ref().map(|spec| spec.selector.clone());
        adopters_in(&self.deployments, selector, &set.metadata)
    }

    fn recreated_by(&self, pod: &Pod) -> Option<Key> {
        let reference = controller_of(&pod.metadata)?;
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        let set = self
            .sets
            .get(&Key::new(namespace, reference.name.as_str()))?;
        let key = self.owner_of(&set)?;
        let deployment = self.deployments.get(&key)?;
        let strategy = deployment.spec.as_ref()?.strategy.as_ref()?;
        (strategy.type_.as_deref() == Some("Recreate")).then_some(key)
    }

    /// Returns whether the pass continues.
    async fn carry_out(&self, deployment: &Deployment, action: Action) -> Result<bool, SyncError> {
        let namespace = deployment.metadata.namespace.as_deref().unwrap_or_default();
        let about = reference(deployment);
        let sets = self.writer.api::<ReplicaSet>(namespace);
        let post = PostParams::default();
        let notes = match action {
            Action::Create(set, notes) => {
                if !self.create(deployment, &set).await? {
                    return Ok(false);
                }
                notes
            }
            Action::Update(set, notes) => {
                let name = set.metadata.name.as_deref().unwrap_or_default();
                let written = sets.replace(name, &post, &set).await;
                written.map_err(failed(format!("replica set {name}")))?;
                notes
            }
            Action::Delete(name) => match sets.delete(&name, &DeleteParams::default()).await {
                Err(error) if !is_not_found(&error) => {
                    return Err(failed(format!("deletion of replica set {name}"))(error).into());
                }
                _ => Vec::new(),
            },
            Action::UpdateDeployment(changed, notes) => {
                let name = changed.metadata.name.as_deref().unwrap_or_default();
                let api = self.writer.api::<Deployment>(namespace);
                api.replace(name, &post, &changed)
                    .await
                    .map_err(failed("deployment"))?;
                notes
            }
            Action::RecordEvent(note) => vec![note],
        };
        for note in notes {
            self.writer.record_event(&about, note);
        }
        Ok(true)
    }

    /// Creates the newest set; returns whether it is there now.
    async fn create(&self, deployment: &Deployment, set: &ReplicaSet) -> Result<bool, SyncError> {
        let namespace = deployment.metadata.namespace.as_deref().unwrap_or_default();
        let name = set.metadata.name.as_deref().unwrap_or_default();
        let sets = self.writer.api::<ReplicaSet>(namespace);
        let Err(error) = sets.create(&PostParams::default(), set).await else {
            return Ok(true);
        };
        if is_namespace_terminating(&error) {
            return Ok(false);
        }
        if is_already_exists(&error) {
            let found = sets
                .get(name)
                .await
                .map_err(failed(format!("replica set {name}")))?;
            let wanted = deployment.spec.as_ref().map(|spec| &spec.template);
            let template = found.spec.as_ref().and_then(|spec| spec.template.as_ref());
            let is_same = wanted
                .zip(template)
                .is_some_and(|(a, b)| is_same_template(a, b));
            if is_same && is_controlled_by(&found.metadata, &deployment.metadata) {
                // Made before, and not seen yet; what follows is for the next pass.
                return Ok(false);
            }
            let changed = on_hash_collision(deployment);
            self.writer
                .replace_status(&changed)
                .await
                .map_err(failed("status"))?;
            return Err(SyncError::Collision(name.to_owned()));
        }
        let now = self.options.clock.now();
        let (changed, note) = on_failed_creation(deployment, name, &message_of(&error), now);
        if let Some(changed) = changed
            && let Err(error) = self.writer.replace_status(&changed).await
        {
            tracing::debug!(
                deployment = deployment.metadata.name, %error,
                "failed to update deployment status"
            );
        }
        self.writer.record_event(&reference(deployment), note);
        Err(failed(format!("replica set {name}"))(error).into())
    }
}
