use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::*;

#[tokio::test]
async fn finalizers_keep_deleted_object_until_removed() {
    let cluster = Cluster::new();
    let key = Key::new("default", "a");
    cluster.put(json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"namespace": "default", "name": "a"},
    }));
    cluster.delete("configmaps", &key, "Orphan");
    assert_eq!(cluster.list("configmaps").len(), 1);
    let api: Api<ConfigMap> = Api::namespaced(cluster.client(), "default");
    let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    let patched = api.patch("a", &PatchParams::default(), &patch).await;
    patched.unwrap();
    cluster
        .eventually("the object is gone", |c| {
            c.get("configmaps", &key).is_none()
        })
        .await;
}
