//! Default objects of flows, which each flow modifies.

use serde_json::{Value, json};

use crate::flow::Flow;

impl Flow {
    /// A pod with one container that requests these resources, on nodes of the flow.
    pub(crate) fn pod(&self, name: &str, requests: &Value) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": { "name": name, "labels": { "app": name } },
            "spec": self.pod_spec(requests),
        })
    }

    /// Many equal pods of label `app=<name>`.
    pub(crate) fn deployment(&self, name: &str, replicas: u32) -> Value {
        let mut deployment = self.pods_by_template("Deployment", name);
        deployment["spec"]["replicas"] = json!(replicas);
        deployment
    }

    /// A pod of label `app=<name>` on each node of the flow.
    pub(crate) fn daemon_set(&self, name: &str) -> Value {
        self.pods_by_template("DaemonSet", name)
    }

    /// An owner in the group `apps` of pods of label `app=<name>`.
    pub(crate) fn pods_by_template(&self, kind: &str, name: &str) -> Value {
        let labels = json!({ "app": name });
        json!({
            "apiVersion": "apps/v1", "kind": kind, "metadata": { "name": name },
            "spec": {
                "selector": { "matchLabels": labels },
                "template": {
                    "metadata": { "labels": labels },
                    "spec": self.pod_spec(&json!({ "cpu": "10m" })),
                },
            },
        })
    }

    /// A job whose pods run that command.
    pub(crate) fn job(&self, name: &str, command: &str) -> Value {
        let mut spec = self.pod_spec(&json!({ "cpu": "10m" }));
        spec["restartPolicy"] = json!("Never");
        spec["containers"][0]["command"] = json!([command]);
        json!({
            "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": name },
            "spec": { "template": { "spec": spec } },
        })
    }

    fn pod_spec(&self, requests: &Value) -> Value {
        json!({
            "nodeSelector": { "flow": self.name },
            "terminationGracePeriodSeconds": 1,
            "containers": [{
                "name": "main", "image": "busybox:1", "command": ["sleep", "inf"],
                "resources": { "requests": requests },
            }],
        })
    }

    /// A class of pods that come before others, named after the flow.
    pub(crate) fn priority_class(&self, name: &str, value: i32) -> Value {
        json!({
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": value,
            "metadata": {
                "name": format!("{}-{name}", self.name), "labels": { "flow": self.name },
            },
        })
    }
}
