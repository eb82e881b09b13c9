//! Many pods at once, created by controllers.

use plimsoll_testkit::waiting::until;
use serde_json::json;

use crate::cluster::{Cluster, on_both_runtimes};
use crate::manifest::{WAIT, container};

on_both_runtimes!(a_deployment_is_rolled_out_and_scaled, a_job_completes);

fn a_deployment_is_rolled_out_and_scaled(cluster: &mut Cluster) {
    cluster.create(&json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" },
        "spec": {
            "replicas": 5,
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": {
                    "containers": [container("main", WAIT)],
                    "terminationGracePeriodSeconds": 2,
                },
            },
        },
    }));
    cluster.kubectl("rollout status deployment web --timeout=120s");
    cluster.shows(
        "get deployment web -o jsonpath={.status.readyReplicas}",
        "5",
    );
    let addresses = cluster.kubectl("get pods -l app=web -o jsonpath={.items[*].status.podIP}");
    let mut addresses: Vec<&str> = addresses.split(' ').collect();
    addresses.sort_unstable();
    addresses.dedup();
    assert_eq!(addresses.len(), 5, "{addresses:?}");
    cluster.kubectl("set env deployment web NEW=yes");
    cluster.kubectl("rollout status deployment web --timeout=120s");
    cluster.kubectl("scale deployment web --replicas=2");
    cluster.until("get pods -l app=web -o name", "two pods", |shown| {
        shown.lines().count() == 2
    });
    cluster.kubectl("delete deployment web --wait=false");
    cluster.shows("get pods -o name", "");
    until("no pod has left a folder behind", || {
        let left = std::fs::read_dir(cluster.data_dir().join("kubelet/pods"));
        match left.expect("the folder is there").count() {
            0 => Ok(()),
            count => Err(format!("{count} are left")),
        }
    });
}

fn a_job_completes(cluster: &mut Cluster) {
    cluster.create(&json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": "sum" },
        "spec": {
            "completions": 3, "parallelism": 2,
            "template": { "spec": {
                "restartPolicy": "Never",
                "containers": [container("main", "echo $((6 * 7))")],
            } },
        },
    }));
    cluster.kubectl("wait --for=condition=complete job/sum --timeout=120s");
    cluster.shows("get job sum -o jsonpath={.status.succeeded}", "3");
    cluster.shows("logs -l job-name=sum", "42\n42\n42\n");
}
