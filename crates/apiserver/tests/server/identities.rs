//! Authentication and authorization.

use plimsoll_apiserver::store::{RedbOptions, Txn};
use serde_json::json;

use super::caller::Caller;
use super::cluster::{Cluster, eventually};
use super::objects::{CONFIG_MAPS, SECRETS, config_map, secret};

const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";

/// Lets a user read config maps of the default namespace.
async fn grant_reading(admin: &Caller, user: &str) {
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "reader"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}],
    });
    admin.post(ROLES, &role).await.expect(201);
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "readers"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    });
    admin.post(BINDINGS, &binding).await.expect(201);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificate_authenticates_and_roles_authorize() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let alice = cluster.user("alice", &["devs"]);
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let me = alice.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", &review);
    let me = me.await.expect(201);
    assert_eq!(me["status"]["userInfo"]["username"], "alice");
    assert_eq!(
        me["status"]["userInfo"]["groups"],
        json!(["devs", "system:authenticated"])
    );
    let message = alice.get(CONFIG_MAPS).await.refused(403, "Forbidden");
    assert_eq!(
        message,
        "configmaps is forbidden: User \"alice\" cannot list resource \"configmaps\" in API group \
         \"\" in the namespace \"default\""
    );
    grant_reading(&admin, "alice").await;
    eventually("alice may list", async || {
        (alice.get(CONFIG_MAPS).await.code == 200).then_some(())
    })
    .await;
    alice
        .get("/api/v1/configmaps")
        .await
        .refused(403, "Forbidden");
    alice
        .post(CONFIG_MAPS, &config_map("c"))
        .await
        .refused(403, "Forbidden");
    alice
        .get(&format!("{CONFIG_MAPS}?watch=true"))
        .await
        .refused(403, "Forbidden");
    // A user cannot grant more than it has.
    let access = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"name": "more"},
        "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}],
    });
    alice.post(ROLES, &access).await.refused(403, "Forbidden");
    admin
        .delete(&format!("{BINDINGS}/readers"))
        .await
        .expect(200);
    eventually("alice may not list any more", async || {
        (alice.get(CONFIG_MAPS).await.code == 403).then_some(())
    })
    .await;
}

/// The server reloads everything when it cannot follow the store; permissions revoked
/// meanwhile stay revoked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn permissions_revoked_during_a_cache_gap_stay_revoked() {
    let options = RedbOptions {
        watch_buffer: 1,
        ..RedbOptions::default()
    };
    let cluster = Cluster::start_with(|_| {}, options).await;
    let (admin, alice) = (cluster.admin(), cluster.user("alice", &[]));
    grant_reading(&admin, "alice").await;
    eventually("alice may list", async || {
        (alice.get(CONFIG_MAPS).await.code == 200).then_some(())
    })
    .await;
    // The server's own threads are blocked while the store continues and compacts.
    let held_up = (0..2)
        .map(|_| tokio::spawn(async { std::thread::sleep(std::time::Duration::from_millis(500)) }));
    let held_up: Vec<_> = held_up.collect();
    for number in 0..100 {
        let mut txn = Txn::new().put(format!("/registry/other/{number}"), "x");
        if number == 50 {
            txn = txn.delete("/registry/rolebindings/default/readers");
        }
        cluster.store.txn(txn).await.unwrap();
    }
    let current = cluster.store.current_revision().await.unwrap();
    cluster.store.compact(current).await.unwrap();
    for held_up in held_up {
        held_up.await.unwrap();
    }
    admin
        .get(&format!("{BINDINGS}/readers"))
        .await
        .refused(404, "NotFound");
    eventually("alice may not list any more", async || {
        (alice.get(CONFIG_MAPS).await.code == 403).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn anonymous_user_gets_health_only() {
    let cluster = Cluster::start().await;
    let anonymous = cluster.bearer("");
    for path in [
        "/healthz",
        "/livez",
        "/readyz",
        "/readyz?verbose",
        "/version",
    ] {
        assert_eq!(anonymous.get(path).await.code, 200, "{path}");
    }
    for path in [
        "/",
        "/api",
        "/apis",
        "/api/v1",
        "/metrics",
        "/openapi/v3",
        "/api/v1/namespaces",
        "/api/v1/namespaces/default/secrets",
        "/apis/apps/v1",
        "/nothing/here",
    ] {
        let answer = anonymous.get(path).await;
        let message = answer.refused(403, "Forbidden");
        assert!(message.contains("system:anonymous"), "{message}");
    }
    anonymous
        .post(SECRETS, &secret("s"))
        .await
        .refused(403, "Forbidden");
    cluster
        .bearer("wrong")
        .get("/healthz")
        .await
        .refused(401, "Unauthorized");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn authorized_user_may_impersonate() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let as_bob = admin.with("impersonate-user", "bob");
    let message = as_bob.get(CONFIG_MAPS).await.refused(403, "Forbidden");
    assert!(message.contains("User \"bob\""), "{message}");
    let as_master = as_bob.with("impersonate-group", "system:masters");
    as_master.get(CONFIG_MAPS).await.expect(200);
    let carol = cluster.user("carol", &[]).with("impersonate-user", "admin");
    let message = carol.get(CONFIG_MAPS).await.refused(403, "Forbidden");
    assert!(
        message.contains("User \"carol\" cannot impersonate"),
        "{message}"
    );
    let groups_only = admin.with("impersonate-group", "system:masters");
    assert_eq!(groups_only.get(CONFIG_MAPS).await.code, 500);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_of_another_ca_are_rejected() {
    let cluster = Cluster::start().await;
    let stranger = Cluster::start().await;
    let text = stranger.kubeconfig("admin", &["system:masters"]);
    let mut parsed = kube::config::Kubeconfig::from_yaml(&text).unwrap();
    let own = kube::config::Kubeconfig::from_yaml(&cluster.kubeconfig("admin", &[])).unwrap();
    parsed.clusters = own.clusters;
    let options = kube::config::KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(parsed, &options)
        .await
        .unwrap();
    let client = kube::Client::try_from(config).unwrap();
    let request = http::Request::get("/api/v1/namespaces");
    let answer = client.request_text(request.body(Vec::new()).unwrap()).await;
    assert!(answer.is_err());
}
