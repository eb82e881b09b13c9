//! Defaults of the DaemonSet controller for its pods.
//!
//! Matches v1.36 pkg/controller/daemon/util/daemonset_util.go.

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{
    NodeSelectorRequirement, NodeSelectorTerm, PodSpec, PodTemplateSpec, Toleration,
};

use crate::object::identity::NodeName;
use crate::object::taint::{
    NODE_DISK_PRESSURE, NODE_MEMORY_PRESSURE, NODE_NETWORK_UNAVAILABLE, NODE_NOT_READY,
    NODE_PID_PRESSURE, NODE_UNREACHABLE, NODE_UNSCHEDULABLE,
};

const TEMPLATE_GENERATION_ANNOTATION: &str = "deprecated.daemonset.template.generation";
const TEMPLATE_GENERATION_LABEL: &str = "pod-template-generation";
const REVISION_HASH_LABEL: &str = "controller-revision-hash";

/// The set's pod template with the labels and tolerations of its pods; `hash` names the revision.
pub fn create_pod_template(daemon_set: &DaemonSet, hash: &str) -> PodTemplateSpec {
    let spec = daemon_set.spec.as_ref();
    let mut template = spec.map(|spec| spec.template.clone()).unwrap_or_default();
    add_tolerations(template.spec.get_or_insert_default());
    let metadata = template.metadata.get_or_insert_default();
    let labels = metadata.labels.get_or_insert_default();
    if let Some(generation) = template_generation(daemon_set) {
        labels.insert(TEMPLATE_GENERATION_LABEL.to_owned(), generation.to_string());
    }
    if !hash.is_empty() {
        labels.insert(REVISION_HASH_LABEL.to_owned(), hash.to_owned());
    }
    template
}

/// Makes the pod one for this node: its required node affinity becomes the node's name, other
/// affinities stay.
pub fn assign_to_node(spec: &mut PodSpec, node: &NodeName) {
    let affinity = spec.affinity.get_or_insert_default();
    let affinity = affinity.node_affinity.get_or_insert_default();
    let required = &mut affinity.required_during_scheduling_ignored_during_execution;
    required.get_or_insert_default().node_selector_terms = vec![NodeSelectorTerm {
        match_fields: Some(vec![NodeSelectorRequirement {
            key: "metadata.name".to_owned(),
            operator: "In".to_owned(),
            values: Some(vec![node.to_string()]),
        }]),
        match_expressions: None,
    }];
}

/// A malformed annotation counts as none, as it does for the controller.
fn template_generation(daemon_set: &DaemonSet) -> Option<i64> {
    let annotations = daemon_set.metadata.annotations.as_ref()?;
    annotations
        .get(TEMPLATE_GENERATION_ANNOTATION)?
        .parse()
        .ok()
}

/// Daemons stay on a node that has gone, and start on one under pressure or cordoned; those on
/// the host's network start before the pod network does.
fn add_tolerations(spec: &mut PodSpec) {
    let network = (NODE_NETWORK_UNAVAILABLE, "NoSchedule");
    let wanted = [
        (NODE_NOT_READY, "NoExecute"),
        (NODE_UNREACHABLE, "NoExecute"),
        (NODE_DISK_PRESSURE, "NoSchedule"),
        (NODE_MEMORY_PRESSURE, "NoSchedule"),
        (NODE_PID_PRESSURE, "NoSchedule"),
        (NODE_UNSCHEDULABLE, "NoSchedule"),
    ];
    let is_on_host_network = spec.host_network == Some(true);
    for (key, effect) in wanted
        .into_iter()
        .chain(is_on_host_network.then_some(network))
    {
        add_or_update(
            spec.tolerations.get_or_insert_default(),
            Toleration {
                key: Some(key.to_owned()),
                operator: Some("Exists".to_owned()),
                effect: Some(effect.to_owned()),
                ..Toleration::default()
            },
        );
    }
}

/// Replaces every toleration that differs at most in its seconds, or adds it at the end.
fn add_or_update(tolerations: &mut Vec<Toleration>, wanted: Toleration) {
    let mut is_there = false;
    for own in tolerations.iter_mut().filter(|own| is_same(own, &wanted)) {
        own.clone_from(&wanted);
        is_there = true;
    }
    if !is_there {
        tolerations.push(wanted);
    }
}

fn is_same(a: &Toleration, b: &Toleration) -> bool {
    let same = |a: &Option<String>, b: &Option<String>| {
        a.as_deref().unwrap_or_default() == b.as_deref().unwrap_or_default()
    };
    same(&a.key, &b.key)
        && same(&a.effect, &b.effect)
        && same(&a.operator, &b.operator)
        && same(&a.value, &b.value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn template(template: Value) -> PodTemplateSpec {
        let set = json!({
            "metadata": {"annotations": {TEMPLATE_GENERATION_ANNOTATION: "3"}},
            "spec": {"selector": {}, "template": template},
        });
        create_pod_template(&serde_json::from_value(set).unwrap(), "abc")
    }

    #[test]
    fn daemons_tolerate_pressure_and_outlive_absence() {
        let made = template(json!({"spec": {"containers": [], "tolerations": [
            {"key": NODE_NOT_READY, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5},
        ]}}));
        let tolerations = made.spec.unwrap().tolerations.unwrap();
        assert_eq!(tolerations[0].toleration_seconds, None);
        let keys: Vec<&str> = tolerations
            .iter()
            .filter_map(|t| t.key.as_deref())
            .collect();
        assert_eq!(
            keys,
            [
                NODE_NOT_READY,
                NODE_UNREACHABLE,
                NODE_DISK_PRESSURE,
                NODE_MEMORY_PRESSURE,
                NODE_PID_PRESSURE,
                NODE_UNSCHEDULABLE
            ]
        );
    }

    #[test]
    fn daemons_on_the_host_network_need_no_pod_network() {
        let made = template(json!({"spec": {"containers": [], "hostNetwork": true}}));
        let tolerations = made.spec.unwrap().tolerations.unwrap();
        assert_eq!(
            tolerations.last().unwrap().key.as_deref(),
            Some(NODE_NETWORK_UNAVAILABLE)
        );
    }

    #[test]
    fn labels_name_generation_and_revision() {
        let made = template(json!({"metadata": {"labels": {"app": "d"}}}));
        let labels = made.metadata.unwrap().labels.unwrap();
        assert_eq!(labels["app"], "d");
        assert_eq!(labels["pod-template-generation"], "3");
        assert_eq!(labels["controller-revision-hash"], "abc");
    }

    #[test]
    fn required_node_affinity_becomes_the_name_and_the_rest_stays() {
        let affinity = json!({
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": []},
            "nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {}}],
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "a", "operator": "Exists"}]}
                ]},
            },
        });
        let spec = json!({"containers": [], "affinity": affinity});
        let mut spec: PodSpec = serde_json::from_value(spec).unwrap();
        assign_to_node(&mut spec, &NodeName::from("n1"));
        let affinity = spec.affinity.unwrap();
        assert!(affinity.pod_anti_affinity.is_some());
        let affinity = affinity.node_affinity.unwrap();
        assert!(
            affinity
                .preferred_during_scheduling_ignored_during_execution
                .is_some()
        );
        let terms = affinity.required_during_scheduling_ignored_during_execution;
        assert_eq!(
            serde_json::to_value(terms).unwrap(),
            json!({"nodeSelectorTerms": [{"matchFields": [
                {"key": "metadata.name", "operator": "In", "values": ["n1"]}
            ]}]})
        );
    }
}
