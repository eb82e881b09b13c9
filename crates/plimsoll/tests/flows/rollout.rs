//! Deployments are rolled, undone, paused and scaled.

use serde_json::json;

use crate::flow::Flow;

const IMAGES: &str = "get pods -l app=web -o jsonpath={.items[*].spec.containers[0].image}";
const STATUS: &str = "rollout status deployment web --timeout=60s";

fn revisions(flow: &Flow) -> Vec<String> {
    let history = flow.kubectl("rollout history deployment web");
    let rows = history.lines().skip(2).filter(|line| !line.is_empty());
    rows.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect()
}

#[test]
#[ignore = "tier: tools"]
fn a_deployment_is_rolled_and_undone() {
    let flow = Flow::start("rollout");
    flow.node("a");
    flow.create(&flow.deployment("web", 3));
    let printed = flow.kubectl(STATUS);
    assert!(
        printed.ends_with("deployment \"web\" successfully rolled out\n"),
        "{printed}"
    );
    flow.kubectl("annotate deployment web kubernetes.io/change-cause=first");
    flow.mentions("rollout history deployment web", "first");

    flow.kubectl("set image deployment web main=busybox:2");
    flow.kubectl(STATUS);
    flow.shows(IMAGES, "busybox:2 busybox:2 busybox:2");
    flow.kubectl("annotate deployment web kubernetes.io/change-cause=second --overwrite");
    flow.mentions("rollout history deployment web", "second");
    assert_eq!(revisions(&flow), ["1 first", "2 second"]);

    // An image that does not exist takes no pod away that works.
    flow.kubectl("set image deployment web main=missing");
    let problem = flow.refused("rollout status deployment web --timeout=2s");
    assert!(problem.contains("timed out"), "{problem}");
    flow.until("get deployment web", "3/3 with one of the new", |shown| {
        let row: Vec<&str> = shown
            .lines()
            .nth(1)
            .unwrap_or("")
            .split_whitespace()
            .collect();
        row.get(1..4) == Some(&["3/3", "1", "3"])
    });
    flow.kubectl("rollout undo deployment web");
    flow.kubectl(STATUS);
    flow.shows(IMAGES, "busybox:2 busybox:2 busybox:2");
    assert_eq!(revisions(&flow), ["1 first", "3 second", "4 second"]);

    flow.kubectl("rollout undo deployment web --to-revision=1");
    flow.kubectl(STATUS);
    flow.shows(IMAGES, "busybox:1 busybox:1 busybox:1");
    assert_eq!(revisions(&flow), ["3 second", "4 second", "5 first"]);
    flow.mentions("rollout history deployment web --revision=4", "busybox:2");
    flow.mentions("describe deployment web", "NewReplicaSetAvailable");
    flow.mentions("events --for deployment/web", "Scaled up replica set web-");

    flow.kubectl("rollout restart deployment web");
    flow.kubectl(STATUS);
    assert_eq!(
        revisions(&flow),
        ["3 second", "4 second", "5 first", "6 first"]
    );
}

#[test]
#[ignore = "tier: tools"]
fn a_paused_deployment_scales_but_does_not_roll() {
    let flow = Flow::start("paused");
    flow.node("a");
    flow.create(&flow.deployment("web", 2));
    flow.kubectl(STATUS);
    flow.kubectl("rollout pause deployment web");
    flow.kubectl("set image deployment web main=busybox:2");
    flow.kubectl("scale deployment web --replicas=4");
    flow.shows(IMAGES, &["busybox:1"; 4].join(" "));
    flow.mentions("describe deployment web", "DeploymentPaused");
    flow.kubectl("rollout resume deployment web");
    flow.kubectl(STATUS);
    flow.shows(IMAGES, &["busybox:2"; 4].join(" "));

    flow.kubectl("scale deployment web --replicas=1");
    flow.kubectl(STATUS);
    flow.shows(IMAGES, "busybox:2");
    flow.kubectl("scale deployment web --replicas=0");
    flow.kubectl(STATUS);
    flow.shows(IMAGES, "");
    flow.shows("get deployment web -o jsonpath={.status.replicas}", "");
}

#[test]
#[ignore = "tier: tools"]
fn stuck_rollout_reports_progress_deadline() {
    let flow = Flow::start("deadline");
    flow.node("a");
    let mut web = flow.deployment("web", 1);
    web["spec"]["progressDeadlineSeconds"] = json!(3);
    web["spec"]["template"]["spec"]["containers"][0]["image"] = json!("missing");
    flow.create(&web);
    let problem = flow.refused(STATUS);
    assert_eq!(
        problem,
        "error: deployment \"web\" exceeded its progress deadline\n"
    );
    flow.mentions("describe deployment web", "ProgressDeadlineExceeded");
}

#[test]
#[ignore = "tier: tools"]
fn recreate_ends_the_old_pods_before_it_makes_new_ones() {
    let flow = Flow::start("recreate");
    flow.node("a");
    let mut web = flow.deployment("web", 2);
    web["spec"]["strategy"] = json!({ "type": "Recreate" });
    web["spec"]["template"]["metadata"]["finalizers"] = json!(["flow/keep"]);
    flow.create(&web);
    flow.kubectl(STATUS);
    let old = flow.pods("app=web");
    flow.kubectl("set image deployment web main=busybox:2");
    flow.until("get pods -l app=web", "two Terminating", |shown| {
        shown.matches("Terminating").count() == 2
    });
    flow.shows(IMAGES, "busybox:1 busybox:1");
    for pod in old {
        flow.kubectl(&format!(
            "patch pod {pod} -p {{\"metadata\":{{\"finalizers\":null}}}}"
        ));
    }
    flow.kubectl(STATUS);
    flow.shows(IMAGES, "busybox:2 busybox:2");
}
