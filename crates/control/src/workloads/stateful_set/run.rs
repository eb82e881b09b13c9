//! The loop of stateful sets.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::api::{DeleteParams, PostParams};
use plimsoll_core::object::selector::LabelSelector;
use tokio_util::sync::CancellationToken;

use crate::work_queue::WorkQueue;
use crate::workloads::claiming::{ClaimError, Claimant, PodIndex};
use crate::workloads::control_loop::{self, ControlLoop};
use crate::workloads::expectations::{Expectations, Order as Ordered, TIMEOUT};
use crate::workloads::ownership::{is_claimable, is_selected};
use crate::workloads::pod_owners::PodOwners;
use crate::workloads::pod_state;
use crate::workloads::revision::{create_revision, restored_template};
use crate::workloads::writes::{
    WriteError, Writer, failed, is_already_exists, is_not_found, message_of, slow_start,
};
use crate::workloads::{Options, as_refs};
use plimsoll_client::events::reference;
use plimsoll_client::informer::{Change, Informer, Informers, Key, Subscription};
use plimsoll_core::object::event::Note;

use super::claim::has_claim_named;
use super::identity::name_of;
use super::{
    Action, KIND, Order, Plan, Revision, Step, Update, Verb, View, cleanup, is_status_current,
    ordinal_of, plan, plan_history, snapshot,
};

const COMPONENT: &str = "statefulset-controller";

/// How often the name of a revision is computed anew when it is taken.
const ATTEMPTS: usize = 16;

/// Why a pass failed.
#[derive(Debug, thiserror::Error)]
pub enum SyncError {
    /// Pods or revisions could not be claimed.
    #[error(transparent)]
    Claim(#[from] ClaimError),
    /// A write failed.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A step could not be made.
    #[error("cannot reconcile pod {pod}: {reason}")]
    Step {
        /// The pod.
        pod: String,
        /// Why.
        reason: String,
    },
    /// Every name of the new revision is taken by one with another template.
    #[error("hash collision: revision {0} exists with another template")]
    Collision(String),
    /// A revision does not restore a template.
    #[error("cannot read revision {name}: {source}")]
    Revision {
        /// The revision.
        name: String,
        /// Why.
        source: serde_json::Error,
    },
}

struct Controller {
    options: Options,
    sets: Arc<Informer<StatefulSet>>,
    revisions: Arc<Informer<ControllerRevision>>,
    claims: Arc<Informer<PersistentVolumeClaim>>,
    pods: PodIndex,
    writer: Writer,
    expectations: Arc<Expectations>,
}

/// Runs the loop until `stop`.
pub async fn run(informers: Arc<Informers>, options: Options, stop: CancellationToken) {
    let workers = options.workers;
    let controller = Controller {
        options,
        sets: informers.of(),
        revisions: informers.of(),
        claims: informers.of(),
        pods: PodIndex::new(&informers),
        writer: Writer::of(&informers, COMPONENT, &stop),
        expectations: Arc::default(),
    };
    control_loop::run(controller, workers, &stop).await;
}

/// The revision an update starts from, the new one, and how often its name was taken.
struct History {
    current: Revision,
    update: Revision,
    collisions: i32,
}

impl ControlLoop for Controller {
    const QUEUE: &'static str = "statefulset";
    type Error = SyncError;

    async fn synced(&self) {
        self.sets.synced().await;
        self.revisions.synced().await;
        self.claims.synced().await;
        self.pods.pods().synced().await;
    }

    fn watch(self: &Arc<Self>, queue: &Arc<WorkQueue<Key>>) -> Vec<Subscription> {
        let owners = Arc::new(PodOwners {
            kind: KIND,
            controllers: Arc::clone(&self.sets),
            selector: |set: &StatefulSet| set.spec.as_ref().map(|spec| spec.selector.clone()),
            queue: Arc::clone(queue),
            expectations: Arc::clone(&self.expectations),
            delay: Duration::ZERO,
        });
        let mut subscriptions = Vec::from(owners.watch(self.pods.pods()));
        subscriptions.push(self.watch_claims(queue));
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
        // The watch of pods wakes the set when what was ordered is seen, as a rule.
        if !self.expectations.are_met(key) {
            return Ok(Some(TIMEOUT));
        }
        let claimant = Claimant {
            controller: &*set,
            kind: KIND,
            selector: &selector,
            finalizer: None,
            writer: &self.writer,
        };
        let mut revisions = self.revisions.in_namespace(&key.namespace);
        revisions.retain(|revision| {
            is_selected(&selector, &revision.metadata)
                && is_claimable(&revision.metadata, &set.metadata)
        });
        let revisions = claimant.claim(revisions).await?;
        let uid = set.metadata.uid.as_deref().unwrap_or_default();
        let is_member = |pod: &Pod| ordinal_of(name_of(&set), pod_state::name(pod)).is_some();
        let pods = self.pods.claimable(&key.namespace, uid);
        let pods = claimant.claim_those(pods, is_member).await?;

        let mut revisions = as_refs(&revisions);
        let history = self.ensure_history(&set, &mut revisions).await?;
        let pods = as_refs(&pods);
        let worked = self.work_on(key, &set, &pods, &history).await;
        let live = [history.current.name.as_str(), history.update.name.as_str()];
        let unused = cleanup(&set, &revisions, live, &pods);
        let cleaned = self.clean_up(key, unused).await;
        let again_after = worked?;
        cleaned.map(|()| again_after)
    }
}

impl Controller {
    /// A pod may wait for a claim that is being deleted.
    fn watch_claims(self: &Arc<Self>, queue: &Arc<WorkQueue<Key>>) -> Subscription {
        let (wake, controller) = (Arc::clone(queue), Arc::clone(self));
        self.claims.on_change(move |change| {
            if let Change::Deleted(_) = change {
                let claim = change.key();
                for set in controller.sets.in_namespace(&claim.namespace) {
                    if has_claim_named(&set, &claim.name) {
                        wake.add(Key::of(&set.metadata));
                    }
                }
            }
        })
    }

