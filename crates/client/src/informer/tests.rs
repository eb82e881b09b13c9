use std::sync::{Arc, Mutex};

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::core::ApiResource;
use serde_json::json;

use super::*;
use crate::testing::{Cluster, Known, check_follows_pods};

fn pod(name: &str, node: &str) -> serde_json::Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "namespace": "default",
            "name": name,
            "labels": {"app": "a"},
            "managedFields": [{"manager": "kubectl"}],
            "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "owner"},
            ],
        },
        "spec": {"containers": [], "nodeName": node},
    })
}

fn names(pods: &[Arc<Pod>]) -> Vec<&str> {
    let names = pods.iter().map(|pod| pod.metadata.name.as_deref());
    names.map(Option::unwrap_or_default).collect()
}

async fn informer_lists_objects_and_notifies_of_changes(cluster: Arc<Cluster>) {
    cluster.put(pod("a", "n1"));
    cluster.put(pod("b", "n2"));
    let informers = Informers::new(cluster.client());
    let pods = informers.of::<Pod>();
    pods.synced().await;
    assert_eq!(names(&pods.list()), ["a", "b"]);
    assert_eq!(names(&pods.on_node("n2")), ["b"]);
    assert_eq!(names(&pods.owned_by("owner")), ["a", "b"]);
    assert_eq!(names(&pods.in_namespace("default")), ["a", "b"]);
    assert!(pods.in_namespace("defaul").is_empty());
    let key = Key::new("default", "a");
    assert!(pods.get(&key).unwrap().metadata.managed_fields.is_none());

    let changes = Arc::new(Mutex::new(Vec::new()));
    let (recorded, notify) = (Arc::clone(&changes), Arc::new(tokio::sync::Notify::new()));
    let notifier = Arc::clone(&notify);
    let subscription = pods.on_change(move |change| {
        let what = match change {
            Change::Added(_) => "added",
            Change::Updated { .. } => "updated",
            Change::Deleted(_) => "deleted",
        };
        recorded
            .lock()
            .unwrap()
            .push(format!("{what} {}", change.key()));
        notifier.notify_one();
    });
    assert_eq!(
        *changes.lock().unwrap(),
        ["added default/a", "added default/b"]
    );
    changes.lock().unwrap().clear();
    cluster.change("pods", &key, |pod| pod["spec"]["nodeName"] = "n2".into());
    cluster.remove("pods", &Key::new("default", "b"));
    while changes.lock().unwrap().len() < 2 {
        notify.notified().await;
    }
    assert_eq!(
        *changes.lock().unwrap(),
        ["updated default/a", "deleted default/b"]
    );
    assert_eq!(names(&pods.on_node("n2")), ["a"]);
    assert!(pods.on_node("n1").is_empty());
    drop(subscription);
    cluster.put(pod("c", "n1"));
    while pods.get(&Key::new("default", "c")).is_none() {
        tokio::task::yield_now().await;
    }
    assert_eq!(changes.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn objects_are_streamed_cached_and_reported() {
    informer_lists_objects_and_notifies_of_changes(Cluster::new()).await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_streams_no_lists_is_listed() {
    informer_lists_objects_and_notifies_of_changes(Cluster::without_streamed_lists()).await;
}

#[tokio::test]
async fn loops_share_a_watch_and_it_ends_with_the_last() {
    let cluster = Cluster::new();
    let informers = Informers::new(cluster.client());
    let (first, second) = (informers.of::<Node>(), informers.of::<Node>());
    assert!(Arc::ptr_eq(&first, &second));
    let weak = Arc::downgrade(&first);
    drop((first, second));
    assert!(weak.upgrade().is_none());
    informers.of::<Node>().synced().await;
}

#[tokio::test]
async fn metadata_is_watched_with_the_whole_objects_or_alone() {
    let cluster = Cluster::new();
    cluster.put(pod("a", "n1"));
    let informers = Informers::new(cluster.client());
    let resource = ApiResource::erase::<Pod>(&());
    let metadata = informers.metadata_of(&resource);
    metadata.synced().await;
    let object = metadata.get(&Key::new("default", "a")).unwrap();
    assert!(object.metadata.labels.is_none());
    assert_eq!(metadata.owned_by("owner").len(), 1);
    drop((metadata, object));

    let pods = informers.of::<Pod>();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let seen_here = Arc::clone(&seen);
    let watch = informers.watch_metadata(&resource, move |change| {
        if let MetadataChange::Applied(metadata) = change {
            seen_here.lock().unwrap().push(metadata.labels.is_some());
        }
    });
    watch.synced().await;
    pods.synced().await;
    // The labels show that the cache of whole objects is the source.
    assert_eq!(*seen.lock().unwrap(), [true]);
}

#[tokio::test(start_paused = true)]
async fn caches_follow_pods() {
    let cluster = Cluster::new();
    let pods = Informers::new(cluster.client()).of::<Pod>();
    check_follows_pods(
        &cluster,
        |name| pod(name, "n"),
        async || {
            let name_and_uid = |pod: &Arc<Pod>| {
                let metadata = pod.metadata.clone();
                (metadata.name.unwrap(), metadata.uid.unwrap())
            };
            pods.list().iter().map(name_and_uid).collect::<Known>()
        },
    )
    .await;
}
