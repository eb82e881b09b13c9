use serde_json::{Value, json};

use super::*;
use plimsoll_client::testing::{Cluster, virtual_clock};

fn start(cluster: &Arc<Cluster>) -> CancellationToken {
    let stop = CancellationToken::new();
    let options = Options {
        clock: virtual_clock(),
        ..Options::default()
    };
    tokio::spawn(run(Informers::new(cluster.client()), options, stop.clone()));
    stop
}

fn object(api_version: &str, kind: &str, name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"namespace": "default", "name": name},
        "spec": spec,
    })
}

fn pod(name: &str, requests: Value) -> Value {
    let container = json!({"name": "c", "resources": {"requests": requests}});
    object("v1", "Pod", name, json!({"containers": [container]}))
}

fn used(cluster: &Cluster, name: &str) -> Value {
    let quota = cluster
        .get("resourcequotas", &Key::new("default", name))
        .unwrap();
    quota["status"]["used"].clone()
}

#[tokio::test(start_paused = true)]
async fn all_limited_resources_are_counted() {
    let cluster = Cluster::new();
    cluster.put(pod("a", json!({"cpu": "250m", "memory": "1Gi"})));
    cluster.put(pod("b", json!({"cpu": "1"})));
    let mut elsewhere = pod("c", json!({"cpu": "1"}));
    elsewhere["metadata"]["namespace"] = "elsewhere".into();
    cluster.put(elsewhere);
    cluster.put(object("v1", "Secret", "s", Value::Null));
    cluster.put(object("apps/v1", "Deployment", "d", json!({})));
    let ports = json!({"type": "NodePort", "ports": [{"port": 1}, {"port": 2}]});
    cluster.put(object("v1", "Service", "s", ports));
    let storage = json!({"resources": {"requests": {"storage": "5Gi"}}});
    cluster.put(object("v1", "PersistentVolumeClaim", "c", storage));
    let hard = json!({
        "pods": "10",
        "requests.cpu": "10",
        "requests.memory": "10Gi",
        "secrets": "10",
        "count/deployments.apps": "10",
        "count/statefulsets.apps": "10",
        "services.nodeports": "10",
        "requests.storage": "10Gi",
        "count/unknown.example.com": "1",
    });
    cluster.put(object("v1", "ResourceQuota", "q", json!({"hard": hard})));
    let stop = start(&cluster);
    let expected = json!({
        "pods": "2",
        "requests.cpu": "1250m",
        "requests.memory": "1Gi",
        "secrets": "1",
        "count/deployments.apps": "1",
        "count/statefulsets.apps": "0",
        "services.nodeports": "2",
        "requests.storage": "5Gi",
    });
    cluster
        .eventually("all is counted", |c| used(c, "q") == expected)
        .await;
    let quota = cluster
        .get("resourcequotas", &Key::new("default", "q"))
        .unwrap();
    assert_eq!(quota["status"]["hard"], hard);
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn deleted_objects_are_no_longer_counted() {
    let cluster = Cluster::new();
    for name in ["a", "b", "c"] {
        cluster.put(pod(name, json!({"cpu": "1"})));
        cluster.put(object("v1", "ConfigMap", name, Value::Null));
    }
    let hard = json!({"hard": {"pods": "10", "cpu": "10", "configmaps": "10", "count/pods": "9"}});
    cluster.put(object("v1", "ResourceQuota", "q", hard));
    let stop = start(&cluster);
    let uses = |pods: &str, all_pods: &str, maps: &str| json!({"pods": pods, "cpu": pods, "configmaps": maps, "count/pods": all_pods});
    let is_used = |expected: Value| move |c: &Cluster| used(c, "q") == expected;
    cluster
        .eventually("three", is_used(uses("3", "3", "3")))
        .await;
    cluster.remove("pods", &Key::new("default", "a"));
    cluster.remove("configmaps", &Key::new("default", "a"));
    cluster
        .eventually("two", is_used(uses("2", "2", "2")))
        .await;
    cluster.change("pods", &Key::new("default", "b"), |pod| {
        pod["status"] = json!({"phase": "Succeeded"});
    });
    cluster
        .eventually("one runs", is_used(uses("1", "2", "2")))
        .await;
    cluster.change("resourcequotas", &Key::new("default", "q"), |quota| {
        quota["spec"]["hard"] = json!({"pods": "1"});
    });
    cluster
        .eventually("only pods", is_used(json!({"pods": "1"})))
        .await;
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn scopes_choose_the_pods_and_exclude_all_else() {
    let cluster = Cluster::new();
    cluster.put(pod("best-effort", json!({})));
    cluster.put(pod("burstable", json!({"cpu": "1"})));
    cluster.put(object("v1", "Secret", "s", Value::Null));
    let quota = |scope: &str| json!({"hard": {"pods": "5", "secrets": "5"}, "scopes": [scope]});
    cluster.put(object("v1", "ResourceQuota", "be", quota("BestEffort")));
    cluster.put(object("v1", "ResourceQuota", "nbe", quota("NotBestEffort")));
    cluster.put(object("v1", "ResourceQuota", "t", quota("Terminating")));
    let stop = start(&cluster);
    let is_used = |name: &'static str, pods: &str| {
        let expected = json!({"pods": pods, "secrets": "0"});
        move |c: &Cluster| used(c, name) == expected
    };
    cluster.eventually("best effort", is_used("be", "1")).await;
    cluster.eventually("the others", is_used("nbe", "1")).await;
    cluster.eventually("none", is_used("t", "0")).await;
    stop.cancel();
}
