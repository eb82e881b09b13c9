//! The loop of cron jobs.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::{DeleteParams, PostParams};
use tokio_util::sync::CancellationToken;

use crate::work_queue::WorkQueue;
use crate::workloads::control_loop::{self, ControlLoop};
use crate::workloads::owners::owner_in;
use crate::workloads::ownership::is_controlled_by;
use crate::workloads::writes::{
    Writer, is_already_exists, is_namespace_terminating, is_not_found, message_of,
};
use crate::workloads::{Options, as_refs};
use plimsoll_client::events::reference;
use plimsoll_client::informer::{Change, Informer, Informers, Key, Subscription};
use plimsoll_core::object::event::Note;

use super::jobs::{active, remove_active};
use super::{KIND, Start, decide, has_forgotten, missing, observe, superfluous, until_next};

const COMPONENT: &str = "cronjob-controller";

/// Why a pass failed.
#[derive(Debug, thiserror::Error)]
pub enum SyncError {
    /// An object could not be read.
    #[error("cannot read {what}: {}", message_of(.source))]
    Read {
        /// The object that was to be read.
        what: &'static str,
        /// Why.
        source: kube::Error,
    },
    /// A Job could not be created.
    #[error("cannot create job: {}", message_of(.0))]
    Create(kube::Error),
    /// A Job that still runs could not be deleted.
    #[error("could not replace job {0}")]
    Replace(Key),
    /// The status could not be written.
    #[error("cannot update status: {}", message_of(.0))]
    Status(kube::Error),
}

fn unread(what: &'static str) -> impl FnOnce(kube::Error) -> SyncError {
    move |source| SyncError::Read { what, source }
}

struct Controller {
    options: Options,
    cron_jobs: Arc<Informer<CronJob>>,
    jobs: Arc<Informer<Job>>,
    writer: Writer,
}

/// Runs the loop until `stop`.
pub async fn run(informers: Arc<Informers>, options: Options, stop: CancellationToken) {
    let workers = options.workers;
    let controller = Controller {
        options,
        cron_jobs: informers.of(),
        jobs: informers.of(),
        writer: Writer::of(&informers, COMPONENT, &stop),
    };
    control_loop::run(controller, workers, &stop).await;
}

impl ControlLoop for Controller {
    const QUEUE: &'static str = "cronjob";
    type Error = SyncError;

    async fn synced(&self) {
        self.cron_jobs.synced().await;
        self.jobs.synced().await;
    }

    fn watch(self: &Arc<Self>, queue: &Arc<WorkQueue<Key>>) -> Vec<Subscription> {
        let (wake, controller) = (Arc::clone(queue), Arc::clone(self));
        let of_cron_jobs = self.cron_jobs.on_change(move |change| match change {
            Change::Updated { before, after } if is_rescheduled(before, after) => {
                controller.reschedule(after, &wake);
            }
            change => wake.add(change.key()),
        });
        let (wake, controller) = (Arc::clone(queue), Arc::clone(self));
        let of_jobs = self.jobs.on_change(move |change| {
            if let Change::Updated { before, .. } = change {
                controller
                    .owner_of(before)
                    .into_iter()
                    .for_each(|key| wake.add(key));
            }
            let owner = controller.owner_of(change.object());
            owner.into_iter().for_each(|key| wake.add(key));
        });
        vec![of_cron_jobs, of_jobs]
    }

    async fn sync(&self, key: &Key) -> Result<Option<Duration>, SyncError> {
        let Some(known) = self.cron_jobs.get(key) else {
            return Ok(None);
        };
        let uid = known.metadata.uid.as_deref().unwrap_or_default();
        let mut jobs = self.jobs.owned_by(uid);
        jobs.retain(|job| is_controlled_by(&job.metadata, &known.metadata));
        let jobs = as_refs(&jobs);
        let mut cron_job = self.latest(key, &known, &jobs).await?;
        let before = cron_job.status.clone();
        for job in superfluous(&cron_job, &jobs) {
            self.delete(&mut cron_job, job).await;
        }
        let worked = self.work_on(key, &mut cron_job, &jobs).await;
        if cron_job.status != before {
            let written = self.writer.replace_status(&cron_job).await;
            written.map_err(SyncError::Status)?;
        }
        worked
    }
}

impl Controller {
    /// With another schedule, times that have passed are not made up for.
    fn reschedule(&self, cron_job: &CronJob, queue: &WorkQueue<Key>) {
        match until_next(cron_job, self.options.clock.now()) {
            Ok(Some(wait)) => queue.add_after(Key::of(&cron_job.metadata), wait),
            Ok(None) => {}
            Err(note) => self.writer.record_event(&reference(cron_job), note),
        }
    }

    fn owner_of(&self, job: &Job) -> Option<Key> {
        owner_in(&self.cron_jobs, KIND, &job.metadata)
    }

