//! Jobs complete, fail, are suspended, and are removed after their TTL.

use serde_json::json;

use crate::flow::Flow;

#[test]
#[ignore = "tier: tools"]
fn a_job_completes_and_is_removed_when_its_time_is_over() {
    let flow = Flow::start("job");
    flow.node("a");
    let mut job = flow.job("sum", "true");
    job["spec"]["completions"] = json!(3);
    job["spec"]["parallelism"] = json!(2);
    flow.create(&job);
    flow.kubectl("wait job sum --for=condition=Complete --timeout=60s");
    flow.mentions("get job sum", "3/3");
    flow.until("get pods -l job-name=sum", "three Completed", |shown| {
        shown.matches("Completed").count() == 3
    });
    flow.mentions("events --for job/sum", "Job completed");
    flow.mentions(
        "describe job sum",
        "0 Active (0 Ready) / 3 Succeeded / 0 Failed",
    );
    flow.shows(
        "get pods -l job-name=sum -o jsonpath={.items[*].metadata.finalizers}",
        "",
    );

    flow.kubectl("patch job sum -p {\"spec\":{\"ttlSecondsAfterFinished\":1}}");
    flow.is_gone("job sum");
    flow.shows("get pods -l job-name=sum -o name", "");
}

#[test]
#[ignore = "tier: tools"]
fn a_job_fails_after_its_retries() {
    let flow = Flow::start("retries");
    flow.node("a");
    let mut job = flow.job("sum", "false");
    job["spec"]["backoffLimit"] = json!(1);
    flow.create(&job);
    flow.kubectl("wait job sum --for=condition=Failed --timeout=120s");
    let condition = "get job sum -o jsonpath={.status.conditions[?(@.type==\"Failed\")]}";
    flow.mentions(condition, "BackoffLimitExceeded");
    flow.mentions(condition, "Job has reached the specified backoff limit");
    flow.mentions("events --for job/sum", "BackoffLimitExceeded");
    flow.mentions(
        "describe job sum",
        "0 Active (0 Ready) / 0 Succeeded / 2 Failed",
    );
    assert_eq!(flow.pods("job-name=sum").len(), 2);
}

#[test]
#[ignore = "tier: tools"]
fn a_job_is_suspended_and_resumed_and_ends_at_its_deadline() {
    let flow = Flow::start("suspend");
    flow.node("a");
    let mut job = flow.job("sum", "sleep");
    job["spec"]["suspend"] = json!(true);
    flow.create(&job);
    flow.mentions("events --for job/sum", "Job suspended");
    assert!(flow.pods("job-name=sum").is_empty());
    flow.kubectl("patch job sum -p {\"spec\":{\"suspend\":false}}");
    flow.kubectl("wait pod -l job-name=sum --for=condition=Ready --timeout=60s");
    flow.mentions("events --for job/sum", "Job resumed");
    flow.kubectl("patch job sum -p {\"spec\":{\"activeDeadlineSeconds\":1}}");
    flow.kubectl("wait job sum --for=condition=Failed --timeout=60s");
    flow.mentions(
        "describe job sum",
        "Job was active longer than specified deadline",
    );
    flow.shows("get pods -l job-name=sum -o name", "");
}
