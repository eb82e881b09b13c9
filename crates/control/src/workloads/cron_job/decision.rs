//! Whether a Job is to be started.

use std::time::Duration;

use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::jiff::fmt::strtime;
use plimsoll_core::cron::{Schedule, Zone};
use plimsoll_core::object::timestamp::Timestamp;

use crate::workloads::pod_state::after;
use plimsoll_core::object::event::Note;

use super::KIND;
use super::jobs::active;
use super::timing::{self, Deadline, Missed, recent};

/// The annotation of a Job with the time that it was scheduled for.
pub const SCHEDULED_TIME: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";

/// What to do now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    /// The events to record.
    pub notes: Vec<Note>,
    /// The Job to start.
    pub start: Option<Start>,
    /// When to look again; never if nothing but a change of the cron job can make a difference.
    pub again_after: Option<Duration>,
}

/// A Job to start.
#[derive(Clone, Debug, PartialEq)]
pub struct Start {
    /// The time of the schedule.
    pub at: Timestamp,
    /// Jobs that still run and are to be deleted before.
    pub replaced: Vec<ObjectReference>,
    /// The Job.
    pub job: Job,
}

/// The time when the last Job was started.
fn last_start(cron_job: &CronJob) -> Option<Timestamp> {
    let status = cron_job.status.as_ref();
    let time = status.and_then(|status| status.last_schedule_time.as_ref());
    time.map(Timestamp::from_api)
}

/// The zone of the schedule, and of the annotation of its Jobs.
fn zone_of(cron_job: &CronJob) -> Result<Zone, Note> {
    let name = cron_job.spec.time_zone.as_deref().unwrap_or_default();
    Zone::named(name).map_err(|error| {
        let message = format!("invalid timeZone: {name:?}: {error}");
        Note::warning("UnknownTimeZone", message)
    })
}

/// The schedule, in the zone of the spec unless the schedule itself names one.
fn schedule_of(cron_job: &CronJob) -> Result<Schedule, String> {
    let text = &cron_job.spec.schedule;
    Schedule::parse_in(text, zone_of(cron_job).unwrap_or(Zone::utc()))
}

/// How long until the next time of a schedule that was changed.
pub fn until_next(cron_job: &CronJob, now: Timestamp) -> Result<Option<Duration>, Note> {
    let schedule = schedule_of(cron_job).map_err(|_| {
        let text = &cron_job.spec.schedule;
        let message = format!("unparseable schedule for cronjob: {text}");
        Note::warning("UnParseableCronJobSchedule", message)
    })?;
    let last = last_start(cron_job);
    Ok(timing::until_next(cron_job, last, &schedule, now))
}

/// Decides about a cron job whose status is up to date.
pub fn decide(cron_job: &CronJob, now: Timestamp) -> Decision {
    let mut decision = Decision::default();
    let spec = &cron_job.spec;
    if cron_job.metadata.deletion_timestamp.is_some() {
        return decision;
    }
    let zone = match zone_of(cron_job) {
        Ok(zone) => zone,
        Err(note) => return decision.with(note),
    };
    if spec.suspend == Some(true) {
        return decision;
    }
    let text = spec.schedule.as_str();
    if text.contains("TZ") {
        let message = format!(
            "CRON_TZ or TZ used in schedule {text:?} is not officially supported, see \
             https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
        );
        decision = decision.with(Note::warning("UnsupportedSchedule", message));
    }
    let schedule = match schedule_of(cron_job) {
        Ok(schedule) => schedule,
        Err(error) => {
            let message = format!("unparseable schedule: {text:?} : {error}");
            return decision.with(Note::warning("UnparseableSchedule", message));
        }
    };
    let last = last_start(cron_job);
    let due = match recent(cron_job, last, &schedule, Deadline::Kept, now) {
        Ok(due) => due,
        Err(error) => {
            let message = format!("invalid schedule: {text} : {error}");
            return decision.with(Note::warning("InvalidSchedule", message));
        }
    };
    decision.again_after = timing::until_next(cron_job, last, &schedule, now);
    let Some(at) = due.at else {
        return decision;
    };
    if due.missed == Missed::Many {
        let message = "too many missed start times. Set or decrease \
                       .spec.startingDeadlineSeconds or check clock skew";
        decision = decision.with(Note::warning("TooManyMissedTimes", message));
    }
    let deadline = spec.starting_deadline_seconds;
    if deadline.is_some_and(|seconds| after(at, seconds) < now) {
        let message = format!("Missed scheduled time to start a job: {}", rfc1123(at));
        return decision.with(Note::warning("MissSchedule", message));
    }
    let name = job_name(cron_job, at);
    let running = active(cron_job);
    let namespace = &cron_job.metadata.namespace;
    let is_started =
        |job: &ObjectReference| job.name.as_deref() == Some(&name) && job.namespace == *namespace;
    if running.iter().any(is_started) || last == Some(at) {
        return decision;
    }
    let policy = spec.concurrency_policy.as_deref();
    if policy == Some("Forbid") && !running.is_empty() {
        let message =
            "Not starting job because prior execution is running and concurrency policy is Forbid";
        return decision.with(Note::normal("JobAlreadyActive", message));
    }
    decision.again_after = timing::until_next(cron_job, Some(at), &schedule, now);
    decision.start = Some(Start {
        at,
        replaced: match policy {
            Some("Replace") => running.to_vec(),
            _ => Vec::new(),
        },
        job: job_at(cron_job, name, at, &zone),
    });
    decision
}

impl Decision {
    fn with(mut self, note: Note) -> Decision {
        self.notes.push(note);
        self
    }
}

/// Named after the minute, so that no time can start two Jobs.
fn job_name(cron_job: &CronJob, at: Timestamp) -> String {
    let name = cron_job.metadata.name.as_deref().unwrap_or_default();
    format!("{name}-{}", at.as_nanos().div_euclid(60_000_000_000))
}

fn job_at(cron_job: &CronJob, name: String, at: Timestamp, zone: &Zone) -> Job {
    let template = cron_job.spec.job_template.clone();
    let from = template.metadata.unwrap_or_default();
    let mut annotations = from.annotations.unwrap_or_default();
    annotations.insert(SCHEDULED_TIME.to_owned(), zone.rfc3339(at));
    Job {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: cron_job.metadata.namespace.clone(),
            labels: from.labels,
            annotations: Some(annotations),
            owner_references: Some(vec![KIND.reference_to(&cron_job.metadata)]),
            ..ObjectMeta::default()
        },
        spec: template.spec,
        status: None,
    }
}

/// As in `Thu, 01 Jan 2026 12:00:00 +0000`.
fn rfc1123(time: Timestamp) -> String {
    let time = time.to_api().0;
    strtime::format("%a, %d %b %Y %H:%M:%S +0000", time).unwrap_or_else(|_| time.to_string())
}