    async fn work_on(
        &self,
        key: &Key,
        set: &StatefulSet,
        pods: &[&Pod],
        history: &History,
    ) -> Result<Option<Duration>, SyncError> {
        let now = self.options.clock.now();
        let claim = |name: &str| self.claims.get(&Key::new(key.namespace.as_str(), name));
        let plan = plan(View {
            set,
            pods,
            claim: &claim,
            current: &history.current,
            update: &history.update,
            collisions: history.collisions,
            now,
        });
        let Plan {
            order,
            stages,
            status,
        } = plan;
        let carried_out = self.carry_out(key, set, order, stages).await;
        let spec = set.spec.as_ref();
        let min_ready = spec.and_then(|spec| spec.min_ready_seconds).unwrap_or(0);
        let mut again_after = None;
        if min_ready > 0 && status.ready_replicas != status.available_replicas {
            let pods = pods.iter().copied();
            again_after = pod_state::until_next_available(pods, min_ready, now);
        }
        if !is_status_current(set.status.as_ref(), &status) {
            let changed = StatefulSet {
                status: Some(status),
                ..set.clone()
            };
            let written = self.writer.replace_status(&changed).await;
            let written = written.map(drop).map_err(failed("status"));
            carried_out?;
            written?;
        } else {
            carried_out?;
        }
        Ok(again_after)
    }

    async fn carry_out(
        &self,
        key: &Key,
        set: &StatefulSet,
        order: Order,
        stages: Vec<Vec<Step>>,
    ) -> Result<(), SyncError> {
        for stage in stages {
            match order {
                Order::Sequential => {
                    for step in stage {
                        self.make(key, set, step).await?;
                    }
                }
                Order::Parallel => {
                    let (_, error) = slow_start(stage, |step| self.make(key, set, step)).await;
                    error.map_or(Ok(()), Err)?;
                }
            }
        }
        Ok(())
    }

    /// Makes a step, and records an event about it.
    async fn make(&self, key: &Key, set: &StatefulSet, step: Step) -> Result<(), SyncError> {
        let Step { pod, verb, actions } = step;
        let mut result = Ok(());
        let mut is_taken = false;
        for action in actions {
            let is_creation = matches!(action, Action::CreatePod(_));
            if let Err(error) = self.act(key, set, &pod, action).await {
                is_taken = is_creation && error.is_already_exists;
                result = Err(error.reason);
                break;
            }
        }
        // A pod that is there already is one that was not seen yet.
        if let Some(verb) = verb.filter(|_| !is_taken) {
            let note = outcome(verb, &pod, name_of(set), result.as_ref().err());
            self.writer.record_event(&reference(set), note);
        }
        result.map_err(|reason| SyncError::Step { pod, reason })
    }

    async fn act(
        &self,
        key: &Key,
        set: &StatefulSet,
        name: &str,
        action: Action,
    ) -> Result<(), Failure> {
        let (namespace, post) = (key.namespace.as_str(), PostParams::default());
        let claims = self.writer.api::<PersistentVolumeClaim>(namespace);
        let pods = self.writer.api::<Pod>(namespace);
        match action {
            Action::Record(note) => self.writer.record_event(&reference(set), note),
            Action::Fail(reason) => return Err(Failure::other(reason)),
            Action::CreateClaim(claim) => return self.create_claim(set, name, &claim).await,
            Action::UpdateClaim(claim) => {
                let claim_name = claim.metadata.name.as_deref().unwrap_or_default();
                let updated = claims.replace(claim_name, &post, &claim).await;
                updated.map_err(|error| {
                    Failure::other(format!(
                        "could not update claim {claim_name} for delete policy ownerRefs: {}",
                        message_of(&error)
                    ))
                })?;
            }
            Action::CreatePod(pod) => {
                self.expectations.expect_also(key, Ordered::Creation);
                let created = pods.create(&post, &pod).await;
                created.map_err(|error| {
                    self.expectations.created(key, 1);
                    Failure {
                        is_already_exists: is_already_exists(&error),
                        ..Failure::of(&error)
                    }
                })?;
            }
            Action::UpdatePod(pod) => {
                let updated = pods.replace(name, &post, &pod).await;
                updated.map_err(|error| Failure::of(&error))?;
            }
            Action::DeletePod => {
                self.expectations.expect_also(key, Ordered::Deletion(name));
                if let Err(error) = pods.delete(name, &DeleteParams::default()).await {
                    self.expectations.deleted(key, name);
                    if !is_not_found(&error) {
                        return Err(Failure::of(&error));
                    }
                }
            }
        }
        Ok(())
    }

