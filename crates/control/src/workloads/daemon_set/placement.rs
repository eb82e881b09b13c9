//! Which of a daemon set's pods belongs to which node.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;

use crate::workloads::pod_state;

/// The pods of each node, by node name. A node with an entry but no pods had one that is leaving.
pub type Placement<'a> = BTreeMap<&'a str, Vec<&'a Pod>>;

/// Whether pods that have ended and are being deleted still count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TerminatedPods {
    /// They matter: their revisions are still in use.
    Included,
    /// They do not; only their finalizers hold them.
    Left,
}

/// Sorts the pods by node. Pods of no node are left out.
pub fn placement<'a>(pods: &[&'a Pod], leaving: TerminatedPods) -> Placement<'a> {
    let mut placed = Placement::new();
    for pod in pods {
        let has_left = pod_state::is_terminal(pod) && pod.metadata.deletion_timestamp.is_some();
        if has_left && leaving == TerminatedPods::Left {
            continue;
        }
        if let Some(node) = target_node(pod) {
            placed.entry(node).or_default().push(pod);
        }
    }
    placed
}

/// The node the pod is bound to, or made for.
pub fn target_node(pod: &Pod) -> Option<&str> {
    let spec = pod.spec.as_ref()?;
    if let Some(node) = spec.node_name.as_deref().filter(|name| !name.is_empty()) {
        return Some(node);
    }
    let affinity = spec.affinity.as_ref()?.node_affinity.as_ref()?;
    let required = affinity
        .required_during_scheduling_ignored_during_execution
        .as_ref()?;
    let fields = required
        .node_selector_terms
        .iter()
        .flat_map(|term| term.match_fields.iter().flatten());
    let mut by_name = fields.filter(|field| field.key == "metadata.name" && field.operator == "In");
    match by_name.next()?.values.as_deref()? {
        [name] => Some(name),
        _ => None,
    }
}

/// Sorts bound pods before unbound ones, then older before younger ones.
pub(super) fn sort_by_age(pods: &mut [&Pod]) {
    pods.sort_by_key(|pod| {
        let is_unbound = pod_state::node_name(pod).is_empty();
        (is_unbound, pod_state::created(pod), pod_state::name(pod))
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn pod(value: Value) -> Pod {
        serde_json::from_value(value).unwrap()
    }

    fn made_for(names: Value) -> Value {
        let field = json!({"key": "metadata.name", "operator": "In", "values": names});
        let required = json!({"nodeSelectorTerms": [{"matchFields": [field]}]});
        json!({"containers": [], "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}})
    }

    #[test]
    fn unbound_pod_belongs_to_node_of_its_affinity() {
        assert_eq!(
            target_node(&pod(json!({"spec": {"containers": [], "nodeName": "a"}}))),
            Some("a")
        );
        assert_eq!(
            target_node(&pod(json!({"spec": made_for(json!(["b"]))}))),
            Some("b")
        );
        assert_eq!(
            target_node(&pod(json!({"spec": made_for(json!(["b", "c"]))}))),
            None
        );
        assert_eq!(target_node(&pod(json!({"spec": {"containers": []}}))), None);
    }

    #[test]
    fn finished_terminating_pods_are_not_placed() {
        let left = pod(json!({
            "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"containers": [], "nodeName": "a"}, "status": {"phase": "Failed"},
        }));
        assert!(placement(&[&left], TerminatedPods::Left).is_empty());
        assert_eq!(placement(&[&left], TerminatedPods::Included)["a"].len(), 1);
    }
}
