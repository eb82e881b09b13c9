//! Node agents: each reads and writes only its own objects.

use serde_json::json;

use super::cluster::{Cluster, eventually};
use super::objects::{PODS, SECRETS, node, placed_pod, secret};

const NODES: &str = "/api/v1/nodes";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kubelet_writes_its_own_node_and_no_other() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let (own, other) = (cluster.kubelet("n1"), cluster.kubelet("n2"));
    own.post(NODES, &node("n1")).await.expect(201);
    let message = own.post(NODES, &node("n3")).await.refused(403, "Forbidden");
    assert!(
        message.contains("node \"n1\" is not allowed to modify node \"n3\""),
        "{message}"
    );
    let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    let status = format!("{NODES}/n1/status");
    own.patch(&status, "strategic-merge", &ready)
        .await
        .expect(200);
    other
        .patch(&status, "strategic-merge", &ready)
        .await
        .refused(403, "Forbidden");
    let label = json!({"metadata": {"labels": {"node-restriction.kubernetes.io/x": "y"}}});
    let message = own.patch(&format!("{NODES}/n1"), "merge", &label).await;
    message.refused(403, "Forbidden");
    let taint = json!({"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}});
    let tainted = own.patch(&format!("{NODES}/n1"), "merge", &taint).await;
    tainted.refused(403, "Forbidden");
    admin
        .patch(&format!("{NODES}/n1"), "merge", &taint)
        .await
        .expect(200);
    let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "n1"}, "spec": {"holderIdentity": "n1", "leaseDurationSeconds": 40}});
    own.post(leases, &lease).await.expect(201);
    other
        .get(&format!("{leases}/n1"))
        .await
        .refused(403, "Forbidden");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubelet_reads_the_secrets_of_its_pods() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let (own, other) = (cluster.kubelet("n1"), cluster.kubelet("n2"));
    own.post(NODES, &node("n1")).await.expect(201);
    other.post(NODES, &node("n2")).await.expect(201);
    admin.post(SECRETS, &secret("s")).await.expect(201);
    let path = format!("{SECRETS}/s");
    let message = own.get(&path).await.refused(403, "Forbidden");
    assert!(
        message.contains("no relationship found between node 'n1' and this object"),
        "{message}"
    );
    let mut pod = placed_pod("p", "n1");
    pod["spec"]["volumes"] = json!([{"name": "v", "secret": {"secretName": "s"}}]);
    let pod = admin.post(PODS, &pod).await.expect(201);
    eventually("the kubelet sees the secret", async || {
        (own.get(&path).await.code == 200).then_some(())
    })
    .await;
    own.get(SECRETS).await.refused(403, "Forbidden");
    own.watch(&format!(
        "{SECRETS}?watch=true&fieldSelector=metadata.name%3Ds"
    ))
    .await;
    other.get(&path).await.refused(403, "Forbidden");
    // Pods: its own, selected by the field.
    own.get("/api/v1/pods?fieldSelector=spec.nodeName%3Dn1")
        .await
        .expect(200);
    other
        .delete(&format!("{PODS}/p"))
        .await
        .refused(403, "Forbidden");
    let mut status = pod;
    status["status"]["phase"] = json!("Running");
    other
        .put(&format!("{PODS}/p/status"), &status)
        .await
        .refused(403, "Forbidden");
    own.put(&format!("{PODS}/p/status"), &status)
        .await
        .expect(200);
    // A kubelet creates mirror pods only.
    own.post(PODS, &placed_pod("q", "n1"))
        .await
        .refused(403, "Forbidden");
    let now = json!({"gracePeriodSeconds": 0});
    own.delete_with(&format!("{PODS}/p"), &now)
        .await
        .expect(200);
    eventually("the secret is out of sight again", async || {
        (own.get(&path).await.code == 403).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_pod_is_resized_beyond_its_nodes_allocatable() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    admin.post(NODES, &node("n1")).await.expect(201);
    let allocatable = json!({"status": {"allocatable": {"cpu": "2", "memory": "1Gi"}}});
    let status = format!("{NODES}/n1/status");
    let patched = admin.patch(&status, "merge", &allocatable).await;
    patched.expect(200);
    let mut pod = placed_pod("p", "n1");
    let requests = |cpu: &str| json!({"requests": {"cpu": cpu, "memory": "64Mi"}});
    pod["spec"]["containers"][0]["resources"] = requests("1");
    admin.post(PODS, &pod).await.expect(201);
    let name = pod["spec"]["containers"][0]["name"].clone();
    let resize = async |cpu: &str| {
        let body = json!({"spec": {"containers": [{"name": name, "resources": requests(cpu)}]}});
        let path = format!("{PODS}/p/resize");
        admin.patch(&path, "strategic-merge", &body).await
    };
    resize("2").await.expect(200);
    let refused = resize("3").await;
    let cause = refused.json()["details"]["causes"][0]["reason"].clone();
    assert_eq!(cause, "NodeCapacity");
    assert_eq!(
        refused.refused(403, "Forbidden"),
        "pods \"p\" is forbidden: node didn't have enough allocatable resources: cpu, requested: \
         3000, allocatable: 2000"
    );
    resize("1").await.expect(200);
}
