//! Default objects of tests, which each test modifies.

use serde_json::{Value, json};

use crate::cluster::{Cluster, IMAGE};

/// A container that runs a script in a shell.
pub(crate) fn container(name: &str, script: &str) -> Value {
    json!({ "name": name, "image": IMAGE, "command": ["sh", "-c", script] })
}

/// A container that waits, with these `resources`.
pub(crate) fn sized(name: &str, resources: &Value) -> Value {
    let mut container = container(name, WAIT);
    container["resources"] = resources.clone();
    container
}

/// A script that waits for SIGTERM and then exits at once.
pub(crate) const WAIT: &str = "trap exit TERM; while true; do sleep 1 & wait; done";

/// A pod of these containers with a short grace period.
pub(crate) fn pod(name: &str, containers: &[Value]) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "labels": { "app": name } },
        "spec": { "containers": containers, "terminationGracePeriodSeconds": 2 },
    })
}

impl Cluster {
    /// Creates a pod and waits until it runs; returns the pod.
    pub(crate) fn run(&self, pod: &Value) -> Value {
        self.create(pod);
        self.until_running(&pod["metadata"]["name"])
    }

    /// Waits until all containers of a pod are ready; returns the pod.
    pub(crate) fn until_running(&self, name: &Value) -> Value {
        let name = name.as_str().expect("pods have names");
        self.until_object(&format!("pod {name}"), "running", |pod| {
            let containers = pod["status"]["containerStatuses"].as_array();
            containers.is_some_and(|all| {
                all.len() == pod["spec"]["containers"].as_array().map_or(0, Vec::len)
                    && all.iter().all(|one| one["ready"] == true)
            })
        })
    }

    /// Waits until a pod is in this phase; returns the pod.
    pub(crate) fn until_phase(&self, name: &str, phase: &str) -> Value {
        self.until_object(&format!("pod {name}"), phase, |pod| {
            pod["status"]["phase"] == phase
        })
    }
}

/// The status of a container of a pod.
pub(crate) fn status<'a>(pod: &'a Value, container: &str) -> &'a Value {
    let kinds = ["containerStatuses", "initContainerStatuses"];
    let all = kinds
        .iter()
        .filter_map(|kind| pod["status"][kind].as_array());
    let mut all = all.flatten();
    let found = all.find(|status| status["name"] == container);
    found.unwrap_or_else(|| panic!("no status of {container} in {pod:#}"))
}

/// The runtime's id of a container of a pod, without the runtime's name.
pub(crate) fn container_id<'a>(pod: &'a Value, container: &str) -> &'a str {
    let id = status(pod, container)["containerID"].as_str();
    let id = id.and_then(|id| id.split_once("://"));
    id.unwrap_or_else(|| panic!("{container} has no id in {pod:#}"))
        .1
}

/// Whether a pod's status reports that it was preempted for others.
pub(crate) fn is_disrupted(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|condition| {
        condition["type"] == "DisruptionTarget"
            && condition["status"] == "True"
            && condition["reason"] == "TerminationByKubelet"
    })
}
