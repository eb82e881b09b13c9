use serde_json::{Value, json};

use super::*;

fn node(name: &str, extra: Value) -> NodeView {
    let mut node = json!({"metadata": {"name": name}, "status": {"allocatable": {"cpu": "4"}}});
    merge(&mut node, extra);
    NodeView::from_api(&serde_json::from_value(node).unwrap()).unwrap()
}

fn pod(name: &str, extra: Value) -> Arc<SchedulingPod> {
    let mut pod = json!({
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"containers": [{
            "name": "c", "resources": {"requests": {"cpu": "1"}}, "ports": [{"containerPort": 1}],
        }]},
        "status": {},
    });
    merge(&mut pod, extra);
    Arc::new(SchedulingPod::from_api(&serde_json::from_value(pod).unwrap()).unwrap())
}

fn merge(into: &mut Value, extra: Value) {
    match (into, extra) {
        (Value::Object(into), Value::Object(extra)) => {
            for (key, value) in extra {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, extra) => *into = extra,
    }
}

fn bound(name: &str, node: &str) -> Arc<SchedulingPod> {
    pod(name, json!({"spec": {"nodeName": node}}))
}

fn used_cpu(cluster: &Cluster, node: &str) -> i64 {
    let slot = cluster.slot(&node.into()).unwrap();
    cluster.node(slot).unwrap().requested().milli_cpu
}

#[test]
fn pods_wait_for_their_node_and_outlive_it() {
    let mut cluster = Cluster::new();
    cluster.set_pod(bound("a", "n1"));
    assert!(matches!(
        cluster.set_node(node("n1", json!({}))),
        Change::NodeAdded(NodeSlot(0))
    ));
    assert_eq!(used_cpu(&cluster, "n1"), 1000);
    cluster.set_pod(bound("b", "n1"));
    cluster.remove_node(&"n1".into()).unwrap();
    cluster.remove_pod(&"a".into());
    cluster.set_node(node("n1", json!({})));
    assert_eq!(used_cpu(&cluster, "n1"), 1000);
}

#[test]
fn an_assumption_holds_until_the_binding_or_the_end() {
    let mut cluster = Cluster::new();
    cluster.set_node(node("n1", json!({})));
    let pending = pod("a", json!({"status": {"nominatedNodeName": "n1"}}));
    cluster.set_pod(Arc::clone(&pending));
    assert_eq!(cluster.nominated_pods(&"n1".into()).len(), 1);
    cluster.assume_pod(Arc::clone(&pending), &"n1".into());
    assert!(cluster.nominated_pods(&"n1".into()).is_empty());
    assert!(cluster.set_pod(pending).is_empty());
    assert_eq!(used_cpu(&cluster, "n1"), 1000);
    let changes = cluster.set_pod(bound("a", "n1"));
    assert!(matches!(
        changes.as_slice(),
        [Change::PodRemoved { .. }, Change::PodAdded { .. }]
    ));
    assert!(!cluster.is_assumed(&"a".into()));
    let finished = pod(
        "a",
        json!({"spec": {"nodeName": "n1"}, "status": {"phase": "Failed"}}),
    );
    cluster.set_pod(finished);
    assert_eq!(used_cpu(&cluster, "n1"), 0);
}

#[test]
fn slots_are_used_again_and_zones_follow_the_labels() {
    let zone = |zone: &str| json!({"metadata": {"labels": {"topology.kubernetes.io/zone": zone}}});
    let mut cluster = Cluster::new();
    for name in ["n1", "n2", "n3"] {
        cluster.set_node(node(name, zone("a")));
    }
    cluster.set_node(node("n3", zone("b")));
    let names = |cluster: &Cluster| -> Vec<String> {
        let order = cluster.node_order().into_iter();
        order
            .map(|slot| cluster.node(slot).unwrap().view.name.to_string())
            .collect()
    };
    assert_eq!(names(&cluster), ["n1", "n3", "n2"]);
    cluster.remove_node(&"n1".into()).unwrap();
    cluster.set_node(node("n4", zone("b")));
    assert_eq!(cluster.slot(&"n4".into()), Some(NodeSlot(0)));
    assert_eq!(names(&cluster), ["n2", "n3", "n4"]);
    assert_eq!(cluster.slot_count(), 3);
}

#[test]
fn first_node_defines_image_size() {
    let with = |size: i64| json!({"status": {"images": [{"names": ["a:1"], "sizeBytes": size}]}});
    let mut cluster = Cluster::new();
    cluster.set_node(node("n1", with(5)));
    cluster.set_node(node("n2", with(7)));
    assert_eq!(cluster.images().get("a:1"), Some((5, 2)));
    cluster.remove_node(&"n1".into()).unwrap();
    assert_eq!(cluster.images().get("a:1"), Some((5, 1)));
    cluster.set_node(node("n2", with(9)));
    assert_eq!(cluster.images().get("a:1"), Some((9, 1)));
}

fn nominated(cluster: &Cluster, node: &str) -> Vec<String> {
    let pods = cluster.nominated_pods(&node.into()).iter();
    pods.map(|pod| pod.pod_ref.name.clone()).collect()
}

fn stating(name: &str, node: Option<&str>) -> Arc<SchedulingPod> {
    pod(name, json!({"status": {"nominatedNodeName": node}}))
}

#[test]
fn a_nomination_follows_the_attempt_or_else_the_status() {
    let mut cluster = Cluster::new();
    cluster.nominate(stating("a", Some("n1")), Nomination::AsStated);
    cluster.nominate(stating("b", None), Nomination::AsStated);
    cluster.nominate(stating("c", None), Nomination::To("n1".into()));
    assert_eq!(nominated(&cluster, "n1"), ["a", "c"]);
    cluster.nominate(stating("a", Some("n1")), Nomination::To("n2".into()));
    assert_eq!(nominated(&cluster, "n1"), ["c"]);
    assert_eq!(nominated(&cluster, "n2"), ["a"]);
    cluster.nominate(stating("a", Some("n1")), Nomination::Cleared);
    cluster.remove_pod(&"c".into());
    assert_eq!(cluster.nominations().count(), 0);
}

#[test]
fn an_update_keeps_a_nomination_that_the_status_does_not_show_yet() {
    let mut cluster = Cluster::new();
    cluster.nominate(stating("a", None), Nomination::To("n1".into()));
    cluster.set_pod(stating("a", None));
    assert_eq!(nominated(&cluster, "n1"), ["a"]);
    cluster.set_pod(stating("a", Some("n2")));
    assert_eq!(nominated(&cluster, "n2"), ["a"]);
    cluster.set_pod(stating("a", None));
    assert!(nominated(&cluster, "n2").is_empty());
}

#[test]
fn nominations_are_added_and_removed_with_the_pod() {
    let mut cluster = Cluster::new();
    cluster.set_pod(stating("a", Some("n1")));
    assert_eq!(nominated(&cluster, "n1"), ["a"]);
    cluster.set_pod(stating("a", None));
    assert!(nominated(&cluster, "n1").is_empty());
    cluster.nominate(stating("a", None), Nomination::To("n1".into()));
    cluster.set_pod(bound("a", "n2"));
    assert!(nominated(&cluster, "n1").is_empty());
    assert!(
        cluster
            .nominate(stating("a", None), Nomination::To("n1".into()))
            .is_empty()
    );
    cluster.remove_pod(&"a".into());
    assert_eq!(cluster.nominations().count(), 0);
}
