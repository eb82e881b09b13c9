//! CronJobs.

use k8s_openapi::api::batch::v1::{CronJob, CronJobSpec};
use plimsoll_core::cron::{Schedule, Zone};
use plimsoll_core::problem::Problem;

use super::super::metadata::{self, Scope};
use super::super::names::NameRule;
use super::super::path::Path;
use super::super::problems::{Problems, api, json};
use super::super::{Rules, text};
use super::check_spec;

const MAX_CRON_JOB_NAME_BYTES: usize = 52;

pub(in super::super) fn validate_cron_job(job: &CronJob, rules: Rules, problems: &mut Problems) {
    metadata::check(
        &job.metadata,
        Scope::Namespaced,
        NameRule::Subdomain,
        problems,
    );
    check_cron_spec(&job.spec, None, rules, problems);
    let name = text(&job.metadata.name);
    if name.len() > MAX_CRON_JOB_NAME_BYTES {
        let meta = Path::new("metadata");
        problems.invalid(
            &meta.child("name"),
            name,
            "must be no more than 52 characters",
        );
    }
}

pub(in super::super) fn validate_cron_job_update(
    new: &CronJob,
    old: &CronJob,
    rules: Rules,
    problems: &mut Problems,
) {
    metadata::check_update(&new.metadata, &old.metadata, problems);
    check_cron_spec(&new.spec, Some(&old.spec), rules, problems);
}

fn check_cron_spec(
    spec: &CronJobSpec,
    old: Option<&CronJobSpec>,
    rules: Rules,
    problems: &mut Problems,
) {
    let path = Path::new("spec");
    let schedule_path = path.child("schedule");
    match spec.schedule.as_str() {
        "" => problems.required(&schedule_path, ""),
        given => {
            if let Err(reason) = Schedule::parse(given) {
                problems.invalid(&schedule_path, given, reason);
            }
            let had_zone = old.is_some_and(|old| old.schedule.contains("TZ"));
            if given.contains("TZ") && !had_zone {
                let detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
                problems.invalid(&schedule_path, given, detail);
            } else if given.contains("TZ") && spec.time_zone.is_some() {
                let detail = "cannot use both timeZone field and TZ or CRON_TZ in schedule";
                problems.invalid(&schedule_path, given, detail);
            }
        }
    }
    if let Some(seconds) = spec.starting_deadline_seconds {
        problems.nonnegative(&path.child("startingDeadlineSeconds"), seconds);
    }
    if old.is_none_or(|old| old.time_zone != spec.time_zone) {
        check_time_zone(spec.time_zone.as_deref(), &path.child("timeZone"), problems);
    }
    let policies = ["Allow", "Forbid", "Replace"];
    let policy = text(&spec.concurrency_policy);
    problems.required_one_of(&path.child("concurrencyPolicy"), policy, &policies);
    let job = spec.job_template.spec.clone().unwrap_or_default();
    let template = path.child("jobTemplate");
    let job_path = template.child("spec");
    check_spec(&job, rules, &job_path, problems);
    if let Some(labels) = &job.selector {
        let shown = api("meta.LabelSelector", labels);
        problems.invalid(
            &job_path.child("selector"),
            shown,
            "`selector` will be auto-generated",
        );
    }
    if job.manual_selector == Some(true) {
        let path = job_path.child("manualSelector").to_string();
        let problem = Problem::not_supported(path, "", &["nil", "false"]);
        problems.push(problem.with_value("true"));
    }
    for (field, limit) in [
        (
            "successfulJobsHistoryLimit",
            spec.successful_jobs_history_limit,
        ),
        ("failedJobsHistoryLimit", spec.failed_jobs_history_limit),
    ] {
        problems.nonnegative(&path.child(field), limit.unwrap_or_default());
    }
}

fn check_time_zone(zone: Option<&str>, path: &Path<'_>, problems: &mut Problems) {
    let Some(zone) = zone else { return };
    if zone.is_empty() {
        let detail = "timeZone must be nil or non-empty string";
        return problems.invalid(path, json(&zone), detail);
    }
    let is_part = |part: &str| {
        (1..=14).contains(&part.len())
            && part
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"._-+".contains(&b))
            && !part.starts_with('-')
            && part != "."
            && part != ".."
    };
    if !zone.split('/').all(is_part) {
        return problems.invalid(path, json(&zone), format!("unknown time zone {zone}"));
    }
    if zone.eq_ignore_ascii_case("local") {
        let detail = "timeZone must be an explicit time zone as defined in \
                      https://www.iana.org/time-zones";
        problems.invalid(path, json(&zone), detail);
    }
    if zone != "Local"
        && let Err(unknown) = Zone::named(zone)
    {
        problems.invalid(path, json(&zone), unknown.to_string());
    }
}
