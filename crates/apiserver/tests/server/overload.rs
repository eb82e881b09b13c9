//! More requests than there are seats.

use plimsoll_apiserver::store::RedbOptions;
use serde_json::json;

use super::cluster::Cluster;
use super::objects::SECRETS;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn request_without_a_seat_gets_retry_after() {
    let cluster = Cluster::start_with(
        |options| {
            options.max_reads = 1;
            options.max_writes = 1;
        },
        RedbOptions::default(),
    )
    .await;
    let admin = cluster.admin();
    // Administrators are not limited.
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding", "metadata": {"name": "readers"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "reader"}]});
    let bindings = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";
    admin.post(bindings, &binding).await.expect(201);
    let far = cluster.store.current_revision().await.unwrap() + 1000;
    // Each waits three seconds for a version that does not come: one has the seat, some are queued.
    let path = format!("{SECRETS}?resourceVersion={far}");
    let requests = (0..12).map(|_| {
        let (reader, path) = (cluster.user("reader", &[]), path.clone());
        tokio::spawn(async move { reader.get(&path).await })
    });
    let requests: Vec<_> = requests.collect();
    let mut refused = 0;
    for request in requests {
        let answer = request.await.unwrap();
        if answer.code == 429 {
            answer.refused(429, "TooManyRequests");
            assert_eq!(answer.header("retry-after"), "1");
            refused += 1;
        } else {
            answer.refused(504, "Timeout");
        }
        // Health checks and watches need no seat.
        assert_eq!(admin.get("/readyz").await.code, 200);
        drop(admin.watch(&format!("{SECRETS}?watch=true")).await);
    }
    assert!(refused >= 3, "{refused} of 12");
    admin.get(SECRETS).await.expect(200);
}
