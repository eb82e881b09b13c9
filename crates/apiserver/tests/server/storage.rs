//! Operating the store: snapshots over HTTP, and a full quota.

use plimsoll_apiserver::store::{RedbOptions, SnapshotReader};
use serde_json::json;

use super::caller::Caller;
use super::cluster::{Cluster, eventually};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const QUOTA: u64 = 4 * 1024 * 1024;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn snapshot_needs_an_administrator() {
    let cluster = Cluster::start().await;
    let path = "/plimsoll/store/snapshot";
    let refused = cluster.user("reader", &[]).get(path).await;
    assert_eq!(refused.code, 403, "{refused:?}");
    assert_eq!(cluster.bearer("").get(path).await.code, 403);
    let answer = cluster.admin().get(path).await;
    assert_eq!(answer.code, 200);
    let mut reader = SnapshotReader::open(&answer.body[..]).unwrap();
    let mut keys = Vec::new();
    while let Some(entry) = reader.next_entry().unwrap() {
        keys.push(String::from_utf8(entry.entry.key.to_vec()).unwrap());
    }
    assert!(keys.contains(&"/registry/namespaces/default".to_owned()));
    let summary = reader.finish().unwrap();
    assert_eq!(summary.keys, keys.len() as u64);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn full_store_rejects_creates_but_not_deletes() {
    let redb = RedbOptions {
        quota_bytes: Some(QUOTA),
        ..RedbOptions::default()
    };
    let cluster = Cluster::start_with(|_| {}, redb).await;
    let admin = cluster.admin();
    let mut made = 0;
    let refused = loop {
        let body = json!({
            "metadata": {"name": format!("m{made}")},
            "data": {"a": "x".repeat(200_000)},
        });
        let answer = admin.post(MAPS, &body).await;
        if answer.code != 201 {
            break answer;
        }
        made += 1;
    };
    assert_eq!(refused.code, 507, "{refused:?}");
    let status = refused.json();
    assert_eq!(status["reason"], "InsufficientStorage");
    let message = status["message"].as_str().unwrap();
    assert!(
        message.contains("of 4194304 bytes are in use: creates and updates"),
        "{message}"
    );
    let ready = admin.get("/readyz").await;
    let text = String::from_utf8(ready.body.to_vec()).unwrap();
    assert_eq!(ready.code, 500, "{text}");
    assert!(
        text.contains("[-]store failed: ") && text.contains("bytes are in use"),
        "{text}"
    );
    assert_eq!(admin.get("/livez").await.code, 200);
    eventually("the event of the alarm", async || {
        has_event(&admin, "StorageFull").await
    })
    .await;
    for number in 0..made {
        let answer = admin.delete(&format!("{MAPS}/m{number}")).await;
        assert_eq!(answer.code, 200, "{answer:?}");
    }
    let ready = async || (admin.get("/readyz").await.code == 200).then_some(());
    eventually("readiness", ready).await;
    let body = json!({"metadata": {"name": "again"}, "data": {"a": "x".repeat(200_000)}});
    assert_eq!(admin.post(MAPS, &body).await.code, 201);
    eventually("the end", async || {
        has_event(&admin, "StorageHasRoom").await
    })
    .await;
}

async fn has_event(admin: &Caller, reason: &str) -> Option<()> {
    let events = admin.get("/api/v1/namespaces/default/events").await.json();
    let mut events = events["items"].as_array().unwrap().iter();
    events.any(|event| event["reason"] == reason).then_some(())
}
