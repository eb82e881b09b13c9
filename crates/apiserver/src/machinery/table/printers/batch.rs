//! Jobs and CronJobs.

use super::super::age::human_duration;
use super::super::column::{AGE, CONTAINERS, Column, IMAGES, NAME};
use super::super::printer::{Printer, Row, row};
use super::super::view::{NONE, View};

pub(super) const JOB: Printer = Printer {
    columns: &[
        NAME,
        Column::text("Status", "Status of the job."),
        Column::field("Completions", "api.batch.v1.JobStatus", "succeeded"),
        Column::text("Duration", "Time required to complete the job."),
        AGE,
        CONTAINERS,
        IMAGES,
        Column::field("Selector", "api.batch.v1.JobSpec", "selector").wide(),
    ],
    row: job,
};

fn job(job: View<'_>) -> Row {
    let (names, images) = job.containers("/spec/template/spec");
    let start = job.time("/status/startTime");
    let duration = match (start, job.time("/status/completionTime")) {
        (None, _) => String::new(),
        (Some(_), None) => job.since_time(start),
        (Some(start), Some(end)) => human_duration(start, end),
    };
    row![
        job.name(),
        job_status(job),
        completions(job),
        duration,
        job.age(),
        names,
        images,
        job.selector("/spec/selector"),
    ]
}

fn job_status(job: View<'_>) -> &'static str {
    let is = |condition: &str| job.condition(condition) == Some("True");
    match () {
        () if is("Complete") => "Complete",
        () if is("Failed") => "Failed",
        () if job.is_being_deleted() => "Terminating",
        () if is("Suspended") => "Suspended",
        () if is("FailureTarget") => "FailureTarget",
        () if is("SuccessCriteriaMet") => "SuccessCriteriaMet",
        () => "Running",
    }
}

fn completions(job: View<'_>) -> String {
    let succeeded = job.integer("/status/succeeded");
    let parallelism = job.integer("/spec/parallelism");
    match job.at("/spec/completions") {
        Some(completions) => format!("{succeeded}/{}", completions.integer("")),
        None if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
        None => format!("{succeeded}/1"),
    }
}

pub(super) const CRON_JOB: Printer = Printer {
    columns: &[
        NAME,
        Column::field("Schedule", CRON_JOB_SPEC, "schedule"),
        Column::field("Timezone", CRON_JOB_SPEC, "timeZone"),
        Column::field("Suspend", CRON_JOB_SPEC, "suspend").boolean(),
        Column::field("Active", "api.batch.v1.CronJobStatus", "active").integer(),
        Column::field(
            "Last Schedule",
            "api.batch.v1.CronJobStatus",
            "lastScheduleTime",
        ),
        AGE,
        CONTAINERS,
        IMAGES,
        Column::field("Selector", "api.batch.v1.JobSpec", "selector").wide(),
    ],
    row: cron_job,
};

const CRON_JOB_SPEC: &str = "api.batch.v1.CronJobSpec";

fn cron_job(object: View<'_>) -> Row {
    let (names, images) = object.containers("/spec/jobTemplate/spec/template/spec");
    let last = object.at("/status/lastScheduleTime");
    row![
        object.name(),
        object.text("/spec/schedule"),
        object
            .at("/spec/timeZone")
            .map_or(NONE, |zone| zone.text("")),
        if object.flag("/spec/suspend") {
            "True"
        } else {
            "False"
        },
        object.items("/status/active").len(),
        last.map_or_else(|| NONE.to_owned(), |last| last.since("")),
        object.age(),
        names,
        images,
        object.selector("/spec/jobTemplate/spec/selector"),
    ]
}
