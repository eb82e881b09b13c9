//! `plimsoll explain` and `plimsoll loadline` beside a running scheduler.

use std::process::Command;

use plimsoll_testkit::kubectl::Answer;
use plimsoll_testkit::waiting::until;
use serde_json::{Value, json};

use crate::flow::Flow;
use crate::target::PLIMSOLL;

impl Flow {
    /// Runs `plimsoll <arguments>` against the cluster, on a screen of 100 columns.
    fn plimsoll(&self, arguments: &[&str]) -> Answer {
        let output = Command::new(PLIMSOLL)
            .args(arguments)
            .env("KUBECONFIG", self.target.kubeconfig())
            .env("COLUMNS", "100")
            .output()
            .expect("plimsoll starts");
        output.into()
    }

    /// Waits until the explanation of a pod has all these parts, and gives it.
    fn explains(&self, pod: &str, parts: &[&str]) -> String {
        until(&format!("{pod} is explained by {parts:?}"), || {
            let answer = self.plimsoll(&["explain", "pod", pod, "-n", &self.name, "--verbose"]);
            let has_all = parts.iter().all(|part| answer.stdout.contains(part));
            if answer.is_fine() && has_all {
                return Ok(answer.stdout);
            }
            Err(answer.stdout + &answer.stderr)
        })
    }
}

#[test]
#[ignore = "tier: tools"]
fn a_pod_is_explained_while_it_waits_and_when_it_runs() {
    let flow = Flow::start("explain");
    let small = flow.node("small");
    let resources = json!({ "cpu": "8", "memory": "16Gi", "pods": "110" });
    let tainted = flow.node_with("tainted", &resources);
    let cordoned = flow.node_with("cordoned", &resources);
    flow.kubectl(&format!("taint node {tainted} dedicated=gpu:NoSchedule"));
    flow.kubectl(&format!("cordon {cordoned}"));
    flow.create(&flow.pod("big", &json!({ "cpu": "6" })));
    flow.mentions("describe pod big", "FailedScheduling");
    if flow.target.is_ours() {
        flow.explains(
            "big",
            &[
                &format!("POD {}/big is pending: no node fits", flow.name),
                "0/3 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated",
                "NodeResourcesFit: Insufficient cpu (requests cpu 6, 4 of 4 free)",
                "TaintToleration: node(s) had untolerated taint(s) (dedicated=gpu:NoSchedule)",
                "NodeUnschedulable: node(s) were unschedulable",
                &format!("{small}: it is too small by cpu 2: request at most cpu 4"),
                &format!("{tainted}: add a toleration for dedicated=gpu:NoSchedule to the pod"),
                &format!("{cordoned}: kubectl uncordon {cordoned}"),
                "FailedScheduling (default-scheduler)",
            ],
        );
    }
    let large = flow.node_with(
        "large",
        &json!({ "cpu": "8", "memory": "8Gi", "pods": "110" }),
    );
    flow.kubectl("wait pod big --for=condition=Ready --timeout=60s");
    if flow.target.is_ours() {
        flow.explains(
            "big",
            &[
                &format!("is Running on node {large}"),
                "by default-scheduler.",
                "It was the only node that fitted.",
                "At present and without the pod, 1 of 4 nodes would fit it",
                "NodeResourcesFit",
            ],
        );
    }
    flow.create(&flow.pod("web", &json!({ "cpu": "500m", "memory": "1Gi" })));
    flow.kubectl("wait pod web --for=condition=Ready --timeout=60s");
    if flow.target.is_ours() {
        flow.explains(
            "web",
            &[
                "2 nodes fitted; it had the best score, ",
                "2 of 4 nodes would fit it",
            ],
        );
    }
    let shown = flow.plimsoll(&["explain", "pod", "big", "-n", &flow.name, "-o", "json"]);
    let report: Value = serde_json::from_str(&shown.stdout).expect("JSON");
    assert_eq!(report["placed"]["node"], json!(large), "{report:#}");
    assert_eq!(report["placed"]["now"]["place"], 1, "{report:#}");

    let missing = flow.plimsoll(&["explain", "pod", "nothing", "-n", &flow.name]);
    assert_eq!(missing.code, Some(3));
    let expected = "Error from server (NotFound): pods \"nothing\" not found\n";
    assert_eq!(missing.stderr, expected);

    // These nodes have no agent: what it would say is not known, and that is said.
    let drawn = flow.plimsoll(&["loadline", &large]);
    for part in ["NODE ", "requested 6 (75%)", "not known: what is in use"] {
        assert!(drawn.stdout.contains(part), "{part}: {drawn:?}");
    }
    let missing = flow.plimsoll(&["loadline", "nowhere"]);
    assert_eq!(missing.code, Some(3));
    let expected = "Error from server (NotFound): nodes \"nowhere\" not found\n";
    assert_eq!(missing.stderr, expected);
}

