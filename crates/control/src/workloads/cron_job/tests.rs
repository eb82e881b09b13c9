//! Decisions about cron jobs: Jobs and the time in, events and a Job out.

use k8s_openapi::api::batch::v1::{CronJob, Job};
use plimsoll_core::object::timestamp::Timestamp;
use serde_json::{Value, json};

use super::*;
use plimsoll_core::object::event::Note;

fn at(text: &str) -> Timestamp {
    Timestamp::from_rfc3339(text).unwrap()
}

/// A cron job of every five minutes, made at noon.
fn cron_job(spec: Value, status: Value) -> CronJob {
    let template = json!({"metadata": {"labels": {"app": "x"}, "annotations": {"a": "b"}},
        "spec": {"template": {"spec": {"containers": []}}}});
    let mut full = json!({
        "schedule": "*/5 * * * *", "concurrencyPolicy": "Allow", "suspend": false,
        "successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1, "jobTemplate": template,
    });
    for (key, value) in spec.as_object().unwrap() {
        full[key] = value.clone();
    }
    serde_json::from_value(json!({
        "metadata": {"name": "tick", "namespace": "n", "uid": "u", "creationTimestamp": "2026-01-01T12:00:00Z"},
        "spec": full, "status": status,
    }))
    .unwrap()
}

fn job(name: &str, condition: Option<&str>, start: u32) -> Job {
    let conditions: Vec<Value> = condition
        .iter()
        .map(|type_| json!({"type": type_, "status": "True"}))
        .collect();
    let time = format!("2026-01-01T12:{start:02}:00Z");
    let completed = (condition == Some("Complete")).then(|| time.clone());
    serde_json::from_value(json!({
        "metadata": {"name": name, "namespace": "n", "uid": name},
        "status": {"conditions": conditions, "startTime": time, "completionTime": completed},
    }))
    .unwrap()
}

fn running(names: &[&str]) -> Value {
    let active: Vec<Value> = names
        .iter()
        .map(|name| json!({"kind": "Job", "name": name, "namespace": "n", "uid": name}))
        .collect();
    json!({"active": active, "lastScheduleTime": "2026-01-01T12:05:00Z"})
}

fn reasons(notes: &[Note]) -> Vec<&str> {
    notes.iter().map(|note| &*note.reason).collect()
}

/// The time of the Job that is started, in minutes after noon.
fn started(decision: &Decision) -> Option<u64> {
    let start = decision.start.as_ref()?;
    let noon = at("2026-01-01T12:00:00Z");
    Some(start.at.saturating_since(noon).as_secs() / 60)
}

fn wait_millis(decision: &Decision) -> Option<u128> {
    decision.again_after.map(|wait| wait.as_millis())
}

#[test]
fn a_job_is_started_when_its_time_has_come() {
    let cron_job = cron_job(json!({}), json!({}));
    let early = decide(&cron_job, at("2026-01-01T12:04:59Z"));
    assert_eq!(started(&early), None);
    assert_eq!(wait_millis(&early), Some(1_100));
    let due = decide(&cron_job, at("2026-01-01T12:05:00.1Z"));
    assert_eq!(started(&due), Some(5));
    assert_eq!(wait_millis(&due), Some(300_000));
    let job = serde_json::to_value(due.start.unwrap().job).unwrap();
    assert_eq!(job["metadata"]["name"], "tick-29454485");
    assert_eq!(
        job["metadata"]["annotations"],
        json!({"a": "b", SCHEDULED_TIME: "2026-01-01T12:05:00Z"})
    );
    assert_eq!(job["metadata"]["labels"], json!({"app": "x"}));
    assert_eq!(job["metadata"]["ownerReferences"][0]["kind"], "CronJob");
    assert_eq!(job["metadata"]["ownerReferences"][0]["controller"], true);
}

