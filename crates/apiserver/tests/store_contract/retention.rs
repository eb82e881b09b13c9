//! Automatic compaction of history.

use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_apiserver::store::{Error, EtcdOptions, EtcdStore, RedbOptions, Store, Txn};
use plimsoll_testkit::etcd::Etcd;

use crate::backend::{commit, redb_with};

const PATIENCE: Duration = Duration::from_secs(20);

/// Waits until a revision can no longer be read.
async fn wait_until_compacted(store: &Arc<dyn Store>, revision: u64) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match store.get(b"/a", Some(revision)).await {
            Err(Error::Compacted { .. }) => return,
            Ok(_) => assert!(Instant::now() < deadline, "revision {revision} stays"),
            Err(error) => panic!("{error:?}"),
        }
        tokio::task::yield_now().await;
    }
}

/// Old history is compacted, the newest is not.
async fn is_compacted_after_retention(store: Arc<dyn Store>) {
    let old = commit(&store, Txn::create("/a", "1")).await;
    let new = commit(&store, Txn::update("/a", old, "2")).await;
    wait_until_compacted(&store, old).await;
    let entry = store.get(b"/a", None).await.unwrap().entry.unwrap();
    assert_eq!((&entry.value[..], entry.mod_revision), (&b"2"[..], new));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn old_history_of_a_file_is_compacted() {
    let backend = redb_with(RedbOptions {
        keep_history_for: Duration::from_millis(100),
        ..RedbOptions::default()
    });
    is_compacted_after_retention(backend.store()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "tier: tools"]
async fn old_history_in_etcd_is_compacted_by_any_server() {
    let etcd = Etcd::start();
    let mut stores = Vec::new();
    for _ in 0..2 {
        let options = EtcdOptions {
            endpoints: vec![etcd.endpoint()],
            keep_history_for: Some(Duration::from_millis(200)),
            ..EtcdOptions::default()
        };
        stores.push(Arc::new(EtcdStore::connect(&options).await.unwrap()));
    }
    is_compacted_after_retention(stores[0].clone()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_does_not_grow_with_history_beyond_its_bound() {
    const VALUE: usize = 64 * 1024;
    const UPDATES: usize = 1000;
    let backend = redb_with(RedbOptions {
        keep_history_bytes: 1024 * 1024,
        ..RedbOptions::default()
    });
    let store = backend.store();
    let mut revision = commit(&store, Txn::create("/a", "")).await;
    let mut largest = 0;
    for _ in 0..UPDATES {
        revision = commit(&store, Txn::update("/a", revision, vec![b'x'; VALUE])).await;
        largest = largest.max(backend.file_size());
    }
    assert!(
        largest < 16 * 1024 * 1024,
        "{largest} bytes after {UPDATES} updates of {VALUE}"
    );
    wait_until_compacted(&store, revision - 100).await;
}
