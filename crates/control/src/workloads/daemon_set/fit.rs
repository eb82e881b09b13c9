//! On which nodes a daemon's pod should run.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::Node;
use plimsoll_core::admission::daemon_set::create_pod_template;
use plimsoll_core::object::selector::RequiredNodeAffinity;
use plimsoll_core::object::taint::{
    ComparisonOperators, Taint, TaintFilter, Toleration, first_untolerated,
};

/// Whether a pod should run on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// One should be there.
    Run,
    /// None should be started, but one that is there may stay.
    Stay,
    /// None should be there.
    Leave,
}

/// The demands of a daemon set on nodes, read once for all nodes.
#[derive(Clone, Debug)]
pub struct Fitness {
    node_name: String,
    affinity: RequiredNodeAffinity,
    tolerations: Vec<Toleration>,
}

impl Fitness {
    /// Reads the demands of the set's pods.
    pub fn of(set: &DaemonSet) -> Fitness {
        let spec = create_pod_template(set, "").spec.unwrap_or_default();
        let tolerations = spec.tolerations.iter().flatten();
        Fitness {
            tolerations: tolerations.map(Toleration::from_api).collect(),
            affinity: RequiredNodeAffinity::from_spec(&spec),
            node_name: spec.node_name.unwrap_or_default(),
        }
    }

    /// Whether a pod should run on the node. A node selector that cannot be read selects nothing.
    ///
    /// Matches v1.36 pkg/controller/daemon/daemon_controller.go, `NodeShouldRunDaemonPod`.
    pub fn on(&self, node: &Node) -> Fit {
        let name = node.metadata.name.as_deref().unwrap_or_default();
        let is_named = self.node_name.is_empty() || self.node_name == name;
        let no_labels = BTreeMap::new();
        let labels = node.metadata.labels.as_ref().unwrap_or(&no_labels);
        if !is_named || !self.affinity.matches(name, labels).unwrap_or(false) {
            return Fit::Leave;
        }
        let taints = node
            .spec
            .iter()
            .flat_map(|spec| spec.taints.iter().flatten());
        let taints: Vec<Taint> = taints.map(Taint::from_api).collect();
        let is_tolerated = |filter| {
            let comparison = ComparisonOperators::default();
            first_untolerated(&taints, &self.tolerations, filter, comparison).is_none()
        };
        if is_tolerated(TaintFilter::NoScheduleOrNoExecute) {
            Fit::Run
        } else if is_tolerated(TaintFilter::NoExecute) {
            Fit::Stay
        } else {
            Fit::Leave
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn fit(template_spec: Value, node: Value) -> Fit {
        let set = json!({"spec": {"selector": {}, "template": {"spec": template_spec}}});
        let set: DaemonSet = serde_json::from_value(set).unwrap();
        Fitness::of(&set).on(&serde_json::from_value(node).unwrap())
    }

    fn tainted(key: &str, effect: &str) -> Value {
        json!({"metadata": {"name": "n"}, "spec": {"taints": [{"key": key, "effect": effect}]}})
    }

    #[test]
    fn nodes_fit_by_name_labels_and_taints() {
        let plain = json!({"containers": []});
        let node = json!({"metadata": {"name": "n", "labels": {"disk": "ssd"}}});
        let cases = [
            (plain.clone(), node.clone(), Fit::Run),
            (
                json!({"containers": [], "nodeName": "n"}),
                node.clone(),
                Fit::Run,
            ),
            (
                json!({"containers": [], "nodeName": "m"}),
                node.clone(),
                Fit::Leave,
            ),
            (
                json!({"containers": [], "nodeSelector": {"disk": "ssd"}}),
                node.clone(),
                Fit::Run,
            ),
            (
                json!({"containers": [], "nodeSelector": {"disk": "hdd"}}),
                node,
                Fit::Leave,
            ),
            (plain.clone(), tainted("a", "NoSchedule"), Fit::Stay),
            (plain.clone(), tainted("a", "NoExecute"), Fit::Leave),
            (plain.clone(), tainted("a", "PreferNoSchedule"), Fit::Run),
            (
                plain.clone(),
                tainted("node.kubernetes.io/not-ready", "NoExecute"),
                Fit::Run,
            ),
            (
                plain.clone(),
                tainted("node.kubernetes.io/unschedulable", "NoSchedule"),
                Fit::Run,
            ),
            (
                plain,
                tainted("node.kubernetes.io/network-unavailable", "NoSchedule"),
                Fit::Stay,
            ),
        ];
        for (spec, node, expected) in cases {
            assert_eq!(fit(spec.clone(), node.clone()), expected, "{spec} {node}");
        }
    }
}
