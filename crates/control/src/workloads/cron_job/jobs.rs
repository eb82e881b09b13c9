//! The Jobs of a cron job: which have finished, which are gone, which are too many.

use std::collections::BTreeSet;

use k8s_openapi::api::batch::v1::{CronJob, CronJobStatus, Job};
use k8s_openapi::api::core::v1::ObjectReference;

use plimsoll_core::object::event::Note;

/// The condition with which a job has finished: `Complete` or `Failed`.
fn finished(job: &Job) -> Option<&str> {
    let conditions = job.status.as_ref()?.conditions.as_deref()?;
    let mut types = conditions
        .iter()
        .filter(|condition| condition.status == "True")
        .map(|condition| condition.type_.as_str());
    types.find(|type_| matches!(*type_, "Complete" | "Failed"))
}

fn uid(job: &Job) -> &str {
    job.metadata.uid.as_deref().unwrap_or_default()
}

fn name(job: &Job) -> &str {
    job.metadata.name.as_deref().unwrap_or_default()
}

/// The jobs that the status says are running.
pub(super) fn active(cron_job: &CronJob) -> &[ObjectReference] {
    let status = cron_job.status.as_ref();
    status
        .and_then(|status| status.active.as_deref())
        .unwrap_or_default()
}

fn is_active(cron_job: &CronJob, uid: &str) -> bool {
    active(cron_job)
        .iter()
        .any(|job| job.uid.as_deref() == Some(uid))
}

/// Takes a job off the list of those that run.
pub(super) fn remove_active(status: &mut CronJobStatus, uid: &str) {
    let mut active = status.active.take().unwrap_or_default();
    active.retain(|job| job.uid.as_deref() != Some(uid));
    status.active = (!active.is_empty()).then_some(active);
}

/// Whether a job runs that the status does not list: the status may be an old one.
pub fn has_forgotten(cron_job: &CronJob, jobs: &[&Job]) -> bool {
    let mut jobs = jobs.iter();
    jobs.any(|job| finished(job).is_none() && !is_active(cron_job, uid(job)))
}

/// The finished jobs beyond the history limits, from the oldest of each sort.
pub fn superfluous<'a>(cron_job: &CronJob, jobs: &[&'a Job]) -> Vec<&'a Job> {
    let limits = [
        ("Complete", cron_job.spec.successful_jobs_history_limit),
        ("Failed", cron_job.spec.failed_jobs_history_limit),
    ];
    let mut found = Vec::new();
    for (condition, limit) in limits {
        let Some(limit) = limit else { continue };
        let of_sort = jobs.iter().filter(|job| finished(job) == Some(condition));
        let mut of_sort: Vec<&Job> = of_sort.copied().collect();
        let start = |job: &Job| job.status.as_ref().and_then(|s| s.start_time.clone());
        of_sort.sort_by_key(|job| {
            let start = start(job);
            (start.is_none(), start, name(job))
        });
        let excess = of_sort
            .len()
            .saturating_sub(usize::try_from(limit).unwrap_or(0));
        found.extend(of_sort.drain(..excess));
    }
    found
}

/// The jobs listed as running that are not there.
pub fn missing<'a>(cron_job: &'a CronJob, jobs: &[&Job]) -> Vec<&'a ObjectReference> {
    let there: BTreeSet<&str> = jobs.iter().map(|job| uid(job)).collect();
    let active = active(cron_job).iter();
    active
        .filter(|job| !there.contains(job.uid.as_deref().unwrap_or_default()))
        .collect()
}

/// Brings the status up to date with the jobs. `gone` are the uids of listed jobs that the server
/// does not have any more.
pub fn observe(cron_job: &mut CronJob, jobs: &[&Job], gone: &[ObjectReference]) -> Vec<Note> {
    let mut notes = Vec::new();
    for job in jobs {
        let was_active = is_active(cron_job, uid(job));
        let status = cron_job.status.get_or_insert_default();
        match finished(job) {
            None if !was_active => {
                let message = format!(
                    "Saw a job that the controller did not create or forgot: {}",
                    name(job)
                );
                notes.push(Note::warning("UnexpectedJob", message));
            }
            None => {}
            Some(condition) => {
                if was_active {
                    remove_active(status, uid(job));
                    let name = name(job);
                    let message = format!("Saw completed job: {name}, condition: {condition}");
                    notes.push(Note::normal("SawCompletedJob", message));
                }
                let completed = job.status.as_ref().and_then(|s| s.completion_time.clone());
                if condition == "Complete" && completed > status.last_successful_time {
                    status.last_successful_time = completed;
                }
            }
        }
    }
    for job in gone {
        let message = format!(
            "Active job went missing: {}",
            job.name.as_deref().unwrap_or_default()
        );
        notes.push(Note::normal("MissingJob", message));
        let uid = job.uid.as_deref().unwrap_or_default();
        remove_active(cron_job.status.get_or_insert_default(), uid);
    }
    notes
}
