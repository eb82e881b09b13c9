//! A scheduler beside the one of the cluster, for pods that name it.

use plimsoll_testkit::process::Process;
use serde_json::json;

use crate::flow::Flow;
use crate::target::PLIMSOLL;

const CONFIGURATION: &str = "\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: false
profiles:
- schedulerName: second
";

#[test]
#[ignore = "tier: tools"]
fn pods_wait_for_the_scheduler_that_they_name() {
    let flow = Flow::start("second");
    flow.node("a");
    let mut pod = flow.pod("picky", &json!({}));
    pod["spec"]["schedulerName"] = json!("second");
    flow.create(&pod);
    flow.create(&flow.pod("plain", &json!({})));
    flow.kubectl("wait pod plain --for=condition=Ready --timeout=60s");
    flow.shows(
        "get pod picky -o jsonpath={.spec.nodeName}{.status.conditions}",
        "",
    );

    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("scheduler.yaml");
    std::fs::write(&file, CONFIGURATION).expect("the configuration is written");
    let _second = Process::start(
        PLIMSOLL,
        &folder.path().join("scheduler.log"),
        &[
            "scheduler".to_owned(),
            format!("--kubeconfig={}", flow.target.kubeconfig().display()),
            format!("--config={}", file.display()),
        ],
    );
    flow.kubectl("wait pod picky --for=condition=Ready --timeout=60s");
    flow.until(
        "describe pod picky",
        "an event of the second scheduler",
        |shown| {
            let event = shown
                .lines()
                .find(|line| line.contains("Normal  Scheduled"));
            event.is_some_and(|event| event.split_whitespace().any(|word| word == "second"))
        },
    );
}
