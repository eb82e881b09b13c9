//! The schemas of the metrics API, which k8s-openapi does not have.

use serde_json::{Value, json};

use super::annotate::reference;

const PREFIX: &str = "io.k8s.metrics.pkg.apis.metrics.v1beta1";

pub(super) fn schemas() -> [(String, Value); 3] {
    let container = json!({
        "description": "ContainerMetrics sets resource usage metrics of a container.",
        "type": "object",
        "required": ["name", "usage"],
        "properties": {
            "name": {"description": "Container name corresponding to the one from pod.spec.containers.", "type": "string"},
            "usage": usage(),
        },
    });
    let mut node = measured("NodeMetrics sets resource usage metrics of a node.");
    node["properties"]["usage"] = usage();
    let mut pod = measured("PodMetrics sets resource usage metrics of a pod.");
    pod["properties"]["containers"] = json!({
        "description": "Metrics for all containers are collected within the same time window.",
        "type": "array",
        "items": reference(&format!("{PREFIX}.ContainerMetrics")),
    });
    [
        (format!("{PREFIX}.ContainerMetrics"), container),
        (format!("{PREFIX}.NodeMetrics"), node),
        (format!("{PREFIX}.PodMetrics"), pod),
    ]
}

fn usage() -> Value {
    json!({
        "description": "The memory usage is the memory working set.",
        "type": "object",
        "additionalProperties": reference("io.k8s.apimachinery.pkg.api.resource.Quantity"),
    })
}

fn measured(description: &str) -> Value {
    json!({
        "description": description,
        "type": "object",
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": reference("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"),
            "timestamp": reference("io.k8s.apimachinery.pkg.apis.meta.v1.Time"),
            "window": {"description": "The metrics were collected in the time between timestamp-window and timestamp.", "type": "string"},
        },
    })
}
