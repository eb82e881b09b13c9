//! Stored bytes that are not objects: they hide no other object, grant nothing, and can be removed.

use std::sync::Arc;

use bytes::Bytes;
use http::Method;
use plimsoll_apiserver::store::{RedbOptions, RedbStore, Store, Txn};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::caller::Caller;
use super::cluster::{Cluster, eventually};
use super::joining::{REQUESTS, signing_request};
use super::objects::{CONFIG_MAPS, PODS, config_map, names, pod};

const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";
const UNSEEN: &str = "ignoreStoreReadErrorWithClusterBreakingPotential";

/// An object that readers reject: as older servers stored it.
fn deep(name: &str) -> Bytes {
    let nested = format!("{}{}", "[".repeat(150), "]".repeat(150));
    format!(r#"{{"kind":"Any","metadata":{{"name":"{name}"}},"data":{nested}}}"#).into()
}

/// Writes directly to the store, and waits until the server has seen that.
/// A cluster, and its store and folder, to open the cluster again.
async fn cluster_and_store() -> (Cluster, Arc<dyn Store>, Arc<TempDir>) {
    let folder = Arc::new(tempfile::tempdir().unwrap());
    let file = folder.path().join("store.redb");
    let store = RedbStore::open(&file, &RedbOptions::default()).unwrap();
    let store: Arc<dyn Store> = Arc::new(store);
    let cluster = Cluster::open(store.clone(), folder.clone(), |_| {}).await;
    (cluster, store, folder)
}

async fn put(cluster: &Cluster, key: &str, value: impl Into<Bytes>) {
    let txn = Txn::new().put(key.to_owned(), value);
    commit(cluster, txn).await;
}

async fn commit(cluster: &Cluster, txn: Txn) {
    cluster.store.txn(txn).await.unwrap();
    cluster.admin().get(CONFIG_MAPS).await.expect(200);
}

/// Grants a user everything on some resources of the default namespace.
async fn grant(admin: &Caller, user: &str, resource: &str, verbs: &[&str]) {
    let group = "rbac.authorization.k8s.io";
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": user},
        "rules": [{"apiGroups": [""], "resources": [resource], "verbs": verbs}],
    });
    admin.post(ROLES, &role).await.expect(201);
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": user},
        "roleRef": {"apiGroup": group, "kind": "Role", "name": user},
        "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
    });
    admin.post(BINDINGS, &binding).await.expect(201);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unreadable_object_hides_no_other_and_needs_an_administrator_to_remove() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    grant(
        &admin,
        "editor",
        "configmaps",
        &["get", "list", "create", "update", "patch", "delete"],
    )
    .await;
    let editor = cluster.user("editor", &[]);
    for name in ["a", "b", "c"] {
        admin.post(CONFIG_MAPS, &config_map(name)).await.expect(201);
    }
    let mut watch = admin.watch(&format!("{CONFIG_MAPS}?watch=true")).await;
    for _ in 0..4 {
        watch.next().await.unwrap();
    }
    for bytes in [
        deep("b"),
        "{".into(),
        "null".into(),
        "[]".into(),
        "\u{0}\u{1}".into(),
    ] {
        put(&cluster, "/registry/configmaps/default/b", bytes).await;
        let list = admin.get(CONFIG_MAPS).await.expect(200);
        assert_eq!(names(&list), ["a", "c", "kube-root-ca.crt"]);
    }
    let (sort, name, _) = watch.event().await;
    assert_eq!((sort.as_str(), name.as_str()), ("DELETED", "b"));
    // Pages skip it.
    let mut token = String::new();
    let mut listed = Vec::new();
    loop {
        let page = format!("{CONFIG_MAPS}?limit=1&continue={token}");
        let page = admin.get(&page).await.expect(200);
        listed.extend(names(&page));
        match page["metadata"]["continue"].as_str() {
            Some(more) if !more.is_empty() => token = more.to_owned(),
            _ => break,
        }
    }
    assert_eq!(listed, ["a", "c", "kube-root-ca.crt"]);
    // Requests for the object itself get its key and nothing more.
    let path = format!("{CONFIG_MAPS}/b");
    admin.get(&path).await.refused(500, "InternalError");
    let message = admin.delete(&path).await.refused(500, "InternalError");
    assert!(
        message.contains("/registry/configmaps/default/b"),
        "{message}"
    );
    assert!(message.contains(UNSEEN), "{message}");
    admin
        .put(&path, &config_map("b"))
        .await
        .refused(500, "InternalError");
    for sort in ["merge", "strategic-merge", "json"] {
        let patch = if sort == "json" {
            json!([])
        } else {
            json!({"data": {"a": "b"}})
        };
        admin
            .patch(&path, sort, &patch)
            .await
            .refused(500, "InternalError");
    }
    let apply = format!("{path}?fieldManager=m");
    admin
        .patch(&apply, "apply", &config_map("b"))
        .await
        .refused(500, "InternalError");
    admin
        .post(CONFIG_MAPS, &config_map("b"))
        .await
        .refused(409, "AlreadyExists");
    let metrics = String::from_utf8(admin.get("/metrics").await.body.to_vec()).unwrap();
    let counted = metrics.lines().find(|line| {
        line.starts_with("apiserver_storage_decode_errors_total{")
            && line.contains("resource=\"configmaps\"")
            && !line.ends_with(" 0")
    });
    assert!(counted.is_some(), "{metrics}");
    // Removing it needs a separate permission, and the option.
    let unseen = json!({"kind": "DeleteOptions", "apiVersion": "v1", UNSEEN: true});
    let message = editor
        .delete_with(&path, &unseen)
        .await
        .refused(403, "Forbidden");
    assert!(
        message.contains("unsafe-delete-ignore-read-errors"),
        "{message}"
    );
    let with_grace = json!({UNSEEN: true, "gracePeriodSeconds": 0});
    admin
        .delete_with(&path, &with_grace)
        .await
        .refused(422, "Invalid");
    admin
        .delete_with(&format!("{CONFIG_MAPS}/a"), &unseen)
        .await
        .refused(422, "Invalid");
    admin
        .delete_with(CONFIG_MAPS, &unseen)
        .await
        .refused(422, "Invalid");
    let by_query = format!("{path}?{UNSEEN}=true");
    admin.delete(&by_query).await.expect(200);
    admin.delete(&by_query).await.refused(404, "NotFound");
    admin.post(CONFIG_MAPS, &config_map("b")).await.expect(201);
    assert_eq!(admin.get(&path).await.expect(200)["metadata"]["name"], "b");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unreadable_role_does_not_hide_other_roles_or_revocations() {
    let (cluster, store, folder) = cluster_and_store().await;
    let admin = cluster.admin();
    for user in ["alice", "bob"] {
        grant(&admin, user, "configmaps", &["list"]).await;
    }
    let (alice, bob) = (cluster.user("alice", &[]), cluster.user("bob", &[]));
    eventually("bob may list", async || {
        (bob.get(CONFIG_MAPS).await.code == 200).then_some(())
    })
    .await;
    // Both in one batch of changes, the unreadable one first.
    let txn = Txn::new()
        .put("/registry/roles/default/aaa", deep("aaa"))
        .put("/registry/rolebindings/default/aaa", "{")
        .put("/registry/clusterroles/aaa", deep("aaa"))
        .delete("/registry/rolebindings/default/bob");
    commit(&cluster, txn).await;
    bob.get(CONFIG_MAPS).await.refused(403, "Forbidden");
    alice.get(CONFIG_MAPS).await.expect(200);
    // A binding that becomes unreadable grants nothing any more.
    put(
        &cluster,
        "/registry/rolebindings/default/alice",
        deep("alice"),
    )
    .await;
    alice.get(CONFIG_MAPS).await.refused(403, "Forbidden");
    admin
        .delete(&format!("{BINDINGS}/alice?{UNSEEN}=true"))
        .await
        .expect(200);
    admin.delete(&format!("{ROLES}/alice")).await.expect(200);
    grant(&admin, "alice", "configmaps", &["list"]).await;
    // A default role that cannot be decoded is restored by the next server, like a missing one.
    put(&cluster, "/registry/clusterroles/view", "[]").await;
    let next = Cluster::open(store.clone(), folder, |_| {}).await;
    let (alice, bob) = (next.user("alice", &[]), next.user("bob", &[]));
    alice.get(CONFIG_MAPS).await.expect(200);
    bob.get(CONFIG_MAPS).await.refused(403, "Forbidden");
    let view = "/apis/rbac.authorization.k8s.io/v1/clusterroles/view";
    next.admin().get(view).await.expect(200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unreadable_quotas_and_limits_reject_writes() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let odd = |kind: &str, part: &str, value: Value| {
        let object = json!({"kind": kind, "apiVersion": "v1",
            "metadata": {"name": "odd", "namespace": "default"}, part: value});
        Bytes::from(object.to_string())
    };
    let quotas = [
        deep("odd"),
        odd("ResourceQuota", "status", json!({"hard": {"pods": "many"}})),
    ];
    for quota in quotas {
        put(&cluster, "/registry/resourcequotas/default/odd", quota).await;
        let refused = admin.post(PODS, &pod("p")).await.refused(403, "Forbidden");
        assert!(
            refused.contains("status unknown for quota: odd"),
            "{refused}"
        );
        let elsewhere = "/api/v1/namespaces/kube-public/configmaps";
        admin.post(elsewhere, &config_map("c")).await.expect(201);
        admin.delete(&format!("{elsewhere}/c")).await.expect(200);
        let path = "/api/v1/namespaces/default/resourcequotas/odd";
        if admin.delete(path).await.code != 200 {
            admin
                .delete(&format!("{path}?{UNSEEN}=true"))
                .await
                .expect(200);
        }
    }
    let ranges = [
        deep("odd"),
        odd("LimitRange", "spec", json!({"limits": "none"})),
    ];
    for range in ranges {
        put(&cluster, "/registry/limitranges/default/odd", range).await;
        let refused = admin.post(PODS, &pod("p")).await.refused(403, "Forbidden");
        assert!(
            refused.contains("limit range default/odd cannot be read"),
            "{refused}"
        );
        let path = "/api/v1/namespaces/default/limitranges/odd";
        if admin.delete(path).await.code != 200 {
            admin
                .delete(&format!("{path}?{UNSEEN}=true"))
                .await
                .expect(200);
        }
    }
    admin.post(PODS, &pod("p")).await.expect(201);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unreadable_budget_blocks_evictions() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let mut running = pod("p");
    admin.post(PODS, &running).await.expect(201);
    running["status"] = json!({"phase": "Running"});
    admin
        .put(&format!("{PODS}/p/status"), &running)
        .await
        .expect(200);
    let key = "/registry/poddisruptionbudgets/default/odd";
    put(&cluster, key, deep("odd")).await;
    let eviction =
        json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}});
    let path = format!("{PODS}/p/eviction");
    admin
        .post(&path, &eviction)
        .await
        .refused(500, "InternalError");
    admin.get(&format!("{PODS}/p")).await.expect(200);
    put(
        &cluster,
        key,
        r#"{"metadata":{"name":"odd"},"spec":{"selector":7}}"#,
    )
    .await;
    admin
        .post(&path, &eviction)
        .await
        .refused(500, "InternalError");
    let budget = "/apis/policy/v1/namespaces/default/poddisruptionbudgets/odd";
    admin.delete(budget).await.expect(200);
    admin.post(&path, &eviction).await.expect(201);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unreadable_csr_does_not_block_signing_others() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    for (name, bytes) in [
        ("a", deep("a")),
        ("b", "{".into()),
        (
            "c",
            r#"{"metadata":{"name":"c"},"spec":"x","status":"y"}"#.into(),
        ),
        (
            "d",
            r#"{"metadata":{"name":"d"},"spec":{"groups":5},"status":{"conditions":7}}"#.into(),
        ),
    ] {
        let key = format!("/registry/certificatesigningrequests/{name}");
        put(&cluster, &key, bytes).await;
    }
    let (_, request) = signing_request("system:node:n1");
    let made = admin.post(REQUESTS, &request).await.expect(201);
    let path = format!("{REQUESTS}/{}", made["metadata"]["name"].as_str().unwrap());
    eventually("the request is signed", async || {
        let found = admin.get(&path).await.expect(200);
        found["status"]["certificate"].as_str().map(|_| ())
    })
    .await;
    let list = admin.get(REQUESTS).await.expect(200);
    assert_eq!(names(&list).len(), 3);
    let answer = admin.send(Method::GET, REQUESTS, "", "").await;
    assert_eq!(answer.code, 200);
}

