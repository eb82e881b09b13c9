//! Whether the node takes a pod: what it has left, its labels, ports and taints, and pressure.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, Pod};
use plimsoll_core::admission::node_admit::{PressureRule, admit as admit_under_pressure};
use plimsoll_core::object::node::{NodeCondition, NodeView};
use plimsoll_core::object::pod::PodView;
use plimsoll_core::object::taint::ComparisonOperators;
use plimsoll_core::scheduling::on_node::admit as admit_on_node;
use plimsoll_core::scheduling::pod::SchedulingPod;

use crate::pods::anatomy;
use crate::pods::status::Forced;

/// Why a pod is not taken, as its status says it. Matches v1.36 pkg/kubelet/kubelet.go,
/// `rejectPod`.
fn rejected(reason: impl Into<String>, message: &str) -> Forced {
    Forced {
        reason: reason.into(),
        message: format!("Pod was rejected: {message}"),
        is_disruption: false,
    }
}

/// Takes the pod or says why not. `others` are the pods that the node has taken and that may run.
pub(super) fn admit(
    pod: &Pod,
    node: &Node,
    others: &[Arc<Pod>],
    pressure: &BTreeSet<NodeCondition>,
    rule: PressureRule,
) -> Result<(), Forced> {
    let unexpected = |what: &dyn std::fmt::Display| {
        rejected(
            "UnexpectedAdmissionError",
            &format!("{what}, which is unexpected."),
        )
    };
    let told = |problems: Vec<plimsoll_core::problem::Problem>| {
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        unexpected(&problems.join("; "))
    };
    let view = PodView::from_api(pod).map_err(told)?;
    admit_under_pressure(&view, pressure, rule, ComparisonOperators::Disabled)
        .map_err(|rejection| rejected(rejection.reason, &rejection.message))?;
    if let Some(os) = pod.spec.as_ref().and_then(|spec| spec.os.as_ref())
        && os.name != std::env::consts::OS
    {
        let message = "Failed to admit pod as the OS field doesn't match node OS";
        return Err(rejected("PodOSNotSupported", message));
    }
    let wanted = SchedulingPod::from_api(pod).map_err(told)?;
    let node = NodeView::from_api(node).map_err(told)?;
    let others = others
        .iter()
        .filter(|other| anatomy::uid(other) != anatomy::uid(pod));
    let others = others.filter_map(|other| SchedulingPod::from_api(other).ok().map(Arc::new));
    admit_on_node(&wanted, Arc::new(node), others, anatomy::is_static(pod))
        .map_err(|refusal| rejected(refusal.reason, &refusal.message))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(name: &str, cpu: &str) -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": name, "namespace": "ns", "uid": name},
            "spec": {"nodeName": "n1", "containers": [
                {"name": "c", "resources": {"requests": {"cpu": cpu}}},
            ]},
        }))
        .unwrap()
    }

    fn node() -> Node {
        serde_json::from_value(json!({
            "metadata": {"name": "n1"},
            "status": {"allocatable": {"cpu": "2", "memory": "1Gi", "pods": "10"}},
        }))
        .unwrap()
    }

    fn verdict(
        pod: &Pod,
        others: &[Arc<Pod>],
        pressure: &[NodeCondition],
    ) -> Option<(String, String)> {
        let pressure = pressure.iter().copied().collect();
        let verdict = admit(pod, &node(), others, &pressure, PressureRule::V1_36);
        verdict.err().map(|forced| (forced.reason, forced.message))
    }

    #[test]
    fn a_pod_is_taken_if_there_is_room_beside_the_others() {
        let new = pod("b", "1500m");
        assert_eq!(verdict(&new, &[], &[]), None);
        // The same pod, seen again, is not beside itself.
        assert_eq!(verdict(&new, &[Arc::new(new.clone())], &[]), None);
        let (reason, message) = verdict(&new, &[Arc::new(pod("a", "1"))], &[]).unwrap();
        assert_eq!(reason, "OutOfcpu");
        assert!(message.starts_with("Pod was rejected: Node didn't have enough resource: cpu"));
    }

    #[test]
    fn pressure_keeps_pods_out() {
        let (reason, message) =
            verdict(&pod("b", "1"), &[], &[NodeCondition::DiskPressure]).unwrap();
        assert_eq!(reason, "Evicted");
        assert_eq!(
            message,
            "Pod was rejected: The node had condition: [DiskPressure]. "
        );
    }
}
