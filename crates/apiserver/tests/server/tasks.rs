//! Failed tasks of a server and of its store are restarted.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use plimsoll_apiserver::store::{RedbOptions, RedbStore, Store};

use super::caller::Caller;
use super::cluster::{Cluster, eventually, soon};
use super::objects::{CONFIG_MAPS, config_map, names, namespace};

const NAMESPACES: &str = "/api/v1/namespaces";

const TASKS: [&str; 7] = [
    "certificatesigningrequest-signing-controller",
    "namespace-defaults-controller",
    "node-client-certificate",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
    "storage-alarms",
    "storage-decode-errors",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failed_task_is_restarted_and_named_by_health() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let supervisor = cluster.server.supervisor();
    eventually("all tasks run", async || {
        (supervisor.names() == TASKS).then_some(())
    })
    .await;
    admin.post(NAMESPACES, &namespace("n")).await.expect(201);
    for task in TASKS {
        let page = format!("/livez/{task}");
        assert_eq!(admin.get(&page).await.code, 200, "{task}");
        assert!(supervisor.end(task), "{task} does not run");
        eventually(task, async || {
            (supervisor.restarts(task) == 1).then_some(())
        })
        .await;
        assert_eq!(admin.get(&page).await.code, 500, "{task}");
        let all = admin.get("/readyz?verbose").await;
        let text = String::from_utf8(all.body.to_vec()).unwrap();
        let line = format!("[-]{task} failed: reason withheld\n");
        assert!(all.code == 500 && text.contains(&line), "{text}");
    }
    // They work: the default objects of every namespace are recreated.
    for path in [
        format!("{NAMESPACES}/n/serviceaccounts/default"),
        format!("{NAMESPACES}/n/configmaps/kube-root-ca.crt"),
    ] {
        let first = admin.get(&path).await.expect(200);
        admin.delete(&path).await.expect(200);
        eventually(&path, async || {
            let answer = admin.get(&path).await;
            let is_back =
                answer.code == 200 && answer.json()["metadata"]["uid"] != first["metadata"]["uid"];
            is_back.then_some(())
        })
        .await;
    }
    eventually("the server is well again", async || {
        (admin.get("/livez").await.code == 200).then_some(())
    })
    .await;
}

const WRITERS: usize = 6;
/// How often the store's writer is ended.
const ENDS: usize = 3;

/// Creates one object after the other until stopped; returns the names of those that the server
/// has acknowledged. None may wait for ever.
async fn write(
    admin: Caller,
    writer: usize,
    stop: Arc<AtomicBool>,
    count: Arc<AtomicUsize>,
) -> Vec<String> {
    let mut acknowledged = Vec::new();
    for number in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let name = format!("w{writer}-{number}");
        let answer = soon("an answer", admin.post(CONFIG_MAPS, &config_map(&name))).await;
        match answer.code {
            201 => {
                count.fetch_add(1, Ordering::Relaxed);
                acknowledged.push(name);
            }
            // The writer has failed: clients may try again.
            503 => tokio::time::sleep(Duration::from_millis(20)).await,
            _ => panic!("{answer:?}"),
        }
    }
    acknowledged
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn panicked_store_writer_is_restarted_without_losses() {
    let folder = Arc::new(tempfile::tempdir().unwrap());
    let file = folder.path().join("store.redb");
    let store = Arc::new(RedbStore::open(&file, &RedbOptions::default()).unwrap());
    let cluster = Cluster::open(store.clone(), folder, |_| {}).await;
    let admin = cluster.admin();
    let health = "/livez/store-writer";
    assert_eq!(admin.get(health).await.code, 200);
    let (stop, count) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
    let writers = (0..WRITERS).map(|writer| {
        let (stop, count) = (Arc::clone(&stop), Arc::clone(&count));
        tokio::spawn(write(cluster.admin(), writer, stop, count))
    });
    let writers: Vec<_> = writers.collect();
    for _ in 0..ENDS {
        let before = count.load(Ordering::Relaxed);
        eventually("more is written", async || {
            (count.load(Ordering::Relaxed) > before + 20).then_some(())
        })
        .await;
        store.end_writer();
        eventually("health says that the writer has failed", async || {
            (admin.get(health).await.code == 500).then_some(())
        })
        .await;
        let text = admin.get("/readyz?verbose").await;
        let shown = String::from_utf8(text.body.to_vec()).unwrap();
        assert_eq!(text.code, 500, "{shown}");
        assert!(shown.contains("[-]store-writer failed"), "{shown}");
    }
    let before = count.load(Ordering::Relaxed);
    eventually("writes continue", async || {
        (count.load(Ordering::Relaxed) > before + 20).then_some(())
    })
    .await;
    stop.store(true, Ordering::Relaxed);
    let mut acknowledged = BTreeSet::new();
    for writer in writers {
        acknowledged.extend(writer.await.unwrap());
    }
    let list = admin.get(CONFIG_MAPS).await.expect(200);
    let there: BTreeSet<String> = names(&list).into_iter().collect();
    let lost: Vec<&String> = acknowledged.difference(&there).collect();
    assert!(lost.is_empty(), "{lost:?}");
    let mut watch = admin
        .watch(&format!("{CONFIG_MAPS}?watch=true&resourceVersion=0"))
        .await;
    for _ in 0..there.len() {
        watch.next().await.unwrap();
    }
    admin
        .post(CONFIG_MAPS, &config_map("later"))
        .await
        .expect(201);
    watch.expect(&[("ADDED", "later")]).await;
    eventually("the server is well again", async || {
        (admin.get("/livez").await.code == 200).then_some(())
    })
    .await;
    // What is in the file is what was seen.
    cluster.server.stop();
    let path = cluster.folder.path().join("store.redb");
    store.close().await.unwrap();
    let reopened = RedbStore::open(&path, &RedbOptions::default()).unwrap();
    for name in &acknowledged {
        let key = format!("/registry/configmaps/default/{name}");
        let found = reopened.get(key.as_bytes(), None).await;
        assert!(found.unwrap().entry.is_some(), "{name}");
    }
}
