//! A rejected request changes nothing.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::Method;
use plimsoll_apiserver::store::{RangeRequest, Txn};
use serde_json::{Value, json};

use super::caller::Caller;
use super::cluster::{Cluster, eventually};
use super::objects::{CONFIG_MAPS, PODS, binding, config_map, node, placed_pod, pod, secret};

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";

/// All stored keys.
async fn rows(cluster: &Cluster) -> BTreeMap<Bytes, Bytes> {
    let all = RangeRequest::prefix("/registry/");
    let page = cluster.store.range(all).await.unwrap();
    let rows = page.entries.into_iter();
    rows.map(|entry| (entry.key, entry.value)).collect()
}

/// Restores all stored keys.
async fn restore(cluster: &Cluster, before: &BTreeMap<Bytes, Bytes>) {
    let now = rows(cluster).await;
    let mut txn = Txn::new();
    for key in now.keys().filter(|key| !before.contains_key(*key)) {
        txn = txn.delete(key.clone());
    }
    for (key, value) in before
        .iter()
        .filter(|(key, value)| now.get(*key) != Some(value))
    {
        txn = txn.put(key.clone(), value.clone());
    }
    cluster.store.txn(txn).await.unwrap();
}

fn role_binding(name: &str, role: &str, user: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    })
}

fn eviction(pod: &str) -> Value {
    json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}})
}

fn deployment(name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": pod("x")["spec"]},
        },
    })
}

/// A running pod `p` on `n1` with a budget of one, and an object of each kind that is written to.
async fn create_objects(cluster: &Cluster) {
    let admin = cluster.admin();
    for name in ["n1", "n2"] {
        admin.post("/api/v1/nodes", &node(name)).await.expect(201);
    }
    let mut pod = admin.post(PODS, &placed_pod("p", "n1")).await.expect(201);
    pod["status"] = json!({
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True"}],
    });
    let status = format!("{PODS}/p/status");
    admin.put(&status, &pod).await.expect(200);
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    });
    let mut budget = admin.post(BUDGETS, &budget).await.expect(201);
    budget["status"] = json!({
        "observedGeneration": 1, "disruptionsAllowed": 1, "currentHealthy": 2,
        "desiredHealthy": 1, "expectedPods": 2,
    });
    let status = format!("{BUDGETS}/web/status");
    admin.put(&status, &budget).await.expect(200);
    admin.post(CONFIG_MAPS, &config_map("c")).await.expect(201);
    admin.post(DEPLOYMENTS, &deployment("d")).await.expect(201);
    for (role, user) in [("edit", "editor"), ("view", "viewer")] {
        let binding = role_binding(user, role, user);
        admin.post(BINDINGS, &binding).await.expect(201);
        let caller = cluster.user(user, &[]);
        eventually("the role works", async || {
            (caller.get(CONFIG_MAPS).await.code == 200).then_some(())
        })
        .await;
    }
}

