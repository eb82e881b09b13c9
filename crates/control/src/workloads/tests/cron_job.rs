//! Cron jobs.

use super::*;

#[tokio::test(start_paused = true)]
async fn cron_job_starts_a_job_and_reports_its_end() {
    let options = Options {
        clock: plimsoll_client::testing::virtual_clock(),
        ..Options::default()
    };
    let running = Running::start_with(&options);
    let cluster = &running.cluster;
    let mut job_template = template("v1");
    job_template["spec"]["restartPolicy"] = json!("Never");
    cluster.put(json!({
        "apiVersion": "batch/v1", "kind": "CronJob",
        "metadata": {"name": "tick", "namespace": "default", "generation": 1},
        "spec": {
            "schedule": "* * * * *", "concurrencyPolicy": "Forbid", "suspend": false,
            "successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1,
            "jobTemplate": {"spec": {
                "parallelism": 1, "completions": 1, "backoffLimit": 1, "completionMode": "NonIndexed",
                "selector": {"matchLabels": {"app": "web"}}, "template": job_template,
            }},
        },
    }));
    tokio::time::sleep(Duration::from_secs(50)).await;
    assert!(cluster.list("jobs").is_empty());
    let key = Key::new("default", "tick-29453761");
    running
        .until("a job of the first minute", |cluster| {
            let status = status(cluster, "cronjobs", "tick");
            cluster.get("jobs", &key).is_some()
                && status["lastScheduleTime"] == "2026-01-01T00:01:00Z"
                && status["active"][0]["name"] == "tick-29453761"
        })
        .await;
    let made = events(cluster, "SuccessfulCreate");
    assert!(
        made.contains(&"Created job tick-29453761".to_owned()),
        "{made:?}"
    );
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert_eq!(cluster.list("jobs").len(), 1);
    assert!(!events(cluster, "JobAlreadyActive").is_empty());

    cluster.change("jobs", &key, |job| {
        job["status"]["completionTime"] = json!("2026-01-01T00:02:30Z");
        job["status"]["conditions"] = json!([{"type": "Complete", "status": "True"}]);
    });
    running
        .until("its end is reported", |cluster| {
            let status = status(cluster, "cronjobs", "tick");
            status["lastSuccessfulTime"] == "2026-01-01T00:02:30Z"
                && !events(cluster, "SawCompletedJob").is_empty()
        })
        .await;
}
