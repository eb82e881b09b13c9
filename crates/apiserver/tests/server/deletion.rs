//! Deleting: immediately, gracefully, after the last finalizer.

use serde_json::json;

use super::cluster::Cluster;
use super::objects::{
    CONFIG_MAPS, PODS, SECRETS, colored, config_map, names, placed_pod, pod, secret,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn object_is_deleted_with_its_last_finalizer() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let mut object = config_map("held");
    object["metadata"]["finalizers"] = json!(["example.org/a", "example.org/b"]);
    admin.post(CONFIG_MAPS, &object).await.expect(201);
    let path = format!("{CONFIG_MAPS}/held");
    let marked = admin.delete(&path).await.expect(200);
    let since = marked["metadata"]["deletionTimestamp"].clone();
    assert!(since.is_string());
    let again = admin.delete(&path).await.expect(200);
    assert_eq!(again["metadata"]["deletionTimestamp"], since);
    let finalizers = |list: serde_json::Value| json!({"metadata": {"finalizers": list}});
    // An object that is being deleted gets no new finalizers.
    let more = finalizers(json!(["example.org/a", "example.org/b", "example.org/c"]));
    admin
        .patch(&path, "merge", &more)
        .await
        .refused(422, "Invalid");
    let fewer = finalizers(json!(["example.org/b"]));
    admin.patch(&path, "merge", &fewer).await.expect(200);
    admin.get(&path).await.expect(200);
    let last = admin.patch(&path, "merge", &finalizers(json!([]))).await;
    last.expect(200);
    admin.get(&path).await.refused(404, "NotFound");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pod_on_a_node_is_deleted_gracefully() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    admin.post(PODS, &pod("waiting")).await.expect(201);
    admin.delete(&format!("{PODS}/waiting")).await.expect(200);
    admin
        .get(&format!("{PODS}/waiting"))
        .await
        .refused(404, "NotFound");
    admin
        .post(PODS, &placed_pod("running", "n1"))
        .await
        .expect(201);
    let path = format!("{PODS}/running");
    let marked = admin.delete(&path).await.expect(200);
    assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], 30);
    let uid = marked["metadata"]["uid"].clone();
    let shorter = json!({"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 5});
    let marked = admin.delete_with(&path, &shorter).await.expect(200);
    assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], 5);
    let other = json!({"gracePeriodSeconds": 0, "preconditions": {"uid": "other"}});
    admin
        .delete_with(&path, &other)
        .await
        .refused(409, "Conflict");
    let now = json!({"gracePeriodSeconds": 0, "preconditions": {"uid": uid}});
    admin.delete_with(&path, &now).await.expect(200);
    admin.get(&path).await.refused(404, "NotFound");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_deletes_delete_once() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    admin.post(CONFIG_MAPS, &config_map("c")).await.expect(201);
    let deletes = (0..20).map(|_| {
        let admin = admin.clone();
        tokio::spawn(async move { admin.delete(&format!("{CONFIG_MAPS}/c")).await.code })
    });
    let mut gone = 0;
    for delete in deletes.collect::<Vec<_>>() {
        match delete.await.unwrap() {
            200 => gone += 1,
            code => assert_eq!(code, 404),
        }
    }
    assert_eq!(gone, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn delete_collection_honours_selectors() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    for (name, color) in [("a", "red"), ("b", "blue"), ("c", "red")] {
        admin.post(SECRETS, &colored(name, color)).await.expect(201);
    }
    let other = "/api/v1/namespaces/kube-public/secrets";
    admin.post(other, &secret("o")).await.expect(201);
    let red = format!("{SECRETS}?labelSelector=color%3Dred");
    assert_eq!(names(&admin.delete(&red).await.expect(200)), ["a", "c"]);
    assert_eq!(
        names(&admin.get("/api/v1/secrets").await.expect(200)),
        ["b", "o"]
    );
    admin
        .delete("/api/v1/secrets")
        .await
        .refused(405, "MethodNotAllowed");
}
