use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::object::taint::ComparisonOperators::Disabled;
use crate::scheduling::plugin_names::Code;

fn node(name: &str, zone: Option<&str>, pods: &[&Arc<SchedulingPod>]) -> NodeState {
    let mut labels = json!({"kubernetes.io/hostname": name});
    if let Some(zone) = zone {
        labels["zone"] = json!(zone);
    }
    let api = json!({"metadata": {"name": name, "labels": labels}});
    let view = NodeView::from_api(&serde_json::from_value(api).unwrap()).unwrap();
    let mut node = NodeState::new(Arc::new(view));
    for pod in pods {
        node.add_pod(Arc::clone(pod));
    }
    node
}

fn pod(metadata: Value, constraint: Value) -> Arc<SchedulingPod> {
    let mut own = json!({"name": "p", "namespace": "default", "labels": {"app": "a"}});
    for (key, value) in metadata.as_object().unwrap() {
        own[key] = value.clone();
    }
    let constraints: Vec<Value> = Some(constraint)
        .filter(|c| !c.is_null())
        .into_iter()
        .collect();
    let api = json!({
        "metadata": own,
        "spec": {"containers": [], "topologySpreadConstraints": constraints},
    });
    Arc::new(SchedulingPod::from_api(&serde_json::from_value(api).unwrap()).unwrap())
}

fn constraint(extra: Value) -> Value {
    let mut constraint = json!({
        "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "a"}},
    });
    for (key, value) in extra.as_object().unwrap() {
        constraint[key] = value.clone();
    }
    constraint
}

fn state(pod: &SchedulingPod, nodes: &[NodeState]) -> FilterState {
    FilterState::scan(pod, pod.spread.hard.clone(), nodes.iter(), Disabled).unwrap()
}

fn code(pod: &SchedulingPod, state: &FilterState, node: &NodeState) -> Option<Code> {
    let rejection = state.filter(pod, &node.view.labels);
    rejection.map(|rejection| rejection.code)
}

#[test]
fn rejects_fuller_domain_and_node_without_label_unresolvably() {
    let existing = pod(json!({"uid": "1"}), Value::Null);
    let nodes = [
        node("n1", Some("a"), &[&existing]),
        node("n2", Some("b"), &[]),
        node("n3", None, &[]),
    ];
    let pod = pod(json!({}), constraint(json!({})));
    let mut state = state(&pod, &nodes);
    let codes = |state: &FilterState| nodes.each_ref().map(|node| code(&pod, state, node));
    assert_eq!(
        codes(&state),
        [
            Some(Code::Unschedulable),
            None,
            Some(Code::UnschedulableAndUnresolvable)
        ]
    );
    state.change(&pod, &existing, &nodes[0].view, -1, Disabled);
    assert_eq!(codes(&state)[0], None);
    state.change(&pod, &existing, &nodes[1].view, 1, Disabled);
    assert_eq!(codes(&state)[1], Some(Code::Unschedulable));
}

#[test]
fn an_empty_selector_counts_only_the_pod_itself() {
    let existing = pod(json!({"uid": "1"}), Value::Null);
    let nodes = [node("n1", Some("a"), &[&existing, &existing])];
    let lenient = pod(json!({}), constraint(json!({"labelSelector": {}})));
    assert_eq!(code(&lenient, &state(&lenient, &nodes), &nodes[0]), None);
    let strict = constraint(json!({"labelSelector": {}, "minDomains": 2, "maxSkew": 0}));
    let strict = pod(json!({}), strict);
    let verdict = code(&strict, &state(&strict, &nodes), &nodes[0]);
    assert_eq!(verdict, Some(Code::Unschedulable));
}

#[test]
fn too_few_domains_make_the_least_count_zero() {
    let existing = pod(json!({"uid": "1"}), Value::Null);
    let nodes = [node("n1", Some("a"), &[&existing])];
    let one = pod(json!({}), constraint(json!({})));
    assert_eq!(code(&one, &state(&one, &nodes), &nodes[0]), None);
    let two = pod(json!({}), constraint(json!({"minDomains": 2})));
    let verdict = code(&two, &state(&two, &nodes), &nodes[0]);
    assert_eq!(verdict, Some(Code::Unschedulable));
}

#[test]
fn terminating_pods_do_not_count() {
    let going = json!({"uid": "1", "deletionTimestamp": "2026-01-01T00:00:00Z"});
    let existing = pod(going, Value::Null);
    let nodes = [
        node("n1", Some("a"), &[&existing]),
        node("n2", Some("b"), &[]),
    ];
    let pod = pod(json!({}), constraint(json!({})));
    assert_eq!(code(&pod, &state(&pod, &nodes), &nodes[0]), None);
}

#[test]
fn emptier_domains_score_better_and_nodes_without_the_label_nothing() {
    let existing = pod(json!({"uid": "1"}), Value::Null);
    let nodes = [
        node("n1", Some("a"), &[&existing, &existing]),
        node("n2", Some("b"), &[]),
        node("n3", None, &[]),
    ];
    let soft = constraint(json!({"whenUnsatisfiable": "ScheduleAnyway"}));
    let pod = pod(json!({}), soft);
    let defaults = SpreadDefaults::system();
    let state = ScoreState::new(&pod, &defaults, pod.spread.soft.clone(), nodes.iter());
    let state = state.unwrap().scan(&pod, nodes.iter(), Disabled);
    let mut scores = nodes.each_ref().map(|node| state.score(&pod, node));
    // Two pods, weight ln(2 domains + 2).
    assert_eq!(scores, [3, 0, 0]);
    let ignored = nodes.each_ref().map(|node| state.ignores(node));
    normalize(&mut scores, &ignored);
    assert_eq!(scores, [0, 100, 0]);
}
