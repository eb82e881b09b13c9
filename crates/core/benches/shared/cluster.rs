//! A cluster of nodes with 30 pods each, and pods of several kinds to place on it.

use std::sync::Arc;

use plimsoll_core::object::node::NodeView;
use plimsoll_core::scheduling::indexed::Engine;
use plimsoll_core::scheduling::pod::SchedulingPod;
use plimsoll_core::scheduling::profile::Profile;
use serde_json::{Value, json};

pub(crate) const PODS_PER_NODE: usize = 30;
const ZONES: usize = 10;
const HOSTNAME: &str = "kubernetes.io/hostname";
const ZONE: &str = "topology.kubernetes.io/zone";

pub(crate) fn node(number: usize) -> NodeView {
    let name = format!("node-{number}");
    let api = json!({
        "metadata": {"name": name, "labels": {
            HOSTNAME: name, ZONE: format!("zone-{}", number % ZONES),
            "disk": if number.is_multiple_of(4) { "ssd" } else { "hdd" },
        }},
        "status": {"allocatable": {"cpu": "64", "memory": "256Gi", "pods": "250"}},
    });
    NodeView::from_api(&serde_json::from_value(api).unwrap()).unwrap()
}

pub(crate) fn pod(uid: String, app: &str, spec: &Value) -> Arc<SchedulingPod> {
    pod_with_cpu(uid, app, spec, "100m")
}

pub(crate) fn pod_with_cpu(uid: String, app: &str, spec: &Value, cpu: &str) -> Arc<SchedulingPod> {
    let mut spec = spec.clone();
    spec["containers"] = json!([{
        "name": "c", "image": "registry.example/app:1",
        "resources": {"requests": {"cpu": cpu, "memory": "128Mi"}},
    }]);
    let api = json!({
        "metadata": {"name": uid, "namespace": "default", "uid": uid, "labels": {"app": app}},
        "spec": spec,
    });
    Arc::new(SchedulingPod::from_api(&serde_json::from_value(api).unwrap()).unwrap())
}

/// Nodes with pods of a hundred kinds.
pub(crate) fn cluster(nodes: usize) -> Engine {
    let mut engine = Engine::new(vec![Profile::default()], 1);
    let kinds: Vec<Arc<SchedulingPod>> = (0..100)
        .map(|kind| pod(String::new(), &format!("existing-{kind}"), &json!({})))
        .collect();
    for number in 0..nodes {
        let view = node(number);
        let name = view.name.clone();
        engine.change(|cluster| [cluster.set_node(view)]);
        for place in 0..PODS_PER_NODE {
            let mut pod = (*kinds[(number * 7 + place * 13) % kinds.len()]).clone();
            let uid = format!("existing-{number}-{place}");
            pod.uid = uid.as_str().into();
            pod.pod_ref.name = uid;
            engine.change(|cluster| cluster.assume_pod(Arc::new(pod), &name));
        }
    }
    engine
}

fn term(app: &str, key: &str) -> Value {
    json!({"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}})
}

fn spread(key: &str, unsatisfiable: &str) -> Value {
    json!({"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": unsatisfiable,
        "labelSelector": {"matchLabels": {"app": "incoming"}}})
}

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

pub(crate) fn scenarios() -> Vec<(&'static str, Value)> {
    let ssd = json!({"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]});
    let weighted = |weight: i32, term: Value| json!({"weight": weight, "podAffinityTerm": term});
    vec![
        ("basic", json!({})),
        (
            "node affinity",
            json!({"affinity": {"nodeAffinity": {
                REQUIRED: {"nodeSelectorTerms": [ssd]},
            }}}),
        ),
        (
            "pod affinity (zone)",
            json!({"affinity": {"podAffinity": {
                REQUIRED: [term("existing-3", ZONE)],
            }}}),
        ),
        (
            "pod anti-affinity (host)",
            json!({"affinity": {"podAntiAffinity": {
                REQUIRED: [term("existing-3", HOSTNAME)],
            }}}),
        ),
        (
            "spread (zone + host)",
            json!({"topologySpreadConstraints": [
                spread(ZONE, "DoNotSchedule"), spread(HOSTNAME, "DoNotSchedule"),
            ]}),
        ),
        (
            "preferred mix",
            json!({
                "affinity": {
                    "nodeAffinity": {PREFERRED: [{"weight": 10, "preference": ssd}]},
                    "podAffinity": {PREFERRED: [weighted(20, term("existing-3", ZONE))]},
                    "podAntiAffinity": {PREFERRED: [weighted(30, term("incoming", HOSTNAME))]},
                },
                "topologySpreadConstraints": [
                    spread(ZONE, "ScheduleAnyway"), spread(HOSTNAME, "ScheduleAnyway"),
                ],
            }),
        ),
    ]
}
