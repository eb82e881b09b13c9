use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use plimsoll_client::testing::{Cluster, virtual_clock};

fn pod(name: &str, tolerations: Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": "default", "name": name},
        "spec": {"containers": [], "nodeName": "n", "tolerations": tolerations},
        "status": {"phase": "Running"},
    })
}

fn node(taints: Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n"},
        "spec": {"taints": taints},
    })
}

fn tolerated_for(seconds: Value) -> Value {
    json!([{
        "key": "gone",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": seconds,
    }])
}

fn start(cluster: &Arc<Cluster>) -> CancellationToken {
    let stop = CancellationToken::new();
    let options = Options {
        clock: virtual_clock(),
    };
    tokio::spawn(run(Informers::new(cluster.client()), options, stop.clone()));
    stop
}

fn is_deleted(cluster: &Cluster, name: &str) -> bool {
    let pod = cluster.get("pods", &Key::new("default", name));
    pod.is_none_or(|pod| !pod["metadata"]["deletionTimestamp"].is_null())
}

#[tokio::test(start_paused = true)]
async fn pods_are_evicted_at_once_after_toleration_or_never() {
    let cluster = Cluster::new();
    cluster.put(node(json!([])));
    cluster.put(pod("at-once", json!([])));
    cluster.put(pod("later", tolerated_for(json!(300))));
    cluster.put(pod("never", tolerated_for(Value::Null)));
    let stop = start(&cluster);
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(!is_deleted(&cluster, "at-once"));
    cluster.put(node(json!([{"key": "gone", "effect": "NoExecute"}])));
    cluster
        .eventually("the intolerant pod is deleted", |c| {
            is_deleted(c, "at-once")
        })
        .await;
    let object = cluster
        .get("pods", &Key::new("default", "at-once"))
        .unwrap();
    let condition = &object["status"]["conditions"][0];
    assert_eq!(condition["type"], "DisruptionTarget");
    assert_eq!(condition["status"], "True");
    assert_eq!(condition["reason"], "DeletionByTaintManager");
    assert_eq!(
        condition["message"],
        "Taint manager: deleting due to NoExecute taint"
    );
    tokio::time::sleep(Duration::from_secs(290)).await;
    assert!(!is_deleted(&cluster, "later"));
    tokio::time::sleep(Duration::from_secs(15)).await;
    assert!(is_deleted(&cluster, "later"));
    tokio::time::sleep(Duration::from_secs(100_000)).await;
    assert!(!is_deleted(&cluster, "never"));
    let events = cluster.list("events");
    let notes = events
        .iter()
        .filter(|e| e["reason"] == "TaintManagerEviction");
    let mut notes: Vec<&str> = notes.filter_map(|e| e["message"].as_str()).collect();
    notes.sort_unstable();
    assert_eq!(
        notes,
        [
            "Marking for deletion Pod default/at-once",
            "Marking for deletion Pod default/later",
        ]
    );
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn removed_taint_cancels_timers() {
    let cluster = Cluster::new();
    cluster.put(node(json!([{"key": "gone", "effect": "NoExecute"}])));
    cluster.put(pod("a", tolerated_for(json!(60))));
    let stop = start(&cluster);
    tokio::time::sleep(Duration::from_secs(50)).await;
    cluster.change("nodes", &Key::new("", "n"), |node| {
        node["spec"]["taints"] = json!([])
    });
    tokio::time::sleep(Duration::from_secs(1000)).await;
    assert!(!is_deleted(&cluster, "a"));
    cluster
        .eventually("an event is recorded", |c| {
            let mut events = c.list("events").into_iter();
            events.any(|e| e["message"] == "Cancelling deletion of Pod default/a")
        })
        .await;
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn pod_bound_to_tainted_node_is_evicted() {
    let cluster = Cluster::new();
    cluster.put(node(json!([{"key": "gone", "effect": "NoExecute"}])));
    let mut unbound = pod("a", json!([]));
    unbound["spec"]["nodeName"] = Value::Null;
    cluster.put(unbound);
    let stop = start(&cluster);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!is_deleted(&cluster, "a"));
    cluster.change("pods", &Key::new("default", "a"), |pod| {
        pod["spec"]["nodeName"] = "n".into();
    });
    cluster
        .eventually("the pod is deleted", |c| is_deleted(c, "a"))
        .await;
    stop.cancel();
}
