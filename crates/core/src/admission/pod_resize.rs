//! PodResizeValidator: no pod is resized beyond what its node has for pods.
//!
//! Matches v1.36 plugin/pkg/admission/podresize/admission.go.

use crate::object::node::NodeView;
use crate::object::pod::{Overhead, PodView};
use crate::problem::quoted;
use crate::resources::ResourceName;

/// The label of a node with its operating system.
const OS_LABEL: &str = "kubernetes.io/os";

/// Why a pod is not resized.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResizeRefusal {
    /// The type of the cause in the answer.
    pub cause: &'static str,
    /// The reason in the message.
    pub message: String,
}

/// Whether the node could ever give a pod that is resized what it then requests.
pub fn admit(resized: &PodView, node: &NodeView) -> Result<(), ResizeRefusal> {
    if let Some(os) = node.labels.get(OS_LABEL).filter(|os| *os != "linux") {
        let message = format!(
            "pod resize is only supported on linux nodes, node {} is {}",
            quoted(node.name.as_str()),
            quoted(os)
        );
        return Err(ResizeRefusal {
            cause: "UnsupportedPlatform",
            message,
        });
    }
    let requests = resized.requests(Overhead::Included);
    let lists = [&requests, &node.allocatable.list];
    let mut short = Vec::new();
    let [cpu, cpu_allocatable] = lists.map(|list| list.get_or_zero(&ResourceName::CPU));
    if cpu > cpu_allocatable {
        let (requested, allocatable) = (cpu.milli_value(), cpu_allocatable.milli_value());
        short.push(format!(
            "cpu, requested: {requested}, allocatable: {allocatable}"
        ));
    }
    let [memory, memory_allocatable] = lists.map(|list| list.get_or_zero(&ResourceName::MEMORY));
    if memory > memory_allocatable {
        let (requested, allocatable) = (memory.value(), memory_allocatable.value());
        short.push(format!(
            "memory, requested: {requested}, allocatable: {allocatable}"
        ));
    }
    match short.is_empty() {
        true => Ok(()),
        false => Err(ResizeRefusal {
            cause: "NodeCapacity",
            message: format!(
                "node didn't have enough allocatable resources: {}",
                short.join("; ")
            ),
        }),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{Node, Pod};
    use serde_json::json;

    use super::*;

    fn verdict(cpu: &str, memory: &str, os: &str) -> Result<(), ResizeRefusal> {
        let pod: Pod = serde_json::from_value(json!({ "spec": { "containers": [{
            "name": "a", "resources": { "requests": { "cpu": cpu, "memory": memory } },
        }] } }))
        .unwrap();
        let node: Node = serde_json::from_value(json!({
            "metadata": { "name": "n1", "labels": { OS_LABEL: os } },
            "status": { "allocatable": { "cpu": "2", "memory": "1Gi" } },
        }))
        .unwrap();
        let node = NodeView::from_api(&node).unwrap();
        admit(&PodView::from_api(&pod).unwrap(), &node)
    }

    #[test]
    fn a_pod_may_request_all_that_is_allocatable_and_no_more() {
        assert_eq!(verdict("2", "1Gi", "linux"), Ok(()));
        let message = |cpu, memory| verdict(cpu, memory, "linux").unwrap_err().message;
        assert_eq!(
            message("2001m", "1Gi"),
            "node didn't have enough allocatable resources: cpu, requested: 2001, allocatable: 2000"
        );
        assert_eq!(
            message("3", "2Gi"),
            "node didn't have enough allocatable resources: cpu, requested: 3000, \
             allocatable: 2000; memory, requested: 2147483648, allocatable: 1073741824"
        );
    }

    #[test]
    fn pods_on_nodes_of_another_system_are_not_resized() {
        let refusal = verdict("1", "1Mi", "windows").unwrap_err();
        assert_eq!(refusal.cause, "UnsupportedPlatform");
        assert_eq!(
            refusal.message,
            "pod resize is only supported on linux nodes, node \"n1\" is \"windows\""
        );
    }
}