#[test]
fn a_time_starts_one_job() {
    let done = cron_job(json!({}), running(&[]));
    let decision = decide(&done, at("2026-01-01T12:05:01Z"));
    assert_eq!(
        (started(&decision), wait_millis(&decision)),
        (None, Some(299_100))
    );
    let listed = json!({"active": [{"name": "tick-29454485", "namespace": "n", "uid": "1"}]});
    let decision = decide(&cron_job(json!({}), listed), at("2026-01-01T12:05:01Z"));
    assert_eq!(started(&decision), None);
}

#[test]
fn of_several_missed_times_the_latest_is_made_up_for() {
    let cron_job = cron_job(json!({}), json!({}));
    let few = decide(&cron_job, at("2026-01-01T13:02:00Z"));
    assert_eq!((started(&few), reasons(&few.notes)), (Some(60), vec![]));
    let many = decide(&cron_job, at("2026-01-02T12:02:00Z"));
    assert_eq!(started(&many), Some(24 * 60));
    assert_eq!(reasons(&many.notes), ["TooManyMissedTimes"]);
}

#[test]
fn an_uneven_schedule_is_made_up_for_at_its_latest_time() {
    let spec = json!({"schedule": "30 6-16/4 * * 1-5"});
    // Thursday noon; on Monday at 15:00 the latest time was 14:30.
    let decision = decide(&cron_job(spec, json!({})), at("2026-01-05T15:00:00Z"));
    assert_eq!(decision.start.unwrap().at, at("2026-01-05T14:30:00Z"));
}

#[test]
fn starting_deadline_bounds_missed_starts() {
    let within = cron_job(json!({"startingDeadlineSeconds": 200}), json!({}));
    let decision = decide(&within, at("2026-01-01T12:08:00Z"));
    assert_eq!(started(&decision), Some(5));
    // Times before the deadline are not looked at.
    let decision = decide(&within, at("2026-01-01T12:09:00Z"));
    assert_eq!(
        (started(&decision), wait_millis(&decision)),
        (None, Some(60_100))
    );
    let decision = decide(&within, at("2026-01-03T12:02:00Z"));
    assert_eq!(
        (started(&decision), reasons(&decision.notes)),
        (Some(2 * 24 * 60), vec![])
    );
    // A deadline shorter than the way from the clock to the loop.
    let at_once = cron_job(json!({"startingDeadlineSeconds": 0}), json!({}));
    let decision = decide(&at_once, at("2026-01-01T12:05:00.5Z"));
    assert_eq!(started(&decision), None);
}

#[test]
fn concurrency_policies_differ_when_a_job_still_runs() {
    let now = at("2026-01-01T12:10:01Z");
    let with = |policy: &str| cron_job(json!({"concurrencyPolicy": policy}), running(&["tick-1"]));
    assert_eq!(started(&decide(&with("Allow"), now)), Some(10));
    let forbidden = decide(&with("Forbid"), now);
    assert_eq!(started(&forbidden), None);
    assert_eq!(reasons(&forbidden.notes), ["JobAlreadyActive"]);
    assert_eq!(wait_millis(&forbidden), Some(299_100));
    let replaced = decide(&with("Replace"), now).start.unwrap().replaced;
    assert_eq!(replaced[0].name.as_deref(), Some("tick-1"));
    assert!(
        decide(&with("Allow"), now)
            .start
            .unwrap()
            .replaced
            .is_empty()
    );
}

