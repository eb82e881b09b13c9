//! Stateful sets.

use super::*;

/// The revision that each pod of a set is labelled with, by the pods' names.
fn revisions(cluster: &Cluster) -> Vec<(String, String)> {
    let pods = cluster.list("pods").into_iter();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let of_pod = |pod: Value| {
        let metadata = &pod["metadata"];
        let revision = &metadata["labels"]["controller-revision-hash"];
        (text(&metadata["name"]), text(revision))
    };
    pods.map(of_pod).collect()
}

#[tokio::test(start_paused = true)]
async fn stateful_set_is_made_updated_by_partition_and_undone() {
    let running = Running::start();
    let cluster = &running.cluster;
    let key = Key::new("default", "db");
    let rolling = |partition: i32| json!({"type": "RollingUpdate", "rollingUpdate": {"partition": partition}});
    cluster.put(json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"name": "db", "namespace": "default", "generation": 1},
        "spec": {
            "replicas": 3, "serviceName": "db", "podManagementPolicy": "OrderedReady",
            "selector": {"matchLabels": {"app": "web"}}, "template": template("v1"),
            "updateStrategy": rolling(2), "revisionHistoryLimit": 10,
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {}}],
        },
    }));
    let is_done = |cluster: &Cluster, updated: i32| {
        let status = status(cluster, "statefulsets", "db");
        status["readyReplicas"] == 3 && status["updatedReplicas"] == updated
    };
    running
        .until("three pods", |cluster| is_done(cluster, 3))
        .await;
    let first = revisions(cluster);
    let names: Vec<&str> = first.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["db-0", "db-1", "db-2"]);
    let old = first[0].1.clone();
    assert_eq!(
        status(cluster, "statefulsets", "db")["currentRevision"],
        old.as_str()
    );
    assert_eq!(cluster.list("persistentvolumeclaims").len(), 3);
    let made = events(cluster, "SuccessfulCreate");
    assert!(
        made.contains(&"Create Pod db-2 in StatefulSet db successful".to_owned()),
        "{made:?}"
    );

    let change = |image: &'static str, partition: i32, generation: i32| {
        cluster.change("statefulsets", &key, |set| {
            set["spec"]["template"] = template(image);
            set["spec"]["updateStrategy"] = rolling(partition);
            set["metadata"]["generation"] = json!(generation);
        });
    };
    change("v2", 2, 2);
    running
        .until("one is new", |cluster| is_done(cluster, 1))
        .await;
    let now = revisions(cluster);
    assert_eq!((&now[0].1, &now[1].1), (&old, &old));
    let new = now[2].1.clone();
    assert_ne!(new, old);
    change("v2", 0, 3);
    running
        .until("all are new", |cluster| is_done(cluster, 3))
        .await;
    assert_eq!(
        status(cluster, "statefulsets", "db")["currentRevision"],
        new.as_str()
    );

    // An earlier template is the earlier revision with a new number.
    change("v1", 0, 4);
    running
        .until("all are as they were", |cluster| {
            is_done(cluster, 3)
                && revisions(cluster)
                    .iter()
                    .all(|(_, revision)| *revision == old)
        })
        .await;
    let mut numbers: Vec<(Value, Value)> = cluster
        .list("controllerrevisions")
        .into_iter()
        .map(|revision| {
            (
                revision["revision"].clone(),
                revision["metadata"]["name"].clone(),
            )
        })
        .collect();
    numbers.sort_by_key(|(number, _)| number.as_i64());
    assert_eq!(numbers, [(json!(2), json!(new)), (json!(3), json!(old))]);
}

#[tokio::test(start_paused = true)]
async fn stateful_set_adopts_and_releases_pods_by_name_and_labels() {
    let running = Running::start();
    let cluster = &running.cluster;
    let orphan = |name: &str| {
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", "labels": {"app": "web"}},
            "spec": {"containers": []},
        })
    };
    cluster.put(orphan("db-0"));
    cluster.put(orphan("other-0"));
    cluster.put(json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"name": "db", "namespace": "default", "generation": 1},
        "spec": {
            "replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template("v1"),
            "updateStrategy": {"type": "OnDelete"},
        },
    }));
    let owners = |cluster: &Cluster, name: &str| {
        let pod = cluster
            .get("pods", &Key::new("default", name))
            .unwrap_or_default();
        let owners = pod["metadata"]["ownerReferences"].as_array().cloned();
        owners.map_or(0, |owners| owners.len())
    };
    running
        .until("adopted and labelled", |cluster| {
            let pod = cluster
                .get("pods", &Key::new("default", "db-0"))
                .unwrap_or_default();
            let labels = &pod["metadata"]["labels"];
            owners(cluster, "db-0") == 1 && labels["statefulset.kubernetes.io/pod-name"] == "db-0"
        })
        .await;
    assert_eq!(owners(cluster, "other-0"), 0);
    cluster.change("pods", &Key::new("default", "db-0"), |pod| {
        pod["metadata"]["labels"] = json!({"app": "else"});
    });
    running
        .until("released", |cluster| owners(cluster, "db-0") == 0)
        .await;
}
