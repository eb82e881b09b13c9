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
            let answer = self.plimsoll(&["explain", "pod", pod, "-n", &self.name]);
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
                &format!("POD {}/big is pending: no node will do", flow.name),
                "0/3 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated",
                "NodeResourcesFit: Insufficient cpu (asks for cpu 6, 4 of 4 free)",
                "TaintToleration: node(s) had untolerated taint(s) (dedicated=gpu:NoSchedule)",
                "NodeUnschedulable: node(s) were unschedulable",
                &format!("{small}: it is too small by cpu 2: ask for at most cpu 4"),
                &format!("{tainted}: let the pod tolerate dedicated=gpu:NoSchedule"),
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
                "It was the only node that would do.",
                "As things are now and without the pod, 1 of 4 nodes would do",
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
                "2 nodes would have done; it had the best score, ",
                "2 of 4 nodes would do",
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