/// JSON with a name that is not an object of its kind otherwise.
fn odd_shapes(name: &str, is_namespaced: bool) -> Vec<Value> {
    let meta = |mut more: Value| {
        more["name"] = json!(name);
        if is_namespaced {
            more["namespace"] = json!("default");
        }
        more
    };
    let lists = json!({"labels": [1], "annotations": 5, "finalizers": "x", "ownerReferences": {},
        "managedFields": "x", "generation": "x", "deletionTimestamp": 7});
    let texts = json!({"labels": "x", "annotations": "x", "uid": {}, "creationTimestamp": "now",
        "managedFields": [5, {"fieldsV1": 5}], "finalizers": [5], "ownerReferences": [5]});
    vec![
        json!({"metadata": meta(json!({})), "spec": "x", "status": "y"}),
        json!({"metadata": meta(lists), "spec": [1], "status": [{}], "data": 5, "rules": "x"}),
        json!({"metadata": meta(texts), "spec": {"containers": "x", "template": 5, "selector": "x"},
            "status": {"conditions": "x", "phase": 5, "disruptedPods": "x", "used": "x"}}),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn malformed_objects_do_not_crash_handlers() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let kubelet = cluster.kubelet("odd");
    for (group, plural, is_namespaced) in [
        ("", "pods", true),
        ("", "nodes", false),
        ("", "namespaces", false),
        ("", "services", true),
        ("", "persistentvolumeclaims", true),
        ("", "resourcequotas", true),
        ("", "limitranges", true),
        ("", "serviceaccounts", true),
        ("", "events", true),
        ("events.k8s.io", "events", true),
        ("apps", "deployments", true),
        ("batch", "jobs", true),
        ("policy", "poddisruptionbudgets", true),
        ("rbac.authorization.k8s.io", "rolebindings", true),
        ("certificates.k8s.io", "certificatesigningrequests", false),
        ("scheduling.k8s.io", "priorityclasses", false),
    ] {
        let storage = match plural {
            "services" => "services/specs",
            "nodes" => "minions",
            other => other,
        };
        let api = match group {
            "" => "/api/v1".to_owned(),
            group => format!("/apis/{group}/v1"),
        };
        let (scope, place) = match is_namespaced {
            true => ("/namespaces/default", "default/"),
            false => ("", ""),
        };
        let all = format!("{api}{scope}/{plural}");
        for shape in odd_shapes("odd", is_namespaced) {
            let key = format!("/registry/{storage}/{place}odd");
            put(&cluster, &key, shape.to_string()).await;
            let path = format!("{all}/odd");
            let seen = admin.get(&path).await;
            assert_eq!(seen.code, 200, "{path}: {}", seen.json());
            admin.get(&all).await.expect(200);
            for caller in [&admin, &kubelet] {
                for media_type in ["", ";as=Table", ";as=PartialObjectMetadataList"] {
                    let media_type = format!("application/json{media_type};g=meta.k8s.io;v=v1");
                    caller.with("accept", &media_type).get(&all).await;
                }
                for part in ["", "/status", "/scale", "/approval", "/resize", "/finalize"] {
                    let path = format!("{path}{part}");
                    caller.get(&path).await;
                    caller.put(&path, &seen.json()).await;
                    let patch = json!({"metadata": {"labels": {"a": "b"}}});
                    caller.patch(&path, "merge", &patch).await;
                    caller.patch(&path, "strategic-merge", &patch).await;
                    let patch = json!([{"op": "add", "path": "/metadata/x", "value": 1}]);
                    caller.patch(&path, "json", &patch).await;
                    let kind = seen.json()["kind"].clone();
                    let applied =
                        json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "odd"}});
                    let path = format!("{path}?fieldManager=m&force=true");
                    caller.patch(&path, "apply", &applied).await;
                }
                let meta = json!({"name": "odd", "annotations": {"a": "b"}});
                let target = json!({"kind": "Node", "name": "odd"});
                let bound = json!({"apiVersion": "v1", "kind": "Binding", "metadata": meta,
                    "target": target});
                caller.post(&format!("{path}/binding"), &bound).await;
                let evicted = json!({"apiVersion": "policy/v1", "kind": "Eviction",
                    "metadata": {"name": "odd"}});
                caller.post(&format!("{path}/eviction"), &evicted).await;
                caller.get(&format!("{path}/log")).await;
            }
            // Others are created beside it, whether or not they are checked against it.
            admin.post(PODS, &pod("beside")).await;
            admin.delete(&format!("{PODS}/beside")).await;
            for _ in 0..2 {
                let gone = admin.delete(&path).await;
                assert!(gone.code < 500 || gone.json()["kind"] == "Status", "{path}");
            }
            let txn = Txn::new().delete(key.clone());
            commit(&cluster, txn).await;
        }
    }
    admin.get(CONFIG_MAPS).await.expect(200);
}

