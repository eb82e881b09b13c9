//! The loop of jobs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::batch::v1::{Job, JobStatus};
use k8s_openapi::api::core::v1::{ObjectReference, Pod};
use plimsoll_core::object::event::Note;
use plimsoll_core::object::selector::LabelSelector;
use tokio_util::sync::CancellationToken;

use crate::work_queue::WorkQueue;
use crate::workloads::claiming::{ClaimError, Claimant, PodIndex};
use crate::workloads::control_loop::{self, ControlLoop};
use crate::workloads::expectations::Expectations;
use crate::workloads::ownership::controller_of;
use crate::workloads::pod_orders::PodOrders;
use crate::workloads::pod_owners::PodOwners;
use crate::workloads::pod_state;
use crate::workloads::writes::{WriteError, Writer, failed, for_all, is_not_found};
use crate::workloads::{Options, as_refs};
use plimsoll_client::events::reference;
use plimsoll_client::informer::{Change, Informer, Informers, Key, Subscription};

use super::{
    Accounting, BackOff, Done, KIND, PodWork, TRACKING_FINALIZER, View, has_unknown_mode,
    is_finished, is_managed_elsewhere, is_tracked, plan, release_patch,
};

const COMPONENT: &str = "job-controller";
/// Changes of pods are gathered for so long, because each pass may write the status twice.
const SYNC_POD_BATCH_PERIOD: Duration = Duration::from_secs(1);