#[test]
fn invalid_cron_jobs_report_a_reason() {
    let now = at("2026-01-01T12:05:01Z");
    for (spec, reason) in [
        (json!({"suspend": true}), None),
        (json!({"timeZone": "Moon/Base"}), Some("UnknownTimeZone")),
        (json!({"schedule": "often"}), Some("UnparseableSchedule")),
        (json!({"schedule": "0 0 31 2 *"}), Some("InvalidSchedule")),
    ] {
        let decision = decide(&cron_job(spec.clone(), json!({})), now);
        assert_eq!(
            (started(&decision), decision.again_after),
            (None, None),
            "{spec}"
        );
        assert_eq!(reasons(&decision.notes), Vec::from_iter(reason), "{spec}");
    }
    let mut leaving = cron_job(json!({}), json!({}));
    leaving.metadata.deletion_timestamp = Some(now.to_api());
    assert_eq!(decide(&leaving, now), Decision::default());
    let own_zone = decide(
        &cron_job(json!({"schedule": "TZ=UTC */5 * * * *"}), json!({})),
        now,
    );
    assert_eq!(
        (started(&own_zone), reasons(&own_zone.notes)),
        (Some(5), vec!["UnsupportedSchedule"])
    );
}

#[test]
fn times_are_those_of_the_zone() {
    let spec = json!({"schedule": "0 14 * * *", "timeZone": "Europe/Rome"});
    let decision = decide(&cron_job(spec, json!({})), at("2026-01-01T13:00:01Z"));
    assert_eq!(started(&decision), Some(60));
    let job = decision.start.unwrap().job;
    let annotations = job.metadata.annotations.unwrap();
    assert_eq!(annotations[SCHEDULED_TIME], "2026-01-01T14:00:00+01:00");
}

#[test]
fn another_schedule_begins_with_its_next_time() {
    let hourly = cron_job(json!({"schedule": "0 * * * *"}), json!({}));
    let wait = until_next(&hourly, at("2026-01-01T14:30:00Z"))
        .unwrap()
        .unwrap();
    assert_eq!(wait.as_millis(), 30 * 60 * 1000 + 100);
    let broken = cron_job(json!({"schedule": "often"}), json!({}));
    let note = until_next(&broken, at("2026-01-01T14:30:00Z")).unwrap_err();
    assert_eq!(note.reason, "UnParseableCronJobSchedule");
}

#[test]
fn finished_jobs_beyond_the_limits_are_superfluous_from_the_oldest() {
    let cron_job = cron_job(json!({}), json!({}));
    let complete = [5, 1, 4, 2, 3].map(|start| job(&format!("c{start}"), Some("Complete"), start));
    let failed = [2, 1].map(|start| job(&format!("f{start}"), Some("Failed"), start));
    let still = job("r", None, 0);
    let jobs: Vec<&Job> = complete.iter().chain(&failed).chain([&still]).collect();
    let names: Vec<&str> = superfluous(&cron_job, &jobs)
        .iter()
        .filter_map(|job| job.metadata.name.as_deref())
        .collect();
    assert_eq!(names, ["c1", "c2", "f1"]);
}

#[test]
fn status_follows_the_jobs() {
    let mut cron_job = cron_job(json!({}), running(&["a", "b", "c", "gone"]));
    let jobs = [
        job("a", Some("Complete"), 7),
        job("b", Some("Failed"), 8),
        job("c", None, 9),
        job("manual", None, 9),
        job("earlier", Some("Complete"), 3),
    ];
    let jobs: Vec<&Job> = jobs.iter().collect();
    assert!(has_forgotten(&cron_job, &jobs));
    let gone: Vec<_> = missing(&cron_job, &jobs).into_iter().cloned().collect();
    assert_eq!(gone[0].name.as_deref(), Some("gone"));
    let notes = observe(&mut cron_job, &jobs, &gone);
    assert_eq!(
        notes
            .iter()
            .map(|note| note.message.as_str())
            .collect::<Vec<_>>(),
        [
            "Saw completed job: a, condition: Complete",
            "Saw completed job: b, condition: Failed",
            "Saw a job that the controller did not create or forgot: manual",
            "Active job went missing: gone",
        ]
    );
    let status = serde_json::to_value(cron_job.status.unwrap()).unwrap();
    assert_eq!(status["lastSuccessfulTime"], "2026-01-01T12:07:00Z");
    assert_eq!(status["active"].as_array().unwrap().len(), 1);
    assert_eq!(status["active"][0]["name"], "c");
}
