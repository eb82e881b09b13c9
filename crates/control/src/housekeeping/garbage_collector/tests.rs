use std::sync::Arc;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::*;
use plimsoll_client::informer::{Informers, Key};
use plimsoll_client::testing::Cluster;

fn start(cluster: &Arc<Cluster>) -> CancellationToken {
    let stop = CancellationToken::new();
    let informers = Informers::new(cluster.client());
    tokio::spawn(run(informers, Options::default(), stop.clone()));
    stop
}

fn object(api_version: &str, kind: &str, name: &str, owners: Value) -> Value {
    json!({
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"namespace": "default", "name": name, "ownerReferences": owners},
        "spec": {},
    })
}

fn reference(owner: &Value, is_blocking: bool) -> Value {
    json!({
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": true,
        "blockOwnerDeletion": is_blocking,
    })
}

/// A deployment, its replica set and a pod of that.
fn family(cluster: &Cluster) {
    let deployment = cluster.put(object("apps/v1", "Deployment", "d", json!([])));
    let owners = json!([reference(&deployment, true)]);
    let set = cluster.put(object("apps/v1", "ReplicaSet", "rs", owners));
    let owners = json!([reference(&set, true)]);
    cluster.put(object("v1", "Pod", "p", owners));
}

fn key(name: &str) -> Key {
    Key::new("default", name)
}

fn is_gone(cluster: &Cluster, plural: &str, name: &str) -> bool {
    cluster.get(plural, &key(name)).is_none()
}

fn is_deleted(cluster: &Cluster, plural: &str, name: &str) -> bool {
    let object = cluster.get(plural, &key(name)).unwrap();
    !object["metadata"]["deletionTimestamp"].is_null()
}

async fn settle() {
    tokio::time::sleep(std::time::Duration::from_secs(10)).await;
}