    /// The cron job as it was seen, or as the server has it if a job runs that it does not list.
    async fn latest(
        &self,
        key: &Key,
        known: &CronJob,
        jobs: &[&Job],
    ) -> Result<CronJob, SyncError> {
        if has_forgotten(known, jobs) {
            let api = self.writer.api::<CronJob>(&key.namespace);
            let found = api.get_opt(&key.name).await.map_err(unread("cron job"))?;
            if let Some(found) = found.filter(|found| found.metadata.uid == known.metadata.uid) {
                return Ok(found);
            }
        }
        Ok(known.clone())
    }

    async fn work_on(
        &self,
        key: &Key,
        cron_job: &mut CronJob,
        jobs: &[&Job],
    ) -> Result<Option<Duration>, SyncError> {
        let about = reference(cron_job);
        let mut gone = Vec::new();
        let api = self.writer.api::<Job>(&key.namespace);
        for job in missing(cron_job, jobs) {
            let name = job.name.as_deref().unwrap_or_default();
            let found = api.get_opt(name).await.map_err(unread("job"))?;
            if found.is_none_or(|found| found.metadata.uid != job.uid) {
                gone.push(job.clone());
            }
        }
        for note in observe(cron_job, jobs, &gone) {
            self.writer.record_event(&about, note);
        }
        let decision = decide(cron_job, self.options.clock.now());
        for note in decision.notes {
            self.writer.record_event(&about, note);
        }
        if let Some(start) = decision.start {
            self.start(key, cron_job, start).await?;
        }
        Ok(decision.again_after)
    }

    async fn start(
        &self,
        key: &Key,
        cron_job: &mut CronJob,
        start: Start,
    ) -> Result<(), SyncError> {
        let api = self.writer.api::<Job>(&key.namespace);
        let about = reference(cron_job);
        for running in start.replaced {
            self.replace(key, cron_job, &running).await?;
        }
        let created = match api.create(&PostParams::default(), &start.job).await {
            Ok(job) => {
                let name = job.metadata.name.as_deref().unwrap_or_default();
                let note = Note::normal("SuccessfulCreate", format!("Created job {name}"));
                self.writer.record_event(&about, note);
                job
            }
            Err(error) if is_namespace_terminating(&error) => return Ok(()),
            Err(error) if is_already_exists(&error) => {
                let name = start.job.metadata.name.as_deref().unwrap_or_default();
                let found = api.get(name).await.map_err(unread("job"))?;
                // It was made before the status could be written, or is not the controller's.
                let listed = active(cron_job)
                    .iter()
                    .any(|job| job.uid == found.metadata.uid);
                if listed || !is_controlled_by(&found.metadata, &cron_job.metadata) {
                    return Ok(());
                }
                found
            }
            Err(error) => {
                let message = format!("Error creating job: {}", message_of(&error));
                self.writer
                    .record_event(&about, Note::warning("FailedCreate", message));
                return Err(SyncError::Create(error));
            }
        };
        let status = cron_job.status.get_or_insert_default();
        status
            .active
            .get_or_insert_default()
            .push(reference(&created));
        status.last_schedule_time = Some(start.at.to_api_seconds());
        Ok(())
    }

    /// Deletes a job that still runs when the next one is due.
    async fn replace(
        &self,
        key: &Key,
        cron_job: &mut CronJob,
        running: &ObjectReference,
    ) -> Result<(), SyncError> {
        let name = running.name.as_deref().unwrap_or_default();
        let api = self.writer.api::<Job>(&key.namespace);
        let job = match api.get(name).await {
            Ok(job) => job,
            Err(error) => {
                let message = format!("Get job: {}", message_of(&error));
                let note = Note::warning("FailedGet", message);
                self.writer.record_event(&reference(cron_job), note);
                return Err(unread("job")(error));
            }
        };
        match self.delete(cron_job, &job).await {
            true => Ok(()),
            false => Err(SyncError::Replace(Key::of(&job.metadata))),
        }
    }

    /// Deletes a job and its pods, and takes it off the list of those that run.
    async fn delete(&self, cron_job: &mut CronJob, job: &Job) -> bool {
        let key = Key::of(&job.metadata);
        let about = reference(cron_job);
        let api = self.writer.api::<Job>(&key.namespace);
        match api.delete(&key.name, &DeleteParams::background()).await {
            Err(error) if !is_not_found(&error) => {
                let message = format!("Deleted job: {}", message_of(&error));
                self.writer
                    .record_event(&about, Note::warning("FailedDelete", message));
                false
            }
            _ => {
                let uid = job.metadata.uid.as_deref().unwrap_or_default();
                remove_active(cron_job.status.get_or_insert_default(), uid);
                let message = format!("Deleted job {}", key.name);
                self.writer
                    .record_event(&about, Note::normal("SuccessfulDelete", message));
                true
            }
        }
    }
}

fn is_rescheduled(before: &CronJob, after: &CronJob) -> bool {
    let timing = |cron_job: &CronJob| {
        let spec = &cron_job.spec;
        (spec.schedule.clone(), spec.time_zone.clone())
    };
    timing(before) != timing(after)
}