/// Every verb and subresource that writes, as method, path, media type and body.
fn writes() -> Vec<(Method, String, &'static str, String)> {
    let pod_at = |part: &str| format!("{PODS}/p{part}");
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    let lease = |name: &str| json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}});
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "more"},
        "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["*"]}],
    });
    let token = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
        "spec": {"audiences": []}});
    let scale = json!({"spec": {"replicas": 3}});
    let phase = json!({"status": {"phase": "Failed"}});
    let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    let debug = json!({"spec": {"ephemeralContainers": [{"name": "d", "image": "example.org/d"}]}});
    let wrong = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"},
        "deleteOptions": {"preconditions": {"uid": "another"}}});
    let own = |name: &str| format!("/api/v1/nodes/{name}");
    let namespace = "/api/v1/namespaces/default";
    let table: Vec<(Method, String, &'static str, Value)> = vec![
        (Method::POST, PODS.into(), JSON, pod("q")),
        (Method::POST, PODS.into(), JSON, placed_pod("q", "n2")),
        (Method::PUT, pod_at(""), JSON, placed_pod("p", "n1")),
        (Method::PUT, format!("{PODS}/q"), JSON, pod("q")),
        (Method::PATCH, pod_at(""), MERGE, label.clone()),
        (Method::PATCH, format!("{PODS}/q"), APPLY, pod("q")),
        (Method::PATCH, pod_at(""), APPLY, pod("p")),
        (Method::DELETE, pod_at(""), "", Value::Null),
        (Method::DELETE, PODS.into(), "", Value::Null),
        (Method::PATCH, pod_at("/status"), MERGE, phase.clone()),
        (Method::PATCH, format!("{PODS}/q/status"), APPLY, pod("q")),
        (Method::POST, pod_at("/eviction"), JSON, eviction("p")),
        (Method::POST, pod_at("/eviction"), JSON, wrong),
        (Method::POST, pod_at("/eviction"), JSON, eviction("other")),
        (Method::POST, pod_at("/binding"), JSON, binding("p", "n2")),
        (
            Method::POST,
            format!("{namespace}/bindings"),
            JSON,
            binding("p", "n2"),
        ),
        (Method::PATCH, pod_at("/ephemeralcontainers"), MERGE, debug),
        (Method::PATCH, pod_at("/resize"), MERGE, label.clone()),
        (Method::POST, CONFIG_MAPS.into(), JSON, config_map("new")),
        (
            Method::PUT,
            format!("{CONFIG_MAPS}/new"),
            JSON,
            config_map("new"),
        ),
        (
            Method::PATCH,
            format!("{CONFIG_MAPS}/new"),
            APPLY,
            config_map("new"),
        ),
        (
            Method::PATCH,
            format!("{CONFIG_MAPS}/c"),
            MERGE,
            label.clone(),
        ),
        (Method::DELETE, CONFIG_MAPS.into(), "", Value::Null),
        (
            Method::POST,
            "/api/v1/namespaces/kube-system/secrets".into(),
            JSON,
            secret("s"),
        ),
        (
            Method::POST,
            format!("{namespace}/serviceaccounts/default/token"),
            JSON,
            token,
        ),
        (
            Method::PATCH,
            format!("{DEPLOYMENTS}/d/scale"),
            MERGE,
            scale,
        ),
        (
            Method::PATCH,
            format!("{DEPLOYMENTS}/e"),
            APPLY,
            deployment("e"),
        ),
        (Method::DELETE, BUDGETS.into(), "", Value::Null),
        (
            Method::PATCH,
            format!("{BUDGETS}/web/status"),
            MERGE,
            json!({"status": {}}),
        ),
        (Method::POST, LEASES.into(), JSON, lease("n2")),
        (Method::PUT, format!("{LEASES}/n2"), JSON, lease("n2")),
        (Method::PATCH, format!("{LEASES}/n2"), APPLY, lease("n2")),
        (Method::POST, "/api/v1/nodes".into(), JSON, node("n3")),
        (Method::PATCH, own("n3"), APPLY, node("n3")),
        (
            Method::PATCH,
            own("n2"),
            MERGE,
            json!({"spec": {"unschedulable": true}}),
        ),
        (Method::PATCH, own("n2/status"), MERGE, ready),
        (Method::DELETE, own("n2"), "", Value::Null),
        (Method::POST, ROLES.into(), JSON, role.clone()),
        (Method::PATCH, format!("{ROLES}/more"), APPLY, role.clone()),
        (Method::PUT, format!("{ROLES}/more"), JSON, role),
        (
            Method::PATCH,
            format!("{BINDINGS}/all"),
            APPLY,
            role_binding("all", "admin", "editor"),
        ),
        (Method::PATCH, namespace.into(), MERGE, label.clone()),
        (Method::PATCH, format!("{namespace}/status"), MERGE, phase),
        (Method::DELETE, namespace.into(), "", Value::Null),
    ];
    let text = |body: Value| match body {
        Value::Null => String::new(),
        body => body.to_string(),
    };
    let table = table.into_iter();
    table
        .map(|(method, path, media_type, body)| {
            let path = match media_type {
                APPLY => format!("{path}?fieldManager=me&force=true"),
                _ => path,
            };
            (method, path, media_type, text(body))
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_request_changes_nothing() {
    let cluster = Cluster::start().await;
    create_objects(&cluster).await;
    let callers = [
        ("anonymous", cluster.bearer("")),
        ("viewer", cluster.user("viewer", &[])),
        ("editor", cluster.user("editor", &[])),
        ("node of the pod", cluster.kubelet("n1")),
        ("another node", cluster.kubelet("n2")),
        ("scheduler", cluster.user("system:kube-scheduler", &[])),
    ];
    let before = rows(&cluster).await;
    let mut refused: BTreeMap<&str, usize> = BTreeMap::new();
    let mut allowed: BTreeMap<&str, usize> = BTreeMap::new();
    for (method, path, media_type, body) in writes() {
        for (name, caller) in &callers {
            let answer = caller
                .send(method.clone(), &path, media_type, body.clone())
                .await;
            let is_refused = answer.code >= 400;
            *(if is_refused {
                &mut refused
            } else {
                &mut allowed
            })
            .entry(name)
            .or_default() += 1;
            let must_be_refused = matches!(*name, "anonymous" | "viewer");
            assert!(is_refused || !must_be_refused, "{name}: {method} {path}");
            if !is_refused {
                restore(&cluster, &before).await;
                continue;
            }
            let after = rows(&cluster).await;
            let changed: Vec<&Bytes> = after
                .iter()
                .filter(|(key, value)| before.get(*key) != Some(value))
                .map(|(key, _)| key)
                .chain(before.keys().filter(|key| !after.contains_key(*key)))
                .collect();
            let text = String::from_utf8_lossy(&answer.body);
            assert!(
                changed.is_empty(),
                "{name}: {method} {path}: {text}: {changed:?}"
            );
        }
    }
    // The table has allowed requests, too: rejections are not due to malformed requests.
    assert!(allowed["editor"] >= 10, "{allowed:?}");
    assert!(allowed["node of the pod"] >= 3, "{allowed:?}");
    assert!(refused["another node"] >= 30, "{refused:?}");
}

/// A user that may do these with config maps and nothing else.
async fn user_with(cluster: &Cluster, name: &str, verbs: &[&str], names: &[&str]) -> Caller {
    let admin = cluster.admin();
    let mut role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": [
            {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]},
            {"apiGroups": ["", "coordination.k8s.io"], "resources": ["configmaps", "leases"],
                "verbs": verbs},
        ],
    });
    if !names.is_empty() {
        role["rules"][1]["resourceNames"] = json!(names);
    }
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    admin.post(roles, &role).await.expect(201);
    let binding = role_binding(name, name, name);
    admin.post(BINDINGS, &binding).await.expect(201);
    let caller = cluster.user(name, &[]);
    eventually("the role works", async || {
        let code = caller
            .get(&format!("{CONFIG_MAPS}/kube-root-ca.crt"))
            .await
            .code;
        (code == 200).then_some(())
    })
    .await;
    caller
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn applying_or_putting_a_new_object_needs_create() {
    let cluster = Cluster::start().await;
    let patcher = user_with(&cluster, "patcher", &["patch", "update"], &[]).await;
    let new = format!("{CONFIG_MAPS}/new");
    let apply = format!("{new}?fieldManager=me");
    let message = patcher.patch(&apply, "apply", &config_map("new")).await;
    assert_eq!(
        message.refused(403, "Forbidden"),
        "configmaps \"new\" is forbidden: User \"patcher\" cannot create resource \"configmaps\" \
         in API group \"\" in the namespace \"default\""
    );
    let dry = format!("{apply}&dryRun=All");
    let dry = patcher.patch(&dry, "apply", &config_map("new")).await;
    dry.refused(403, "Forbidden");
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "new"}});
    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases/new";
    let message = patcher.put(leases, &lease).await.refused(403, "Forbidden");
    assert_eq!(
        message,
        "leases.coordination.k8s.io \"new\" is forbidden: User \"patcher\" cannot create resource \
         \"leases\" in API group \"coordination.k8s.io\" in the namespace \"default\""
    );
    cluster
        .admin()
        .post(CONFIG_MAPS, &config_map("new"))
        .await
        .expect(201);
    // An existing object is updated, not created.
    patcher
        .patch(&apply, "apply", &config_map("new"))
        .await
        .expect(200);

    // Unlike with POST, the name is known here, so a role may name it.
    let verbs = ["patch", "update", "create"];
    let narrow = user_with(&cluster, "narrow", &verbs, &["mine"]).await;
    let mine = format!("{CONFIG_MAPS}/mine?fieldManager=me");
    let made = narrow.patch(&mine, "apply", &config_map("mine")).await;
    made.expect(201);
    narrow
        .post(CONFIG_MAPS, &config_map("mine"))
        .await
        .refused(403, "Forbidden");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_evicts_its_own_pods_and_no_others() {
    let cluster = Cluster::start().await;
    create_objects(&cluster).await;
    let before = rows(&cluster).await;
    let path = format!("{PODS}/p/eviction");
    let other = cluster.kubelet("n2");
    let message = other.post(&path, &eviction("p")).await;
    assert_eq!(
        message.refused(403, "Forbidden"),
        "pods \"p\" is forbidden: node n2 can only evict pods with spec.nodeName set to itself"
    );
    assert_eq!(rows(&cluster).await, before);
    let none = format!("{PODS}/none/eviction");
    let missing = other.post(&none, &eviction("none")).await;
    missing.refused(404, "NotFound");
    let own = cluster.kubelet("n1");
    own.post(&path, &eviction("p")).await.expect(201);
    let admin = cluster.admin();
    let pod = admin.get(&format!("{PODS}/p")).await.expect(200);
    assert!(pod["metadata"]["deletionTimestamp"].is_string(), "{pod}");
    let budget = admin.get(&format!("{BUDGETS}/web")).await.expect(200);
    assert_eq!(budget["status"]["disruptionsAllowed"], 0);
}
