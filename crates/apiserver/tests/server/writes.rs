//! Creating and updating objects, alone and concurrently.

use serde_json::{Value, json};

use super::caller::Caller;
use super::cluster::Cluster;
use super::objects::{CONFIG_MAPS, PODS, config_map, names, pod, version};

/// Increments a counter by reading and writing it, with retries.
async fn increment(caller: Caller, path: String) {
    loop {
        let mut object = caller.get(&path).await.expect(200);
        let count: u32 = object["data"]["n"].as_str().unwrap().parse().unwrap();
        object["data"]["n"] = json!((count + 1).to_string());
        let answer = caller.put(&path, &object).await;
        match answer.code {
            200 => return,
            _ => {
                let message = answer.refused(409, "Conflict");
                assert!(
                    message
                        .ends_with("please apply your changes to the latest version and try again")
                );
            }
        }
    }
}

/// This many concurrent increments, by all callers in turn.
pub(crate) async fn check_counting(callers: &[Caller], increments: usize) {
    let mut counter = config_map("counter");
    counter["data"] = json!({"n": "0"});
    callers[0].post(CONFIG_MAPS, &counter).await.expect(201);
    let path = format!("{CONFIG_MAPS}/counter");
    let tasks = (0..increments).map(|n| {
        let caller = callers[n % callers.len()].clone();
        tokio::spawn(increment(caller, path.clone()))
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    let counted = callers[0].get(&path).await.expect(200);
    assert_eq!(counted["data"]["n"], increments.to_string());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_increments_lose_no_update() {
    let cluster = Cluster::start().await;
    check_counting(&[cluster.admin(), cluster.local_admin()], 100).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_patches_of_different_fields_all_apply() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    admin.post(CONFIG_MAPS, &config_map("c")).await.expect(201);
    let path = format!("{CONFIG_MAPS}/c");
    let patches = (0..15).map(|n| {
        let (admin, path) = (admin.clone(), path.clone());
        tokio::spawn(async move {
            let key = format!("k{n}");
            let value = json!({"data": {&key: "v"}});
            let answer = match n % 3 {
                0 => admin.patch(&path, "merge", &value).await,
                1 => admin.patch(&path, "strategic-merge", &value).await,
                _ => {
                    let mut object = config_map("c");
                    object["data"] = json!({&key: "v"});
                    let path = format!("{path}?fieldManager=m{n}");
                    admin.patch(&path, "apply", &object).await
                }
            };
            answer.expect(200);
        })
    });
    for patch in patches.collect::<Vec<_>>() {
        patch.await.unwrap();
    }
    let object = admin.get(&path).await.expect(200);
    assert_eq!(object["data"].as_object().unwrap().len(), 15);
    // A patch with a version conflicts with another one.
    let old = json!({"metadata": {"resourceVersion": "1"}, "data": {"x": "y"}});
    admin
        .patch(&path, "merge", &old)
        .await
        .refused(409, "Conflict");
    let test = json!([{"op": "test", "path": "/data/k0", "value": "other"}]);
    admin
        .patch(&path, "json", &test)
        .await
        .refused(422, "Invalid");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_applies_create_once() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let path = format!("{CONFIG_MAPS}/applied?fieldManager=");
    let applies = (0..20).map(|n| {
        let (admin, path) = (admin.clone(), format!("{path}m{n}"));
        tokio::spawn(async move {
            let mut object = config_map("applied");
            object["data"] = json!({format!("k{n}"): "v"});
            admin.patch(&path, "apply", &object).await.code
        })
    });
    let mut created = 0;
    for apply in applies.collect::<Vec<_>>() {
        match apply.await.unwrap() {
            201 => created += 1,
            code => assert_eq!(code, 200),
        }
    }
    assert_eq!(created, 1);
    let object = admin
        .get(&format!("{CONFIG_MAPS}/applied"))
        .await
        .expect(200);
    assert_eq!(object["data"].as_object().unwrap().len(), 20);
    assert_eq!(
        object["metadata"]["managedFields"]
            .as_array()
            .unwrap()
            .len(),
        20
    );
    let mut other = config_map("applied");
    other["data"] = json!({"k0": "mine"});
    let conflict = admin.patch(&format!("{path}x"), "apply", &other).await;
    conflict.refused(409, "Conflict");
    let forced = admin
        .patch(&format!("{path}x&force=true"), "apply", &other)
        .await;
    assert_eq!(forced.expect(200)["data"]["k0"], "mine");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_creates_of_a_name_succeed_once() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let creates = (0..20).map(|_| {
        let admin = admin.clone();
        tokio::spawn(async move { admin.post(CONFIG_MAPS, &config_map("only")).await })
    });
    let mut created = 0;
    for create in creates.collect::<Vec<_>>() {
        let answer = create.await.unwrap();
        if answer.code == 201 {
            created += 1;
        } else {
            answer.refused(409, "AlreadyExists");
        }
    }
    assert_eq!(created, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn generated_names_differ() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let mut template = config_map("");
    template["metadata"] = json!({"generateName": "made-", "labels": {"made": "yes"}});
    for _ in 0..30 {
        let made = admin.post(CONFIG_MAPS, &template).await.expect(201);
        let name = made["metadata"]["name"].as_str().unwrap();
        assert_eq!(name.len(), "made-".len() + 5);
    }
    let list = admin
        .get(&format!("{CONFIG_MAPS}?labelSelector=made"))
        .await;
    assert_eq!(names(&list.expect(200)).len(), 30);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dry_run_stores_nothing() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    admin
        .post(CONFIG_MAPS, &config_map("there"))
        .await
        .expect(201);
    let path = format!("{CONFIG_MAPS}/there");
    let before = cluster.store.current_revision().await.unwrap();
    let dry = "dryRun=All";
    let collection = format!("{CONFIG_MAPS}?{dry}");
    let made = admin
        .post(&collection, &config_map("new"))
        .await
        .expect(201);
    assert!(made["metadata"]["uid"].is_string());
    let taken = admin.post(&collection, &config_map("there")).await;
    taken.refused(409, "AlreadyExists");
    let mut object = admin.get(&path).await.expect(200);
    object["data"] = json!({"a": "b"});
    let put = admin
        .put(&format!("{path}?{dry}"), &object)
        .await
        .expect(200);
    assert_eq!(put["data"]["a"], "b");
    let patch = json!({"data": {"c": "d"}});
    let patched = admin.patch(&format!("{path}?{dry}"), "merge", &patch).await;
    assert_eq!(patched.expect(200)["data"]["c"], "d");
    let applied = format!("{CONFIG_MAPS}/applied?{dry}&fieldManager=m");
    admin
        .patch(&applied, "apply", &config_map("applied"))
        .await
        .expect(201);
    admin.delete(&format!("{path}?{dry}")).await.expect(200);
    admin.delete(&collection).await.expect(200);
    let other = format!("{CONFIG_MAPS}?dryRun=Some");
    admin
        .post(&other, &config_map("x"))
        .await
        .refused(422, "Invalid");
    assert_eq!(cluster.store.current_revision().await.unwrap(), before);
    assert!(admin.get(&path).await.expect(200)["data"].is_null());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn update_without_changes_keeps_the_version() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let made = admin.post(CONFIG_MAPS, &config_map("c")).await.expect(201);
    let path = format!("{CONFIG_MAPS}/c");
    let patch = json!({"metadata": {"labels": {"a": "b"}}});
    let first = admin.patch(&path, "merge", &patch).await.expect(200);
    assert!(version(&first) > version(&made));
    let again = admin.patch(&path, "merge", &patch).await.expect(200);
    assert_eq!(version(&again), version(&first));
    let put = admin.put(&path, &again).await.expect(200);
    assert_eq!(version(&put), version(&first));
}

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

fn deployment() -> Value {
    let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": pod("x")["spec"]});
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template},
        "status": {"replicas": 7},
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spec_and_status_are_written_separately() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let made = admin.post(DEPLOYMENTS, &deployment()).await.expect(201);
    assert_eq!(made["metadata"]["generation"], 1);
    assert!(made["status"]["replicas"].is_null());
    let path = format!("{DEPLOYMENTS}/web");
    let mut object = made;
    object["spec"]["replicas"] = json!(3);
    object["status"] = json!({"replicas": 9});
    let put = admin.put(&path, &object).await.expect(200);
    assert_eq!(put["metadata"]["generation"], 2);
    assert_eq!(put["spec"]["replicas"], 3);
    assert!(put["status"]["replicas"].is_null());
    let mut status = put;
    status["spec"]["replicas"] = json!(5);
    status["status"] = json!({"replicas": 3, "observedGeneration": 2});
    let put = admin
        .put(&format!("{path}/status"), &status)
        .await
        .expect(200);
    assert_eq!(put["metadata"]["generation"], 2);
    assert_eq!(put["spec"]["replicas"], 3);
    assert_eq!(put["status"]["replicas"], 3);
    let scale = admin.get(&format!("{path}/scale")).await.expect(200);
    assert_eq!(scale["spec"]["replicas"], 3);
    let scaled = json!({"spec": {"replicas": 4}});
    let scaled = admin
        .patch(&format!("{path}/scale"), "merge", &scaled)
        .await;
    assert_eq!(scaled.expect(200)["spec"]["replicas"], 4);
    let object = admin.get(&path).await.expect(200);
    assert_eq!(object["metadata"]["generation"], 3);
    // Labels do not matter here.
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    let labelled = admin.patch(&path, "merge", &label).await.expect(200);
    assert_eq!(labelled["metadata"]["generation"], 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_is_bound_exactly_once() {
    let cluster = Cluster::start().await;
    check_binding(&cluster.admin(), &cluster.local_admin()).await;
}

pub(crate) async fn check_binding(one: &Caller, other: &Caller) {
    one.post(PODS, &pod("p")).await.expect(201);
    let path = format!("{PODS}/p/binding");
    let binders = (0..50).map(|n| {
        let caller = if n % 2 == 0 { one } else { other };
        let (caller, path) = (caller.clone(), path.clone());
        tokio::spawn(async move {
            let binding = super::objects::binding("p", &format!("n{n}"));
            (n, caller.post(&path, &binding).await)
        })
    });
    let mut bound = Vec::new();
    for binder in binders.collect::<Vec<_>>() {
        let (n, answer) = binder.await.unwrap();
        if answer.code == 201 {
            bound.push(format!("n{n}"));
        } else {
            answer.refused(409, "Conflict");
        }
    }
    let found = one.get(&format!("{PODS}/p")).await.expect(200);
    assert_eq!(bound, [found["spec"]["nodeName"].as_str().unwrap()]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_that_nothing_acts_on_come_with_a_warning_and_an_event() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let claim = json!({
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    });
    let claims = "/api/v1/namespaces/default/persistentvolumeclaims";
    let text = "PersistentVolumeClaim is stored, but nothing acts on it: no controller binds claims or \
                provisions volumes";
    let dry_run = admin.post(&format!("{claims}?dryRun=All"), &claim).await;
    dry_run.expect(201);
    assert_eq!(dry_run.header("warning"), format!("299 - \"{text}\""));
    let events = "/api/v1/namespaces/default/events";
    let unsupported = async || {
        let events = admin.get(events).await.expect(200);
        let events = events["items"].as_array().unwrap().clone();
        let unsupported = events.into_iter();
        let unsupported = unsupported.filter(|event| event["reason"] == "Unsupported");
        unsupported.collect::<Vec<_>>()
    };
    assert!(unsupported().await.is_empty(), "a dry run stores nothing");

    let created = admin.post(claims, &claim).await;
    created.expect(201);
    assert_eq!(created.header("warning"), format!("299 - \"{text}\""));
    let events = unsupported().await;
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!(events[0]["message"], text);
    assert_eq!(events[0]["involvedObject"]["name"], "data");

    // Changes of the object, and objects that something acts on, come without.
    let path = format!("{claims}/data");
    let labelled = json!({"metadata": {"labels": {"a": "b"}}});
    let patched = admin.patch(&path, "merge", &labelled).await;
    patched.expect(200);
    assert_eq!(patched.header("warning"), "");
    let map = admin.post(CONFIG_MAPS, &config_map("c")).await;
    assert_eq!(map.header("warning"), "");
    assert_eq!(unsupported().await.len(), 1);
}