    async fn create_claim(
        &self,
        set: &StatefulSet,
        pod: &str,
        claim: &PersistentVolumeClaim,
    ) -> Result<(), Failure> {
        let namespace = set.metadata.namespace.as_deref().unwrap_or_default();
        let (name, set_name) = (
            claim.metadata.name.as_deref().unwrap_or_default(),
            name_of(set),
        );
        let claims = self.writer.api::<PersistentVolumeClaim>(namespace);
        let about = reference(set);
        match claims.create(&PostParams::default(), claim).await {
            Ok(_) => {
                let message =
                    format!("Create Claim {name} Pod {pod} in StatefulSet {set_name} success");
                self.writer
                    .record_event(&about, Note::normal("SuccessfulCreate", message));
                Ok(())
            }
            // It was made before, and not seen yet.
            Err(error) if is_already_exists(&error) => Ok(()),
            Err(error) => {
                let error = message_of(&error);
                let message = format!(
                    "Create Claim {name} for Pod {pod} in StatefulSet {set_name} failed error: {error}"
                );
                self.writer
                    .record_event(&about, Note::warning("FailedCreate", message));
                Err(Failure::other(format!(
                    "failed to create PVC {name}: {error}"
                )))
            }
        }
    }

    /// Makes the revision of the set's template the latest one.
    async fn ensure_history(
        &self,
        set: &StatefulSet,
        revisions: &mut [&ControllerRevision],
    ) -> Result<History, SyncError> {
        let status = set.status.clone().unwrap_or_default();
        let mut collisions = status.collision_count.unwrap_or(0);
        let update = match plan_history(set, revisions) {
            Update::Found(revision) => revision,
            Update::Renumber(revision) => {
                let key = Key::of(&revision.metadata);
                let api = self.writer.api::<ControllerRevision>(&key.namespace);
                let post = PostParams::default();
                let written = api.replace(&key.name, &post, &revision).await;
                written.map_err(failed("revision"))?
            }
            Update::Create(number) => self.create_revision(set, number, &mut collisions).await?,
        };
        let name = |revision: &ControllerRevision| revision.metadata.name.clone();
        let mut known = revisions.iter();
        let current = known.find(|revision| name(revision) == status.current_revision);
        let current = current.map_or(&update, |current| *current);
        Ok(History {
            current: read(current)?,
            update: read(&update)?,
            collisions,
        })
    }

    async fn create_revision(
        &self,
        set: &StatefulSet,
        number: i64,
        collisions: &mut i32,
    ) -> Result<ControllerRevision, SyncError> {
        let mut taken = String::new();
        for _ in 0..ATTEMPTS {
            let revision = snapshot(set, number, *collisions);
            if let Some(created) = create_revision(&self.writer, &revision).await? {
                return Ok(created);
            }
            *collisions = collisions.saturating_add(1);
            taken = revision.metadata.name.unwrap_or_default();
        }
        Err(SyncError::Collision(taken))
    }

    async fn clean_up(&self, key: &Key, unused: Vec<String>) -> Result<(), SyncError> {
        let api = self.writer.api::<ControllerRevision>(&key.namespace);
        for name in unused {
            match api.delete(&name, &DeleteParams::default()).await {
                Err(error) if !is_not_found(&error) => {
                    return Err(failed("deletion of revision")(error).into());
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Why an action failed.
struct Failure {
    reason: String,
    is_already_exists: bool,
}

impl Failure {
    fn other(reason: String) -> Failure {
        Failure {
            reason,
            is_already_exists: false,
        }
    }

    fn of(error: &kube::Error) -> Failure {
        Failure::other(message_of(error))
    }
}

fn read(revision: &ControllerRevision) -> Result<Revision, SyncError> {
    let name = revision.metadata.name.clone().unwrap_or_default();
    let data = revision.data.clone().unwrap_or_default();
    match restored_template(&data.0) {
        Ok(template) => Ok(Revision { name, template }),
        Err(source) => Err(SyncError::Revision { name, source }),
    }
}

/// The event about a step.
fn outcome(verb: Verb, pod: &str, set: &str, error: Option<&String>) -> Note {
    let (verb, succeeded, failed) = match verb {
        Verb::Create => ("Create", "SuccessfulCreate", "FailedCreate"),
        Verb::Update => ("Update", "SuccessfulUpdate", "FailedUpdate"),
        Verb::Delete => ("Delete", "SuccessfulDelete", "FailedDelete"),
    };
    match error {
        None => {
            let message = format!("{verb} Pod {pod} in StatefulSet {set} successful");
            Note::normal(succeeded, message)
        }
        Some(error) => {
            let message = format!("{verb} Pod {pod} in StatefulSet {set} failed error: {error}");
            Note::warning(failed, message)
        }
    }
}