/// The events of unreadable objects in a namespace: `Kind/name` and the message.
async fn failures(admin: &Caller, namespace: &str) -> Vec<(String, String)> {
    let path = format!("/api/v1/namespaces/{namespace}/events");
    let events = admin.get(&path).await.expect(200);
    let events = events["items"].as_array().unwrap().iter();
    let failures = events.filter(|event| event["reason"] == "FailedDecode");
    let mut failures: Vec<(String, String)> = failures
        .map(|event| {
            assert_eq!(event["type"], "Warning");
            let object = &event["involvedObject"];
            let (kind, name) = (object["kind"].as_str(), object["name"].as_str());
            let regarding = format!("{}/{}", kind.unwrap(), name.unwrap());
            (regarding, event["message"].as_str().unwrap().to_owned())
        })
        .collect();
    failures.sort();
    failures
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_names_each_unreadable_object_once() {
    let (cluster, store, folder) = cluster_and_store().await;
    let admin = cluster.admin();
    // As often as it is written and read.
    for bytes in ["{", "[]", "null"] {
        put(&cluster, "/registry/configmaps/default/odd", bytes).await;
        let answer = admin.get(&format!("{CONFIG_MAPS}/odd")).await;
        assert_eq!(answer.code, 500);
    }
    put(
        &cluster,
        "/registry/deployments/kube-public/web",
        deep("web"),
    )
    .await;
    put(&cluster, "/registry/minions/n1", r#""hunter2""#).await;
    put(
        &cluster,
        "/registry/secrets/default/token",
        r#"{"metadata":"hunter2"}"#,
    )
    .await;
    let left_out = |resource: &str, key: &str, why: &str| {
        format!(
            "The stored object {resource} {key} cannot be read and is left out of lists and watches: {why}"
        )
    };
    let no_object = "not an object with metadata";
    let in_default = |seen: &[(String, String)]| {
        let expected = [
            (
                "ConfigMap/odd",
                left_out("configmaps", "default/odd", "not JSON"),
            ),
            ("Node/n1", left_out("nodes", "n1", no_object)),
            // Nothing of the object is shown.
            (
                "Secret/token",
                left_out("secrets", "default/token", no_object),
            ),
        ];
        let expected = expected.map(|(regarding, message)| (regarding.to_owned(), message));
        seen == expected
    };
    eventually("the events", async || {
        let seen = failures(&admin, "default").await;
        (seen.len() == 3).then_some(())
    })
    .await;
    let seen = failures(&admin, "default").await;
    assert!(in_default(&seen), "{seen:#?}");
    let elsewhere = failures(&admin, "kube-public").await;
    assert_eq!(elsewhere.len(), 1, "{elsewhere:#?}");
    assert_eq!(elsewhere[0].0, "Deployment/web");
    let expected = left_out("deployments.apps", "kube-public/web", "");
    assert!(elsewhere[0].1.starts_with(&expected), "{elsewhere:#?}");
    // Another server says it again, of what is still there.
    admin
        .delete(&format!("{CONFIG_MAPS}/odd?{UNSEEN}=true"))
        .await
        .expect(200);
    let next = Cluster::open(store.clone(), folder, |_| {}).await;
    eventually("the events of the next server", async || {
        let seen = failures(&next.admin(), "default").await;
        (seen.len() == 5).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "tier: tools"]
async fn kubectl_shows_the_event_of_an_unreadable_object() {
    let cluster = Cluster::start().await;
    put(&cluster, "/registry/pods/default/web", "{").await;
    let kubeconfig = cluster.folder.path().join("kubeconfig");
    std::fs::write(
        &kubeconfig,
        cluster.kubeconfig("admin", &["system:masters"]),
    )
    .unwrap();
    let shown = tokio::task::spawn_blocking(move || {
        let kubectl = plimsoll_testkit::kubectl::Kubectl::new(&kubeconfig, "default");
        plimsoll_testkit::waiting::until("kubectl shows the event", || {
            let shown = kubectl.kubectl("get events");
            match shown.contains("FailedDecode") {
                true => Ok(shown),
                false => Err(shown),
            }
        })
    });
    let shown = shown.await.unwrap();
    assert!(shown.contains("pod/web"), "{shown}");
    assert!(
        shown.contains("The stored object pods default/web cannot be read"),
        "{shown}"
    );
}
