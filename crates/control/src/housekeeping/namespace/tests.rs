use serde_json::{Value, json};

use super::*;
use plimsoll_client::testing::{Cluster, virtual_clock};

fn start(cluster: &Arc<Cluster>) -> CancellationToken {
    let stop = CancellationToken::new();
    let options = Options {
        clock: virtual_clock(),
    };
    tokio::spawn(run(Informers::new(cluster.client()), options, stop.clone()));
    stop
}

fn object(api_version: &str, kind: &str, namespace: &str) -> Value {
    json!({
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"namespace": namespace, "name": "x"},
        "spec": {},
    })
}

fn populated() -> Arc<Cluster> {
    let cluster = Cluster::new();
    for name in ["going", "staying"] {
        cluster.put(json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": name},
            "spec": {"finalizers": ["kubernetes"]},
            "status": {"phase": "Active"},
        }));
        for (api_version, kind) in [
            ("v1", "ConfigMap"),
            ("v1", "Secret"),
            ("apps/v1", "Deployment"),
            ("batch/v1", "Job"),
        ] {
            cluster.put(object(api_version, kind, name));
        }
    }
    cluster
}

fn gone(cluster: &Cluster) -> bool {
    cluster.get("namespaces", &Key::new("", "going")).is_none()
}

fn condition(cluster: &Cluster, kind: &str) -> Value {
    let namespace = cluster.get("namespaces", &Key::new("", "going")).unwrap();
    let conditions = namespace["status"]["conditions"].as_array().cloned();
    let mut conditions = conditions.unwrap_or_default().into_iter();
    conditions.find(|c| c["type"] == kind).unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn deleted_namespace_is_emptied_and_finalized() {
    let cluster = populated();
    let stop = start(&cluster);
    cluster.delete("namespaces", &Key::new("", "going"), "Background");
    cluster.eventually("the namespace is gone", gone).await;
    for plural in ["configmaps", "secrets", "deployments", "jobs"] {
        let left = cluster.list(plural);
        assert_eq!(left.len(), 1, "{plural}");
        assert_eq!(left[0]["metadata"]["namespace"], "staying");
    }
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn pods_are_deleted_before_all_other_objects() {
    let cluster = populated();
    let mut pod = object("v1", "Pod", "going");
    pod["spec"] = json!({"containers": [], "nodeName": "n", "terminationGracePeriodSeconds": 30});
    cluster.put(pod);
    let stop = start(&cluster);
    cluster.delete("namespaces", &Key::new("", "going"), "Background");
    tokio::time::sleep(Duration::from_secs(20)).await;
    let key = Key::new("going", "x");
    let pod = cluster.get("pods", &key).unwrap();
    assert!(!pod["metadata"]["deletionTimestamp"].is_null());
    assert!(cluster.get("secrets", &key).is_some());
    cluster.remove("pods", &key);
    cluster.eventually("the namespace is gone", gone).await;
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn remaining_content_is_reported() {
    let cluster = populated();
    let key = Key::new("going", "x");
    cluster.change("jobs", &key, |job| {
        job["metadata"]["finalizers"] = json!(["example.com/kept"]);
    });
    let stop = start(&cluster);
    cluster.delete("namespaces", &Key::new("", "going"), "Background");
    cluster
        .eventually("the finalizer is reported", |c| {
            condition(c, "NamespaceFinalizersRemaining")["status"] == "True"
        })
        .await;
    assert_eq!(
        condition(&cluster, "NamespaceContentRemaining")["message"],
        "Some resources are remaining: jobs.batch has 1 resource instances"
    );
    assert_eq!(
        condition(&cluster, "NamespaceFinalizersRemaining")["message"],
        "Some content in the namespace has finalizers remaining: \
         example.com/kept in 1 resource instances"
    );
    assert_eq!(
        condition(&cluster, "NamespaceDeletionContentFailure")["status"],
        "False"
    );
    assert!(cluster.get("secrets", &key).is_none());
    cluster.change("jobs", &key, |job| {
        job["metadata"]["finalizers"] = json!([])
    });
    cluster.eventually("the namespace is gone", gone).await;
    stop.cancel();
}
