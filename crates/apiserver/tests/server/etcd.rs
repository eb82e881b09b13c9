//! The same tests on a real etcd, and with two servers on one etcd.

use std::sync::Arc;

use plimsoll_apiserver::store::{EtcdOptions, EtcdStore, Store};
use plimsoll_testkit::etcd::Etcd;
use serde_json::json;

use super::cluster::{Cluster, eventually};
use super::objects::{SECRETS, names, namespace, pod, secret, version};
use super::{disruption, model, quotas, watchers, writes};

async fn etcd() -> Etcd {
    tokio::task::spawn_blocking(Etcd::start).await.unwrap()
}

async fn store(etcd: &Etcd) -> Arc<dyn Store> {
    let options = EtcdOptions {
        endpoints: vec![etcd.endpoint()],
        ..EtcdOptions::default()
    };
    Arc::new(EtcdStore::connect(&options).await.unwrap())
}

/// Two servers of one cluster: the same etcd, the same keys.
async fn two(etcd: &Etcd) -> (Cluster, Cluster) {
    let folder = Arc::new(tempfile::tempdir().unwrap());
    let one = Cluster::open(store(etcd).await, Arc::clone(&folder), |_| {}).await;
    let other = Cluster::open(store(etcd).await, folder, |_| {}).await;
    (one, other)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "tier: tools"]
async fn watchers_reach_the_state() {
    let etcd = etcd().await;
    let (one, _) = two(&etcd).await;
    watchers::check(&one.admin()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "tier: tools"]
async fn watch_sees_writes_of_another_server() {
    let etcd = etcd().await;
    let (one, other) = two(&etcd).await;
    let start = version(&other.admin().get(SECRETS).await.expect(200));
    let path = format!("{SECRETS}?watch=true&resourceVersion={start}");
    let mut watch = other.admin().watch(&path).await;
    let made = one.admin().post(SECRETS, &secret("a")).await.expect(201);
    let path = format!("{SECRETS}/a");
    // A read without a version sees writes acknowledged by any server.
    assert_eq!(other.admin().get(&path).await.expect(200), made);
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    other
        .admin()
        .patch(&path, "merge", &label)
        .await
        .expect(200);
    one.admin().delete(&path).await.expect(200);
    other.admin().get(&path).await.refused(404, "NotFound");
    let events = [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")];
    let objects = watch.expect(&events).await;
    assert_eq!(objects[0], made);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "tier: tools"]
async fn watchers_converge_to_the_listed_state() {
    let etcd = etcd().await;
    let (one, other) = two(&etcd).await;
    model::check(&one.admin(), &other.admin(), fastrand::u64(0..1_000_000)).await;
    model::check(&other.admin(), &one.admin(), fastrand::u64(0..1_000_000)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "tier: tools"]
async fn two_servers_increment_without_lost_updates() {
    let etcd = etcd().await;
    let (one, other) = two(&etcd).await;
    writes::check_counting(&[one.admin(), other.admin()], 30).await;
    writes::check_binding(&one.admin(), &other.admin()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "tier: tools"]
async fn two_servers_never_exceed_a_quota() {
    let etcd = etcd().await;
    let (one, other) = two(&etcd).await;
    quotas::check_concurrent(&one.admin(), &other.admin()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "tier: tools"]
async fn two_servers_stay_within_a_budget() {
    let etcd = etcd().await;
    let (one, other) = two(&etcd).await;
    disruption::check_concurrent(&one.admin(), &other.admin()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "tier: tools"]
async fn namespace_created_on_one_server_is_usable_on_the_other() {
    let etcd = etcd().await;
    let (one, other) = two(&etcd).await;
    for number in 0..20 {
        let name = format!("n{number}");
        let made = one
            .admin()
            .post("/api/v1/namespaces", &namespace(&name))
            .await;
        made.expect(201);
        let path = format!("/api/v1/namespaces/{name}/secrets");
        other.admin().post(&path, &secret("s")).await.expect(201);
        let path = format!("/api/v1/namespaces/{name}/pods");
        other.admin().post(&path, &pod("p")).await.expect(201);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "tier: tools"]
async fn list_continues_on_another_server() {
    let etcd = etcd().await;
    let (one, other) = two(&etcd).await;
    for name in ["a", "b", "c"] {
        one.admin().post(SECRETS, &secret(name)).await.expect(201);
    }
    let first = one
        .admin()
        .get(&format!("{SECRETS}?limit=2"))
        .await
        .expect(200);
    other
        .admin()
        .delete(&format!("{SECRETS}/c"))
        .await
        .expect(200);
    let token = first["metadata"]["continue"].as_str().unwrap();
    let rest = format!("{SECRETS}?limit=2&continue={token}");
    let rest = other.admin().get(&rest).await.expect(200);
    assert_eq!(names(&rest), ["c"]);
    assert_eq!(version(&rest), version(&first));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "tier: tools"]
async fn server_survives_a_restart_of_etcd() {
    let mut etcd = etcd().await;
    let (one, _) = two(&etcd).await;
    let admin = one.admin();
    admin.post(SECRETS, &secret("before")).await.expect(201);
    let etcd = tokio::task::spawn_blocking(move || {
        etcd.restart();
        etcd
    });
    let _etcd = etcd.await.unwrap();
    eventually("writes work again", async || {
        (admin.post(SECRETS, &secret("after")).await.code == 201).then_some(())
    })
    .await;
    assert_eq!(
        names(&admin.get(SECRETS).await.expect(200)),
        ["after", "before"]
    );
    let mut watch = admin.watch(&format!("{SECRETS}?watch=true")).await;
    watch
        .expect(&[("ADDED", "after"), ("ADDED", "before")])
        .await;
    admin.post(SECRETS, &secret("later")).await.expect(201);
    watch.expect(&[("ADDED", "later")]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "tier: tools"]
async fn the_tasks_of_the_store_are_started_again() {
    let etcd = etcd().await;
    let options = EtcdOptions {
        endpoints: vec![etcd.endpoint()],
        ..EtcdOptions::default()
    };
    let store = Arc::new(EtcdStore::connect(&options).await.unwrap());
    let folder = Arc::new(tempfile::tempdir().unwrap());
    let cluster = Cluster::open(store.clone(), folder, |_| {}).await;
    let admin = cluster.admin();
    for (number, task) in ["etcd-watch", "etcd-compaction"].into_iter().enumerate() {
        let page = format!("/livez/{task}");
        assert_eq!(admin.get(&page).await.code, 200, "{task}");
        assert!(store.supervisor().end(task), "{task} does not run");
        eventually(task, async || {
            (admin.get(&page).await.code == 500).then_some(())
        })
        .await;
        let name = format!("s{number}");
        eventually("writes and reads continue", async || {
            let made = admin.post(SECRETS, &secret(&name)).await.code;
            let there = admin.get(&format!("{SECRETS}/{name}")).await.code;
            ([201, 409].contains(&made) && there == 200).then_some(())
        })
        .await;
    }
    eventually("the server is well again", async || {
        (admin.get("/livez").await.code == 200).then_some(())
    })
    .await;
}
