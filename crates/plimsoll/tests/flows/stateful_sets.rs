//! Stateful sets make, update and remove their pods in order, and keep their names and claims.

use std::time::Duration;

use serde_json::{Value, json};

use crate::flow::Flow;

const STATUS: &str = "rollout status statefulset db --timeout=60s";
const IMAGES: &str = "get pods -l app=db -o jsonpath={.items[*].spec.containers[0].image}";
const PODS: &str = "get pods -l app=db -o jsonpath={.items[*].metadata.name}";

/// A set of pods of label `app=db`.
fn stateful_set(flow: &Flow, replicas: u32) -> Value {
    let mut set = flow.pods_by_template("StatefulSet", "db");
    set["spec"]["replicas"] = json!(replicas);
    set["spec"]["serviceName"] = json!("db");
    set
}

/// Records which pods come and go while `act` runs, as in `ADDED:db-0`.
fn changes(flow: &Flow, act: impl FnOnce()) -> Vec<String> {
    let watch = "get pods -l app=db --watch-only --output-watch-events \
                 -o jsonpath={.type}:{.object.metadata.name}{\"\\n\"}";
    let mut child = flow.start_kubectl(watch);
    // The watch prints nothing before the first change, so it is given time to begin.
    std::thread::sleep(Duration::from_secs(1));
    act();
    child.kill().expect("kubectl runs");
    let output = child.wait_with_output().expect("kubectl ends");
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    let changes = lines.lines().filter(|line| !line.starts_with("MODIFIED"));
    changes.map(str::to_owned).collect()
}

#[test]
#[ignore = "tier: tools"]
fn a_stateful_set_makes_and_removes_pods_in_order() {
    let flow = Flow::start("stateful");
    flow.node("a");
    let made = changes(&flow, || {
        flow.create(&stateful_set(&flow, 3));
        flow.kubectl(STATUS);
    });
    assert_eq!(made, ["ADDED:db-0", "ADDED:db-1", "ADDED:db-2"]);
    flow.shows(
        "get pod db-1 -o jsonpath={.metadata.labels.statefulset\\.kubernetes\\.io/pod-name},\
         {.metadata.labels.apps\\.kubernetes\\.io/pod-index},{.spec.hostname},{.spec.subdomain}",
        "db-1,1,db-1,db",
    );
    flow.mentions(
        "events --for statefulset/db",
        "Create Pod db-0 in StatefulSet db successful",
    );
    flow.mentions("get statefulset db", "3/3");

    flow.kubectl("delete pod db-1");
    flow.kubectl(STATUS);
    flow.shows(PODS, "db-0 db-1 db-2");

    let removed = changes(&flow, || {
        flow.kubectl("scale statefulset db --replicas=1");
        flow.shows(PODS, "db-0");
    });
    assert_eq!(removed, ["DELETED:db-2", "DELETED:db-1"]);
    flow.shows(
        "get statefulset db -o jsonpath={.status.replicas},{.status.readyReplicas},\
         {.status.availableReplicas},{.status.updatedReplicas},{.status.currentReplicas}",
        "1,1,1,1,1",
    );
    flow.kubectl("delete statefulset db");
    flow.is_gone("pod/db-0");
}

#[test]
#[ignore = "tier: tools"]
fn a_stateful_set_is_rolled_by_partition_and_undone() {
    let flow = Flow::start("stateful-roll");
    flow.node("a");
    let mut set = stateful_set(&flow, 3);
    set["spec"]["updateStrategy"] =
        json!({ "type": "RollingUpdate", "rollingUpdate": { "partition": 2 } });
    flow.create(&set);
    flow.kubectl(STATUS);
    flow.kubectl("set image statefulset db main=busybox:2");
    flow.kubectl(STATUS);
    flow.shows(IMAGES, "busybox:1 busybox:1 busybox:2");
    // What is below the partition comes back as it was.
    flow.kubectl("delete pod db-0");
    flow.shows(PODS, "db-0 db-1 db-2");
    flow.shows(IMAGES, "busybox:1 busybox:1 busybox:2");

    let whole = json!({ "spec": { "updateStrategy": { "rollingUpdate": { "partition": 0 } } } });
    let rolled = changes(&flow, || {
        flow.kubectl(&format!("patch statefulset db -p {whole}"));
        flow.shows(IMAGES, "busybox:2 busybox:2 busybox:2");
    });
    assert_eq!(
        rolled,
        ["DELETED:db-1", "ADDED:db-1", "DELETED:db-0", "ADDED:db-0"]
    );
    flow.kubectl(STATUS);
    let history = flow.kubectl("rollout history statefulset db");
    assert!(
        history.contains("\n1 ") && history.contains("\n2 "),
        "{history}"
    );

    flow.kubectl("rollout undo statefulset db");
    flow.kubectl(STATUS);
    flow.shows(IMAGES, "busybox:1 busybox:1 busybox:1");
    let revisions = "get controllerrevisions -l app=db -o jsonpath={.items[*].revision}";
    flow.until(revisions, "the second and the third", |shown| {
        let mut numbers: Vec<&str> = shown.split_whitespace().collect();
        numbers.sort_unstable();
        numbers == ["2", "3"]
    });
    flow.until(
        "get statefulset db -o jsonpath={.status.currentRevision},{.status.updateRevision}",
        "one revision",
        |shown| {
            shown
                .split_once(',')
                .is_some_and(|(a, b)| a == b && a.starts_with("db-"))
        },
    );
}

#[test]
#[ignore = "tier: tools"]
fn a_stateful_set_makes_claims_and_they_go_with_it() {
    let flow = Flow::start("stateful-claims");
    flow.node("a");
    let mut set = stateful_set(&flow, 1);
    set["spec"]["podManagementPolicy"] = json!("Parallel");
    set["spec"]["persistentVolumeClaimRetentionPolicy"] =
        json!({ "whenDeleted": "Delete", "whenScaled": "Retain" });
    set["spec"]["volumeClaimTemplates"] = json!([{
        "metadata": { "name": "data" },
        "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } },
        },
    }]);
    flow.create(&set);
    flow.shows("get pvc -o jsonpath={.items[*].metadata.name}", "data-db-0");
    flow.shows(
        "get pvc data-db-0 -o jsonpath={.metadata.labels.app},{.metadata.ownerReferences[*].kind}",
        "db,StatefulSet",
    );
    flow.shows(
        "get pod db-0 -o jsonpath={.spec.volumes[0].persistentVolumeClaim.claimName}",
        "data-db-0",
    );
    flow.mentions(
        "events --for statefulset/db",
        "Create Claim data-db-0 Pod db-0 in StatefulSet db success",
    );
    let retain =
        json!({ "spec": { "persistentVolumeClaimRetentionPolicy": { "whenDeleted": "Retain" } } });
    flow.kubectl(&format!("patch statefulset db -p {retain}"));
    flow.shows(
        "get pvc data-db-0 -o jsonpath={.metadata.ownerReferences}",
        "",
    );
}
