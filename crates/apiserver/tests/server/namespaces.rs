//! The lifecycle of a namespace.

use serde_json::json;

use super::caller::Caller;
use super::cluster::{Cluster, eventually};
use super::objects::{config_map, namespace, pod};

const NAMESPACES: &str = "/api/v1/namespaces";

async fn get_soon(caller: &Caller, path: &str) -> serde_json::Value {
    eventually(path, async || {
        let answer = caller.get(path).await;
        (answer.code == 200).then(|| answer.json())
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_namespace_can_be_used_at_once() {
    let cluster = Cluster::start().await;
    let admin = cluster.local_admin();
    for number in 0..30 {
        let name = format!("n{number}");
        admin.post(NAMESPACES, &namespace(&name)).await.expect(201);
        let path = format!("{NAMESPACES}/{name}/configmaps");
        admin.post(&path, &config_map("first")).await.expect(201);
        // The default service account is created automatically; a pod that needs it waits a moment
        // for it.
        let path = format!("{NAMESPACES}/{name}/pods");
        admin.post(&path, &pod("first")).await.expect(201);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn namespace_defaults_are_created_and_restored() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let made = admin.post(NAMESPACES, &namespace("n")).await.expect(201);
    assert_eq!(
        made["metadata"]["labels"]["kubernetes.io/metadata.name"],
        "n"
    );
    assert_eq!(made["spec"]["finalizers"], json!(["kubernetes"]));
    assert_eq!(made["status"]["phase"], "Active");
    for path in [
        format!("{NAMESPACES}/n/serviceaccounts/default"),
        format!("{NAMESPACES}/n/configmaps/kube-root-ca.crt"),
    ] {
        let first = get_soon(&admin, &path).await;
        admin.delete(&path).await.expect(200);
        let second = get_soon(&admin, &path).await;
        assert_ne!(first["metadata"]["uid"], second["metadata"]["uid"]);
    }
    let trusted = format!("{NAMESPACES}/n/configmaps/kube-root-ca.crt");
    let wrong = json!({"data": {"ca.crt": "mine"}});
    admin.patch(&trusted, "merge", &wrong).await.expect(200);
    eventually("the certificate is put right", async || {
        let found = admin.get(&trusted).await.expect(200);
        (found["data"]["ca.crt"] != "mine").then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn terminating_namespace_rejects_new_objects() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let missing = admin
        .post(&format!("{NAMESPACES}/none/configmaps"), &config_map("c"))
        .await;
    let message = missing.refused(404, "NotFound");
    assert_eq!(message, "namespaces \"none\" not found");
    admin.post(NAMESPACES, &namespace("n")).await.expect(201);
    let path = format!("{NAMESPACES}/n");
    let marked = admin.delete(&path).await.expect(200);
    assert_eq!(marked["status"]["phase"], "Terminating");
    let late = admin
        .post(&format!("{path}/configmaps"), &config_map("late"))
        .await;
    let message = late.refused(403, "Forbidden");
    assert_eq!(
        message,
        "configmaps \"late\" is forbidden: unable to create new content in namespace n because it \
         is being terminated"
    );
    let cause = &late.json()["details"]["causes"][0];
    assert_eq!(cause["reason"], "NamespaceTerminating");
    // It stays until its own finalizer is removed.
    let mut object = admin.get(&path).await.expect(200);
    object["spec"]["finalizers"] = json!([]);
    admin
        .put(&format!("{path}/finalize"), &object)
        .await
        .expect(200);
    admin.get(&path).await.refused(404, "NotFound");
    for kept in ["default", "kube-system", "kube-public"] {
        let answer = admin.delete(&format!("{NAMESPACES}/{kept}")).await;
        let message = answer.refused(403, "Forbidden");
        assert!(
            message.ends_with("this namespace may not be deleted"),
            "{message}"
        );
    }
}
