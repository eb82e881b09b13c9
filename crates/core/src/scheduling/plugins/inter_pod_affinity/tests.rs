use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::object::node::NodeView;
use crate::scheduling::plugin_names::Code;
use crate::scheduling::profile::Profile;

fn pod(name: &str, spec: Value) -> Arc<SchedulingPod> {
    let api = json!({
        "metadata": {
            "name": name, "namespace": "default", "uid": name, "labels": {"app": name},
        },
        "spec": spec,
    });
    Arc::new(SchedulingPod::from_api(&serde_json::from_value(api).unwrap()).unwrap())
}

fn on(node: &str, affinity: Value) -> Value {
    json!({"containers": [], "nodeName": node, "affinity": affinity})
}

fn term(app: &str) -> Value {
    json!({"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": app}}})
}

fn required(kind: &str, app: &str) -> Value {
    json!({kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term(app)]}})
}

fn cluster(pods: &[Arc<SchedulingPod>]) -> Cluster {
    let mut cluster = Cluster::new();
    for (name, zone) in [("n1", "a"), ("n2", "b")] {
        let api = json!({"metadata": {"name": name, "labels": {"zone": zone}}});
        let view = NodeView::from_api(&serde_json::from_value(api).unwrap()).unwrap();
        cluster.set_node(view);
    }
    for pod in pods {
        cluster.set_pod(Arc::clone(pod));
    }
    cluster
}

fn codes(cluster: &Cluster, pod: &SchedulingPod) -> Vec<Option<Code>> {
    let nodes = || cluster.nodes().map(|(_, node)| node);
    let state = FilterState::scan(pod, cluster, nodes());
    nodes()
        .map(|node| Some(state.as_ref()?.filter(pod, &node.view.labels)?.code))
        .collect()
}

#[test]
fn affinity_places_pod_with_matching_pods() {
    let cluster = cluster(&[pod("web", on("n1", json!({})))]);
    let friend = pod("db", on("", required("podAffinity", "web")));
    let beyond_help = Some(Code::UnschedulableAndUnresolvable);
    assert_eq!(codes(&cluster, &friend), [None, beyond_help]);
}

#[test]
fn first_pod_of_an_affinity_group_fits_anywhere() {
    let cluster = cluster(&[]);
    let first = pod("web", on("", required("podAffinity", "web")));
    assert_eq!(codes(&cluster, &first), [None, None]);
    let lonely = pod("db", on("", required("podAffinity", "web")));
    let beyond_help = Some(Code::UnschedulableAndUnresolvable);
    assert_eq!(codes(&cluster, &lonely), [beyond_help; 2]);
}

#[test]
fn anti_affinity_counts_in_both_directions() {
    let enemy = on("n1", required("podAntiAffinity", "web"));
    let cluster = cluster(&[pod("db", enemy)]);
    let minded = pod("web", on("", json!({})));
    assert_eq!(codes(&cluster, &minded), [Some(Code::Unschedulable), None]);
    let minding = pod("cache", on("", required("podAntiAffinity", "db")));
    assert_eq!(codes(&cluster, &minding), [Some(Code::Unschedulable), None]);
}

#[test]
fn namespace_selector_that_matches_no_labels_selects_all_namespaces() {
    let mut cluster = cluster(&[pod("web", on("n1", json!({})))]);
    let labels = [("team".to_owned(), "x".to_owned())];
    cluster.set_namespace("default", labels.into_iter().collect());
    let with_selector = |operator: &str| {
        let mut term = term("web");
        term["namespaceSelector"] =
            json!({"matchExpressions": [{"key": "team", "operator": operator}]});
        let affinity = json!({
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]},
        });
        pod("cache", on("", affinity))
    };
    let refused = [Some(Code::Unschedulable), None];
    assert_eq!(codes(&cluster, &with_selector("Exists")), refused);
    assert_eq!(codes(&cluster, &with_selector("DoesNotExist")), refused);
}

#[test]
fn required_terms_of_other_pods_score() {
    let fan = on("n2", required("podAffinity", "web"));
    let cluster = cluster(&[pod("db", fan)]);
    let web = pod("web", on("", json!({})));
    let nodes = || cluster.nodes().map(|(_, node)| node);
    let args = Profile::default().inter_pod_affinity;
    let state = ScoreState::scan(&web, args, &cluster, nodes()).unwrap();
    let mut scores: Vec<i64> = nodes().map(|n| state.score(&n.view.labels)).collect();
    assert_eq!(scores, [0, 1]);
    normalize(&mut scores);
    assert_eq!(scores, [0, 100]);
    let unknown = pod("other", on("", json!({})));
    assert_eq!(ScoreState::scan(&unknown, args, &cluster, nodes()), None);
}
