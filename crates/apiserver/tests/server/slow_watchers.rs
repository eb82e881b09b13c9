//! Watchers that do not read: they are disconnected, and cost little until then.

use std::fmt::Write as _;

use bytes::Bytes;
use plimsoll_apiserver::store::Txn;
use serde_json::json;

use super::cluster::{Cluster, eventually};
use super::objects::{SECRETS, secret, version};

/// Resident memory of this process.
pub(crate) fn resident_mib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib: usize = line
        .unwrap()
        .trim()
        .trim_end_matches("kB")
        .trim()
        .parse()
        .unwrap();
    kib / 1024
}

/// Changes one secret this often, directly in the store, so that it takes seconds and not minutes.
async fn change(cluster: &Cluster, times: usize, bytes: usize) {
    let key = Bytes::from_static(b"/registry/secrets/default/big");
    for number in 0..times {
        let mut data = String::with_capacity(bytes + 16);
        let _ = write!(data, "{number:08}");
        data.extend(std::iter::repeat_n('A', bytes));
        let object = json!({"uid": "u", "name": "big", "namespace": "default"});
        let value = format!(
            "{{\"kind\":\"Secret\",\"apiVersion\":\"v1\",\"metadata\":{object},\
             \"data\":{{\"d\":\"{data}\"}},\"type\":\"Opaque\"}}"
        );
        let put = Txn::new().put(key.clone(), value);
        cluster.store.txn(put).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watcher_that_does_not_read_is_disconnected() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    admin.post(SECRETS, &secret("big")).await.expect(201);
    let start = version(&admin.get(SECRETS).await.expect(200));
    let watch = format!("{SECRETS}?watch=true&resourceVersion={start}");
    let mut sleepers = Vec::new();
    for _ in 0..4 {
        sleepers.push(cluster.admin().watch(&watch).await);
    }
    let before = resident_mib();
    // 120 MB of changes: more than the cache keeps.
    change(&cluster, 240, 500_000).await;
    let settled = cluster.store.current_revision().await.unwrap();
    let fresh = format!("{SECRETS}?resourceVersion={settled}");
    admin.get(&fresh).await.expect(200);
    let grown = resident_mib().saturating_sub(before);
    assert!(grown < 350, "{grown} MiB more for unread events");
    for mut sleeper in sleepers {
        let mut last = start;
        let error = loop {
            let line = sleeper.next().await.expect("an error before the end");
            if line["type"] == "ERROR" {
                break line;
            }
            assert!(version(&line["object"]) > last);
            last = version(&line["object"]);
        };
        assert_eq!(error["object"]["code"], 410, "{error}");
        assert_eq!(error["object"]["reason"], "Expired");
        assert!(sleeper.next().await.is_none());
        // It comes back with a new list.
        assert!(last < settled);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn disconnected_watcher_is_removed() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    for _ in 0..20 {
        drop(
            cluster
                .admin()
                .watch(&format!("{SECRETS}?watch=true"))
                .await,
        );
    }
    eventually("no watches left", async || {
        let metrics = admin.get("/metrics").await;
        let text = String::from_utf8_lossy(&metrics.body).into_owned();
        let line = text.lines().find(|line| {
            line.starts_with("apiserver_longrunning_requests{") && line.contains("\"secrets\"")
        });
        line.is_some_and(|line| line.ends_with(" 0")).then_some(())
    })
    .await;
}