#[tokio::test(start_paused = true)]
async fn background_deletion_deletes_owner_first() {
    let cluster = Cluster::new();
    family(&cluster);
    let other = cluster.put(object("apps/v1", "ReplicaSet", "other", json!([])));
    cluster.put(object(
        "v1",
        "Pod",
        "of-other",
        json!([reference(&other, true)]),
    ));
    let stop = start(&cluster);
    settle().await;
    assert!(!is_gone(&cluster, "pods", "p"), "all owners are there");
    cluster.delete("deployments", &key("d"), "Background");
    assert!(is_gone(&cluster, "deployments", "d"));
    cluster
        .eventually("nothing is left of the family", |c| {
            is_gone(c, "replicasets", "rs") && is_gone(c, "pods", "p")
        })
        .await;
    settle().await;
    assert!(!is_gone(&cluster, "pods", "of-other"));
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn foreground_deletion_waits_for_blocking_dependents() {
    let cluster = Cluster::new();
    family(&cluster);
    cluster.change("pods", &key("p"), |pod| {
        pod["metadata"]["finalizers"] = json!(["kept"])
    });
    let stop = start(&cluster);
    settle().await;
    cluster.delete("deployments", &key("d"), "Foreground");
    settle().await;
    for (plural, name) in [("deployments", "d"), ("replicasets", "rs"), ("pods", "p")] {
        assert!(is_deleted(&cluster, plural, name), "{plural}");
    }
    cluster.change("pods", &key("p"), |pod| {
        pod["metadata"]["finalizers"] = json!([])
    });
    cluster
        .eventually("the last one lets all others go", |c| {
            is_gone(c, "deployments", "d") && is_gone(c, "replicasets", "rs")
        })
        .await;
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn a_dependent_that_does_not_block_is_not_waited_for() {
    let cluster = Cluster::new();
    let set = cluster.put(object("apps/v1", "ReplicaSet", "rs", json!([])));
    let mut pod = object("v1", "Pod", "p", json!([reference(&set, false)]));
    pod["metadata"]["finalizers"] = json!(["kept"]);
    cluster.put(pod);
    let stop = start(&cluster);
    settle().await;
    cluster.delete("replicasets", &key("rs"), "Foreground");
    cluster
        .eventually("the owner is gone", |c| is_gone(c, "replicasets", "rs"))
        .await;
    cluster
        .eventually("the dependent is deleted", |c| is_deleted(c, "pods", "p"))
        .await;
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn orphans_stay_and_lose_owner_reference() {
    let cluster = Cluster::new();
    family(&cluster);
    let stop = start(&cluster);
    settle().await;
    cluster.delete("deployments", &key("d"), "Orphan");
    cluster
        .eventually("the owner is gone", |c| is_gone(c, "deployments", "d"))
        .await;
    settle().await;
    let set = cluster.get("replicasets", &key("rs")).unwrap();
    assert_eq!(set["metadata"]["ownerReferences"], json!([]));
    assert!(!is_deleted(&cluster, "replicasets", "rs"));
    assert!(!is_gone(&cluster, "pods", "p"));
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn one_of_two_owners_is_enough() {
    let cluster = Cluster::new();
    let a = cluster.put(object("apps/v1", "ReplicaSet", "a", json!([])));
    let b = cluster.put(object("apps/v1", "ReplicaSet", "b", json!([])));
    let owners = json!([reference(&a, false), reference(&b, false)]);
    cluster.put(object("v1", "Pod", "p", owners));
    let stop = start(&cluster);
    settle().await;
    cluster.delete("replicasets", &key("a"), "Background");
    cluster
        .eventually("the other reference is left", |c| {
            let pod = c.get("pods", &key("p")).unwrap();
            pod["metadata"]["ownerReferences"].as_array().unwrap().len() == 1
        })
        .await;
    cluster.delete("replicasets", &key("b"), "Background");
    cluster
        .eventually("without owners it goes", |c| is_gone(c, "pods", "p"))
        .await;
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn missing_or_replaced_owner_counts_as_gone() {
    let cluster = Cluster::new();
    let owner = cluster.put(object("apps/v1", "ReplicaSet", "rs", json!([])));
    let mut stale = reference(&owner, false);
    stale["uid"] = "of-an-earlier-one".into();
    cluster.put(object("v1", "Pod", "stale", json!([stale])));
    let mut missing = reference(&owner, false);
    missing["uid"] = "never".into();
    missing["name"] = "never".into();
    cluster.put(object("v1", "ConfigMap", "missing", json!([missing])));
    cluster.put(object(
        "v1",
        "Secret",
        "fine",
        json!([reference(&owner, false)]),
    ));
    let stop = start(&cluster);
    cluster
        .eventually("both are gone", |c| {
            is_gone(c, "pods", "stale") && is_gone(c, "configmaps", "missing")
        })
        .await;
    settle().await;
    assert!(!is_gone(&cluster, "secrets", "fine"));
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn owner_in_another_namespace_is_ignored_with_event() {
    let cluster = Cluster::new();
    let mut elsewhere = object("apps/v1", "ReplicaSet", "rs", json!([]));
    elsewhere["metadata"]["namespace"] = "elsewhere".into();
    let owner = cluster.put(elsewhere);
    cluster.put(object(
        "v1",
        "Secret",
        "s",
        json!([reference(&owner, false)]),
    ));
    let node = cluster.put(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}));
    cluster.put(object(
        "v1",
        "ConfigMap",
        "of-node",
        json!([reference(&node, false)]),
    ));
    let stop = start(&cluster);
    cluster
        .eventually("the dependent is gone", |c| is_gone(c, "secrets", "s"))
        .await;
    cluster
        .eventually("an event is recorded", |c| {
            c.list("events").iter().any(|event| {
                event["reason"] == "OwnerRefInvalidNamespace"
                    && event["message"].as_str().is_some_and(|m| {
                        m.starts_with("ownerRef [apps/v1/ReplicaSet, namespace: default, name: rs")
                            && m.ends_with("does not exist in namespace \"default\"")
                    })
            })
        })
        .await;
    settle().await;
    assert!(
        !is_gone(&cluster, "configmaps", "of-node"),
        "cluster-scoped owners may own objects of any namespace"
    );
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn a_circle_of_blocking_owners_is_broken() {
    let cluster = Cluster::new();
    let a = cluster.put(object("v1", "ConfigMap", "a", json!([])));
    let b = cluster.put(object("v1", "Secret", "b", json!([reference(&a, true)])));
    cluster.change("configmaps", &key("a"), |a| {
        a["metadata"]["ownerReferences"] = json!([reference(&b, true)]);
    });
    let stop = start(&cluster);
    settle().await;
    assert!(!is_gone(&cluster, "configmaps", "a"));
    cluster.delete("configmaps", &key("a"), "Foreground");
    cluster
        .eventually("both are gone", |c| {
            is_gone(c, "configmaps", "a") && is_gone(c, "secrets", "b")
        })
        .await;
    stop.cancel();
}
