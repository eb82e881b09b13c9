//! Cron jobs start Jobs by their schedule, and refuse what is none.

use serde_json::{Value, json};

use crate::flow::Flow;

/// A cron job that ends well at once.
fn cron_job(flow: &Flow, schedule: &str) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": { "name": "tick" },
        "spec": {
            "schedule": schedule,
            "jobTemplate": { "spec": flow.job("tick", "true")["spec"] },
        },
    })
}

#[test]
#[ignore = "tier: tools"]
fn a_cron_job_starts_jobs_at_its_times() {
    let flow = Flow::start("cron");
    flow.node("a");
    let mut cron_job = cron_job(&flow, "@every 2s");
    cron_job["spec"]["timeZone"] = json!("Asia/Kolkata");
    cron_job["spec"]["successfulJobsHistoryLimit"] = json!(1);
    flow.create(&cron_job);
    flow.until(
        "get cronjob tick -o jsonpath={.status}",
        "a successful Job",
        |shown| shown.contains("lastScheduleTime") && shown.contains("lastSuccessfulTime"),
    );
    let owned = "get jobs -o jsonpath={.items[0].metadata.ownerReferences[0].kind}\
                 {.items[0].metadata.annotations}";
    let shown = flow.until(owned, "a Job of the cron job", |shown| {
        shown.contains("CronJob")
    });
    assert!(
        shown.contains("batch.kubernetes.io/cronjob-scheduled-timestamp"),
        "{shown}"
    );
    assert!(shown.contains("+05:30"), "{shown}");
    flow.mentions("events --for cronjob/tick", "Created job tick-");
    flow.mentions("events --for cronjob/tick", "Saw completed job: tick-");

    flow.kubectl("patch cronjob tick -p {\"spec\":{\"suspend\":true}}");
    flow.mentions("get cronjob tick", "True");
    flow.kubectl("create job by-hand --from=cronjob/tick");
    flow.kubectl("wait job by-hand --for=condition=Complete --timeout=60s");
    flow.until("get jobs -o name", "one Job by schedule at most", |shown| {
        shown.matches("job.batch/tick-").count() <= 1
    });
    flow.kubectl("delete cronjob tick");
    flow.is_gone("job/by-hand");
}

#[test]
#[ignore = "tier: tools"]
fn a_schedule_that_is_none_is_refused() {
    let flow = Flow::start("cron-refused");
    let refused = |change: &dyn Fn(&mut Value)| {
        let mut cron_job = cron_job(&flow, "0 3 * * *");
        change(&mut cron_job["spec"]);
        flow.try_kubectl_with("create -f -", &cron_job.to_string())
            .stderr
    };
    let problem = refused(&|spec| spec["schedule"] = json!("0 3 * *"));
    assert!(
        problem.contains("expected exactly 5 fields, found 4: [0 3 * *]"),
        "{problem}"
    );
    let problem = refused(&|spec| spec["timeZone"] = json!("Moon/Base"));
    assert!(problem.contains("unknown time zone Moon/Base"), "{problem}");
}