/// Why a pass failed.
#[derive(Debug, thiserror::Error)]
pub enum SyncError {
    /// Pods could not be claimed.
    #[error(transparent)]
    Claim(#[from] ClaimError),
    /// A write failed.
    #[error(transparent)]
    Write(#[from] WriteError),
}

struct Controller {
    options: Options,
    jobs: Arc<Informer<Job>>,
    pods: PodIndex,
    writer: Writer,
    expectations: Arc<Expectations>,
    memory: Mutex<BTreeMap<Key, Memory>>,
    /// Pods whose finalizer no job will remove.
    abandoned: Arc<WorkQueue<Key>>,
}

/// The state of a job that is kept between passes.
#[derive(Clone, Debug, Default)]
struct Memory {
    back_off: BackOff,
    /// Uids of pods whose finalizer was removed, which may not be seen yet.
    released: BTreeSet<String>,
    /// The uid of the job that was ended, which may not be seen yet.
    ended: Option<String>,
}

/// Runs the loop until `stop`.
pub async fn run(informers: Arc<Informers>, options: Options, stop: CancellationToken) {
    let workers = options.workers;
    let controller = Controller {
        options,
        jobs: informers.of(),
        pods: PodIndex::new(&informers),
        writer: Writer::of(&informers, COMPONENT, &stop),
        expectations: Arc::default(),
        memory: Mutex::default(),
        abandoned: WorkQueue::new("job_orphan_pod"),
    };
    control_loop::run(controller, workers, &stop).await;
}

impl ControlLoop for Controller {
    const QUEUE: &'static str = "job";
    type Error = SyncError;

    async fn synced(&self) {
        self.jobs.synced().await;
        self.pods.pods().synced().await;
    }

    fn watch(self: &Arc<Self>, queue: &Arc<WorkQueue<Key>>) -> Vec<Subscription> {
        let owners = Arc::new(PodOwners {
            kind: KIND,
            controllers: Arc::clone(&self.jobs),
            selector: |job: &Job| job.spec.as_ref().and_then(|spec| spec.selector.clone()),
            queue: Arc::clone(queue),
            expectations: Arc::clone(&self.expectations),
            delay: SYNC_POD_BATCH_PERIOD,
        });
        let mut subscriptions = Vec::from(owners.watch(self.pods.pods()));
        subscriptions.extend(self.watch_abandoned(&owners));
        subscriptions
    }

    async fn sync(&self, key: &Key) -> Result<Option<Duration>, SyncError> {
        let Some(job) = self.jobs.get(key) else {
            self.expectations.forget(key);
            self.memory().remove(key);
            return Ok(None);
        };
        if is_managed_elsewhere(&job) {
            return Ok(None);
        }
        if is_finished(&job) {
            self.memory().remove(key);
            return Ok(None);
        }
        let memory = self.memory().get(key).cloned().unwrap_or_default();
        if memory.ended.is_some() && memory.ended == job.metadata.uid {
            return Ok(None);
        }
        if has_unknown_mode(&job) {
            let message = "Skipped Job sync because completion mode is unknown";
            self.writer.record_event(
                &reference(&*job),
                Note::warning("UnknownCompletionMode", message),
            );
            return Ok(None);
        }
        let expectations_are_met = self.expectations.are_met(key);
        let selector = job.spec.as_ref().and_then(|spec| spec.selector.as_ref());
        let Ok(selector) = LabelSelector::from_api(selector) else {
            return Ok(None);
        };
        let claimant = Claimant {
            controller: &*job,
            kind: KIND,
            selector: &selector,
            finalizer: Some(TRACKING_FINALIZER),
            writer: &self.writer,
        };
        let uid = job.metadata.uid.as_deref().unwrap_or_default();
        let pods = claimant
            .claim(self.pods.claimable(&key.namespace, uid))
            .await?;
        let pods = as_refs(&pods);
        let sync = plan(View {
            job: &job,
            pods: &pods,
            expectations_are_met,
            released: &memory.released,
            back_off: memory.back_off,
            now: self.options.clock.now(),
        });
        let again_after = sync.again_after;
        let (done, work_error) = self.carry_out(key, &job, &sync.work).await;
        self.account(key, &job, sync.conclude(done)).await?;
        work_error.map_or(Ok(again_after), |error| Err(failed("pods")(error).into()))
    }

    async fn run_beside(self: &Arc<Self>) {
        let (queue, releaser) = (Arc::clone(&self.abandoned), Arc::clone(self));
        let release = move |key: Key| {
            let controller = Arc::clone(&releaser);
            async move { controller.release_abandoned(&key).await.map(|()| None) }
        };
        queue.work(self.options.workers, release).await;
    }
}

impl Controller {
    /// Records finalizers that are gone, and pods that no job will count any more.
    fn watch_abandoned(self: &Arc<Self>, owners: &Arc<PodOwners<Job>>) -> [Subscription; 2] {
        let (controller, owners) = (Arc::clone(self), Arc::clone(owners));
        let queue = Arc::clone(&self.abandoned);
        let of_pods = self.pods.pods().on_change(move |change| {
            let pod = change.object();
            let is_gone = matches!(change, Change::Deleted(_));
            let job = owners.owner_of(pod);
            if is_gone || !is_tracked(pod) {
                let mut memory = controller.memory();
                if let Some(memory) = job.and_then(|key| memory.get_mut(&key)) {
                    memory.released.remove(pod_state::uid(pod));
                }
            } else if controller.is_abandoned(pod) {
                queue.add(change.key());
            }
        });
        let (controller, queue) = (Arc::clone(self), Arc::clone(&self.abandoned));
        let of_jobs = self.jobs.on_change(move |change| {
            let job = change.object();
            let is_gone = matches!(change, Change::Deleted(_));
            if is_gone {
                controller.memory().remove(&change.key());
            }
            if is_gone || is_finished(job) {
                let uid = job.metadata.uid.as_deref().unwrap_or_default();
                let pods = controller.pods.controlled_by(uid).into_iter();
                for pod in pods.filter(|pod| is_tracked(pod)) {
                    queue.add(Key::of(&pod.metadata));
                }
            }
        });
        [of_pods, of_jobs]
    }

    /// Held only between awaits, and what it protects is whole after each of its methods.
    fn memory(&self) -> MutexGuard<'_, BTreeMap<Key, Memory>> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a tracked pod has no job that would remove its finalizer.
    fn is_abandoned(&self, pod: &Pod) -> bool {
        let Some(reference) = controller_of(&pod.metadata) else {
            return is_tracked(pod);
        };
        if !KIND.is_named_by(reference) || !is_tracked(pod) {
            return false;
        }
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        let job = self.jobs.get(&Key::new(namespace, reference.name.as_str()));
        let job = job.filter(|job| job.metadata.uid.as_ref() == Some(&reference.uid));
        job.is_none_or(|job| is_finished(&job) && !is_managed_elsewhere(&job))
    }

    async fn release_abandoned(&self, key: &Key) -> Result<(), WriteError> {
        let pod = self.pods.pods().get(key);
        if pod.is_none_or(|pod| !self.is_abandoned(&pod)) {
            return Ok(());
        }
        match self.writer.patch::<Pod>(key, &release_patch()).await {
            Err(error) if !is_not_found(&error) => Err(failed("finalizers of pod")(error)),
            _ => Ok(()),
        }
    }

    /// Writes the status, lets pods go, and writes what came of that.
    async fn account(
        &self,
        key: &Key,
        job: &Job,
        accounting: Accounting<'_>,
    ) -> Result<(), WriteError> {
        let mut current = job.clone();
        if let Some(status) = accounting.first.clone() {
            current = self.write(current, status).await?;
            self.memory().entry(key.clone()).or_default().back_off = accounting.back_off;
            for note in accounting.notes.clone() {
                self.writer.record_event(&reference(job), note);
            }
        }
        let (released, error) = self.release(key, &accounting.release).await;
        let finished = accounting.finish(&released);
        if let Some(status) = finished.status {
            let written = self.write(current, status).await?;
            if is_finished(&written) {
                self.memory().entry(key.clone()).or_default().ended = written.metadata.uid;
            }
            for note in finished.notes {
                self.writer.record_event(&reference(job), note);
            }
        }
        error.map_or(Ok(()), |error| Err(failed("finalizers of pods")(error)))
    }

    async fn write(&self, job: Job, status: JobStatus) -> Result<Job, WriteError> {
        let changed = Job {
            status: Some(status),
            ..job
        };
        self.writer
            .replace_status(&changed)
            .await
            .map_err(failed("status"))
    }

    /// Removes finalizers; answers the uids of pods that have none now, and the first error.
    async fn release(&self, key: &Key, pods: &[&Pod]) -> (BTreeSet<String>, Option<kube::Error>) {
        if pods.is_empty() {
            return (BTreeSet::new(), None);
        }
        let uids = pods.iter().map(|pod| pod_state::uid(pod).to_owned());
        self.memory()
            .entry(key.clone())
            .or_default()
            .released
            .extend(uids);
        let items = pods
            .iter()
            .map(|pod| (Key::of(&pod.metadata), pod_state::uid(pod).to_owned()));
        let patch = &release_patch();
        let results = for_all(items.collect(), |(pod, uid): (Key, String)| async move {
            (uid, self.writer.patch::<Pod>(&pod, patch).await)
        });
        let mut released = BTreeSet::new();
        let mut first_error = None;
        for (uid, result) in results.await {
            let is_gone = match result {
                Ok(_) => {
                    released.insert(uid);
                    continue;
                }
                Err(error) if is_not_found(&error) => true,
                Err(error) => {
                    first_error = first_error.or(Some(error));
                    false
                }
            };
            // No change of this pod will be seen.
            if let Some(memory) = self.memory().get_mut(key) {
                memory.released.remove(&uid);
            }
            if is_gone {
                released.insert(uid);
            }
        }
        (released, first_error)
    }

    /// Makes and deletes pods.
    async fn carry_out(
        &self,
        key: &Key,
        job: &Job,
        work: &PodWork<'_>,
    ) -> (Done, Option<kube::Error>) {
        match work {
            PodWork::Nothing | PodWork::Wait(_) => (Done::default(), None),
            PodWork::Create(pods) => self.create(key, job, pods.clone()).await,
            PodWork::Discard(pods) => {
                let names = pods.iter().map(|pod| pod_state::name(pod).to_owned());
                self.expectations.expect(key, 0, names);
                self.delete(key, job, pods, true).await
            }
            PodWork::Stop(pods) => self.delete(key, job, pods, false).await,
        }
    }

    async fn create(&self, key: &Key, job: &Job, pods: Vec<Pod>) -> (Done, Option<kube::Error>) {
        self.expectations.expect(key, pods.len(), []);
        let orders = PodOrders {
            key,
            about: &reference(job),
            writer: &self.writer,
            expectations: &self.expectations,
        };
        let (created, error) = orders.create(pods, |pod| pod).await;
        let done = Done {
            created,
            ..Done::default()
        };
        (done, error)
    }

    async fn delete(
        &self,
        key: &Key,
        job: &Job,
        pods: &[&Pod],
        is_discarded: bool,
    ) -> (Done, Option<kube::Error>) {
        let about = &reference(job);
        let items = pods.iter().map(|pod| {
            (
                Key::of(&pod.metadata),
                is_discarded && is_tracked(pod),
                pod_state::is_ready(pod),
            )
        });
        let results = for_all(
            items.collect(),
            |(pod, releases, is_ready): (Key, bool, bool)| async move {
                let deleted = self.delete_one(&pod, releases, about).await;
                if deleted.is_err() {
                    self.expectations.deleted(key, &pod.name);
                }
                (deleted, is_ready)
            },
        );
        let mut done = Done::default();
        let mut first_error = None;
        for (result, is_ready) in results.await {
            match result {
                Err(error) if !is_not_found(&error) => first_error = first_error.or(Some(error)),
                _ => {
                    done.deleted += 1;
                    done.deleted_ready += usize::from(is_ready);
                }
            }
        }
        (done, first_error)
    }

    async fn delete_one(
        &self,
        pod: &Key,
        releases: bool,
        about: &ObjectReference,
    ) -> Result<(), kube::Error> {
        if releases {
            self.writer.patch::<Pod>(pod, &release_patch()).await?;
        }
        self.writer
            .delete_pod(&pod.namespace, &pod.name, about)
            .await
    }
}
