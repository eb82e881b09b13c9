//! A node's own check of a pod that was bound to it.
//!
//! Nodes look again at what the scheduler looked at, since others may have bound pods meanwhile.
//! Matches v1.36 pkg/kubelet/lifecycle/predicate.go and the scheduler's `AdmissionCheck`.

use std::sync::Arc;

use crate::object::node::NodeView;
use crate::object::taint::{ComparisonOperators, Effect, is_tolerated};
use crate::resources::ResourceName;

use super::cluster::NodeState;
use super::plugins::{node_affinity, node_name, node_ports};
use super::pod::SchedulingPod;
use super::profile::AddedAffinity;

/// Why a node does not take a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Goes to `status.reason`.
    pub reason: String,
    /// Goes to `status.message`, behind the words of a rejection.
    pub message: String,
}

/// Whether the node takes the pod beside those it has. `is_static` pods stay whatever taints there
/// are. Of several reasons upstream tells the first.
pub fn admit(
    pod: &SchedulingPod,
    node: Arc<NodeView>,
    others: impl IntoIterator<Item = Arc<SchedulingPod>>,
    is_static: bool,
) -> Result<(), Refusal> {
    let mut state = NodeState::new(Arc::clone(&node));
    for other in others {
        state.add_pod(other);
    }
    if let Some(refusal) = lack(pod, &state) {
        return Err(refusal);
    }
    let failed = |predicate: &str, reason: &str| Refusal {
        reason: predicate.to_owned(),
        message: format!("Predicate {predicate} failed: {reason}"),
    };
    let rejection = node_affinity::filter(pod, &AddedAffinity::default(), &node)
        .or_else(|| node_name::filter(pod, &node))
        .or_else(|| node_ports::filter(pod, &state));
    if let Some(rejection) = rejection {
        let reason = rejection.reasons.first().map(|reason| &**reason);
        let plugin = rejection.plugin.map_or("", |plugin| plugin.as_str());
        return Err(failed(plugin, reason.unwrap_or_default()));
    }
    let is_driven_off = |taint: &&crate::object::taint::Taint| {
        taint.effect == Effect::NoExecute
            && !is_tolerated(taint, &pod.tolerations, ComparisonOperators::Disabled)
    };
    if !is_static && node.taints.iter().any(|taint| is_driven_off(&taint)) {
        let reason = "node(s) had taints that the pod didn't tolerate";
        return Err(failed("TaintToleration", reason));
    }
    Ok(())
}

/// The first resource of which there is too little. Resources that the node does not list at all
/// are others' business.
fn lack(pod: &SchedulingPod, node: &NodeState) -> Option<Refusal> {
    let running = i64::try_from(node.pods().len()).unwrap_or(i64::MAX);
    if running.saturating_add(1) > node.allowed_pods {
        return Some(out_of("OutOfpods", "pods", [1, running, node.allowed_pods]));
    }
    let (wanted, has, used) = (&pod.requests.incoming, &node.allocatable, node.requested());
    let plain = [
        (
            "OutOfcpu",
            "cpu",
            [wanted.milli_cpu, used.milli_cpu, has.milli_cpu],
        ),
        (
            "OutOfmemory",
            "memory",
            [wanted.memory, used.memory, has.memory],
        ),
        (
            "OutOfephemeral-storage",
            "ephemeral-storage",
            [
                wanted.ephemeral_storage,
                used.ephemeral_storage,
                has.ephemeral_storage,
            ],
        ),
    ];
    let is_short = |[wanted, used, has]: [i64; 3]| wanted > 0 && wanted > has.saturating_sub(used);
    for (reason, name, figures) in plain {
        if is_short(figures) {
            return Some(out_of(reason, name, figures));
        }
    }
    wanted.scalars.iter().find_map(|(name, wanted)| {
        let has = *has.scalars.get(name)?;
        let figures = [*wanted, used.scalars.get(name).copied().unwrap_or(0), has];
        let name: &ResourceName = name;
        is_short(figures).then(|| out_of(&format!("OutOf{name}"), name.as_str(), figures))
    })
}

fn out_of(reason: &str, resource: &str, [requested, used, capacity]: [i64; 3]) -> Refusal {
    Refusal {
        reason: reason.to_owned(),
        message: format!(
            "Node didn't have enough resource: {resource}, requested: {requested}, used: {used}, \
             capacity: {capacity}"
        ),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{Node, Pod};
    use serde_json::{Value, json};

    use super::*;

    fn pod(name: &str, cpu: &str, spec: Value) -> Arc<SchedulingPod> {
        let mut pod = json!({
            "metadata": {"name": name, "namespace": "ns", "uid": name},
            "spec": {"nodeName": "n1", "containers": [
                {"name": "c", "resources": {"requests": {"cpu": cpu}}},
            ]},
        });
        for (key, value) in spec.as_object().into_iter().flatten() {
            pod["spec"][key] = value.clone();
        }
        let pod: Pod = serde_json::from_value(pod).unwrap();
        Arc::new(SchedulingPod::from_api(&pod).unwrap())
    }

    fn node(taints: Value) -> Arc<NodeView> {
        let node: Node = serde_json::from_value(json!({
            "metadata": {"name": "n1", "labels": {"zone": "a"}},
            "spec": {"taints": taints},
            "status": {"allocatable": {"cpu": "2", "memory": "1Gi", "pods": "2"}},
        }))
        .unwrap();
        Arc::new(NodeView::from_api(&node).unwrap())
    }

    fn refusal(pod: &SchedulingPod, others: Vec<Arc<SchedulingPod>>) -> (String, String) {
        let refusal = admit(pod, node(json!([])), others, false).unwrap_err();
        (refusal.reason, refusal.message)
    }

    #[test]
    fn what_is_short_is_told_with_its_figures() {
        let two = pod("b", "1500m", json!({}));
        assert!(admit(&two, node(json!([])), [], false).is_ok());
        let (reason, message) = refusal(&two, vec![pod("a", "1", json!({}))]);
        assert_eq!(reason, "OutOfcpu");
        assert_eq!(
            message,
            "Node didn't have enough resource: cpu, requested: 1500, used: 1000, capacity: 2000"
        );
        let full = vec![pod("a", "0", json!({})), pod("c", "0", json!({}))];
        assert_eq!(refusal(&pod("b", "0", json!({})), full).0, "OutOfpods");
    }

    #[test]
    fn selectors_ports_and_taints_are_looked_at_again() {
        let elsewhere = pod("b", "1", json!({"nodeSelector": {"zone": "b"}}));
        let (reason, message) = refusal(&elsewhere, vec![]);
        assert_eq!(reason, "NodeAffinity");
        assert_eq!(
            message,
            "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
        );
        let ports = json!({"containers": [{"name": "c", "ports": [
            {"containerPort": 80, "hostPort": 80, "protocol": "TCP"}
        ]}]});
        let taken = vec![pod("a", "0", ports.clone())];
        assert_eq!(refusal(&pod("b", "0", ports), taken).0, "NodePorts");
        let taints = json!([{"key": "k", "effect": "NoExecute"}]);
        let plain = pod("b", "1", json!({}));
        let refused = admit(&plain, node(taints.clone()), [], false).unwrap_err();
        assert_eq!(refused.reason, "TaintToleration");
        assert!(admit(&plain, node(taints), [], true).is_ok());
    }
}