#[test]
#[ignore = "tier: tools"]
fn objects_are_named_as_with_kubectl_and_owners_show_their_pods() {
    let flow = Flow::start("owners");
    if !flow.target.is_ours() {
        return;
    }
    flow.node("small");
    let mut template = flow.pod("web", &json!({ "cpu": "8" }));
    let labels = json!({ "app": "web" });
    template["metadata"]["labels"] = labels.clone();
    flow.create(&json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" },
        "spec": {
            "replicas": 2, "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": template["spec"] },
        },
    }));
    for words in [
        &["deploy/web"][..],
        &["deploy", "web"],
        &["deployment.apps/web"],
    ] {
        let head = format!("DEPLOYMENT {}/web has 0 of 2 pods ready\n", flow.name);
        until(&format!("{words:?} is explained"), || {
            let answer = flow.plimsoll(&[&["explain", "-n", &flow.name], words].concat());
            let has_all = answer.stdout.starts_with(&head)
                && answer.stdout.matches("Pending").count() == 2
                && answer.stdout.contains("is pending: no node fits");
            match has_all {
                true => Ok(()),
                false => Err(answer.stdout + &answer.stderr),
            }
        });
    }
    let pods = flow.kubectl("get pods -o name");
    let pod = pods.lines().next().expect("there are pods");
    let shown = flow.plimsoll(&["explain", pod, "-n", &flow.name]);
    assert!(shown.stdout.starts_with("POD "), "{shown:?}");
    let missing = flow.plimsoll(&["explain", "deploy/none", "-n", &flow.name]);
    let expected = "Error from server (NotFound): deployments.apps \"none\" not found\n";
    assert_eq!((missing.code, missing.stderr.as_str()), (Some(3), expected));
    let wrong = flow.plimsoll(&["explain", "svc/web"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
}

#[test]
#[ignore = "tier: tools"]
fn missing_scheduler_of_a_pod_is_reported() {
    let flow = Flow::start("scheduler");
    if !flow.target.is_ours() {
        return;
    }
    flow.node("small");
    let mut web = flow.pod("web", &json!({ "cpu": "1" }));
    web["spec"]["schedulerName"] = json!("volcano");
    flow.create(&web);
    flow.explains(
        "web",
        &["is pending: its scheduler volcano does not seem to run"],
    );
}

/// What `plimsoll loadline -w` writes to a terminal of 80 columns and 24 rows within some seconds.
fn watched(flow: &Flow) -> String {
    let script = format!("stty rows 24 cols 80; timeout 4 {PLIMSOLL} loadline -w --interval 1s");
    let output = Command::new("script")
        .args(["-qec", &script, "/dev/null"])
        .env("KUBECONFIG", flow.target.kubeconfig())
        .env_remove("COLUMNS")
        .env_remove("LINES")
        .output()
        .expect("script runs: it is in the package bsdutils");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
#[ignore = "tier: tools"]
fn watching_many_nodes_fits_the_screen_and_leaves_nothing_behind() {
    let flow = Flow::start("watch");
    if !flow.target.is_ours() {
        return;
    }
    for number in 0..30 {
        flow.node(&format!("node-{number:02}"));
    }
    let written = watched(&flow);
    let (before, drawn) = written
        .split_once("\x1b[?1049h")
        .expect("it draws on the alternate screen");
    let (drawn, after) = drawn
        .split_once("\x1b[?1049l")
        .expect("it leaves the alternate screen");
    assert_eq!((before.trim(), after.trim()), ("", ""));
    let frames: Vec<&str> = drawn.split("\x1b[H").skip(1).collect();
    assert!(frames.len() >= 2, "{frames:?}");
    for frame in frames {
        let lines = frame.matches('\n').count() + 1;
        assert!(lines <= 24, "{lines} lines: {frame}");
        assert!(frame.contains("nodes   every 1s"), "{frame}");
        assert!(
            frame.contains("NEXT THRESHOLD"),
            "the head is seen: {frame}"
        );
        assert!(frame.contains("more nodes"), "{frame}");
    }
}
