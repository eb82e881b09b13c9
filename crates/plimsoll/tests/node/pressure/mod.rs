//! Nodes under pressure, and the pods that cause it.
//!
//! Each test has a small resource of its own: a file system in a file ([`disk`]), or the number of
//! processes of a cgroup.

mod disk;
mod full_disk;
mod full_image_disk;
mod full_logs;
mod kept_away;
mod local_limits;
mod metrics;
mod process_ids;
mod project_quotas;
mod restart;

use serde_json::{Value, json};

use crate::cluster::{Cluster, NODE, configured};
use crate::manifest::{WAIT, container, is_disrupted, pod};

/// The events of the node. `kubectl events --for` requires an API version in the event, which those
/// of kubelets lack.
const NODE_EVENTS: &str = "get events --field-selector involvedObject.kind=Node";

/// The statistics of the node and its pods.
const SUMMARY: &str = "get --raw /api/v1/nodes/n1/proxy/stats/summary";

/// A pod that writes some MiB into a directory on disk of its own, and waits.
fn holder(name: &str, mebibytes: u32) -> Value {
    let script = format!("dd if=/dev/zero of=/scratch/f bs=1M count={mebibytes}; {WAIT}");
    with_scratch(name, &script)
}

/// A pod with a directory on disk of its own, below `/scratch`.
fn with_scratch(name: &str, script: &str) -> Value {
    let mut main = container("main", script);
    main["volumeMounts"] = json!([{ "name": "scratch", "mountPath": "/scratch" }]);
    let mut pod = pod(name, &[main]);
    pod["spec"]["volumes"] = json!([{ "name": "scratch", "emptyDir": {} }]);
    pod
}

/// The status of a condition of the node.
fn condition(node: &Value, name: &str) -> Value {
    let conditions = node["status"]["conditions"].as_array();
    let found = conditions
        .into_iter()
        .flatten()
        .find(|condition| condition["type"] == name);
    found.cloned().unwrap_or_default()
}

impl Cluster {
    /// Waits until the node has, or no longer has, a pressure condition and its taint.
    fn until_pressed(&self, name: &str, taint: &str, is_pressed: bool) -> Value {
        let wanted = if is_pressed { "True" } else { "False" };
        let what = format!("with {name}={wanted}");
        self.until_object(&format!("node {NODE}"), &what, |node| {
            let taints = node["spec"]["taints"].as_array();
            let mut taints = taints.into_iter().flatten();
            let is_tainted =
                taints.any(|found| found["key"] == taint && found["effect"] == "NoSchedule");
            condition(node, name)["status"] == wanted && is_tainted == is_pressed
        })
    }

    /// Waits until a pod is evicted; returns the pod and its message.
    fn until_evicted(&self, name: &str) -> (Value, String) {
        let pod = self.until_phase(name, "Failed");
        assert_eq!(pod["status"]["reason"], "Evicted", "{pod:#}");
        let message = pod["status"]["message"].as_str().expect("a message");
        let message = message.to_owned();
        self.until(
            &format!("events --for pod/{name}"),
            "why it was evicted",
            |events| events.contains("Evicted") && events.contains(message.trim_end()),
        );
        (pod, message)
    }

    /// Waits until the scheduler reports that no node fits a pod because of a taint.
    fn until_kept_away(&self, name: &str) {
        self.until_object(&format!("pod {name}"), "kept away", |pod| {
            let conditions = pod["status"]["conditions"].as_array();
            let mut conditions = conditions.into_iter().flatten();
            conditions.any(|condition| {
                let printed = condition["message"].as_str().unwrap_or_default();
                condition["type"] == "PodScheduled" && printed.contains("untolerated taint")
            })
        });
    }

    /// Runs a pod and waits until the node has measured its usage, which decides the eviction.
    fn run_holder(&self, pod: &Value, mebibytes: u64) {
        self.run_until_known(pod, "usedBytes", mebibytes << 20);
    }

    /// Runs a pod and waits until the node has measured this disk usage of it.
    fn run_until_known(&self, pod: &Value, figure: &str, least: u64) {
        self.run(pod);
        let name = &pod["metadata"]["name"];
        self.until(SUMMARY, "what the pod holds", |summary| {
            let summary: Value = serde_json::from_str(summary).unwrap_or_default();
            let mut pods = summary["pods"].as_array().into_iter().flatten();
            let pod = pods.find(|pod| pod["podRef"]["name"] == *name);
            let held = pod.and_then(|pod| pod["ephemeral-storage"][figure].as_u64());
            held.is_some_and(|held| held >= least)
        });
    }

    /// All of these pods run.
    fn run_on(&self, names: &[&str]) {
        for name in names {
            let pod = self.get(&format!("pod {name}"));
            assert_eq!(pod["status"]["phase"], "Running", "{pod:#}");
            let statuses = pod["status"]["containerStatuses"].as_array();
            let mut statuses = statuses.into_iter().flatten();
            assert!(
                statuses.all(|status| status["restartCount"] == 0),
                "{pod:#}"
            );
        }
    }
}
