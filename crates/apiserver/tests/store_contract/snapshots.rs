//! Snapshots.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use plimsoll_apiserver::store::{RangeRequest, Snapshot, SnapshotEntry, Store, Txn};

use crate::backend::commit;

pub(crate) async fn all(mut snapshot: Snapshot) -> Vec<SnapshotEntry> {
    let mut all = Vec::new();
    while let Some(chunk) = snapshot.next_chunk().await.unwrap() {
        all.extend(chunk);
    }
    all
}

pub(crate) async fn snapshot_has_one_revision(store: Arc<dyn Store>) {
    const KEYS: usize = 1200;
    for number in 0..KEYS {
        let key = format!("/registry/pods/{number:04}");
        commit(&store, Txn::create(key, format!("old {number}"))).await;
    }
    commit(&store, Txn::create("/other", "")).await;
    let before = store
        .range(RangeRequest::prefix("/registry/"))
        .await
        .unwrap();
    let snapshot = store.snapshot("/registry/".into()).await.unwrap();
    let revision = snapshot.revision;
    assert_eq!(revision, before.revision);
    for number in (0..KEYS).step_by(3) {
        let key = format!("/registry/pods/{number:04}");
        commit(&store, Txn::new().put(key, "new")).await;
        let gone = format!("/registry/pods/{:04}", number + 1);
        commit(&store, Txn::new().delete(gone)).await;
        commit(
            &store,
            Txn::create(format!("/registry/pods/{number:04}-new"), ""),
        )
        .await;
    }
    let entries: Vec<_> = all(snapshot).await.into_iter().map(|e| e.entry).collect();
    assert_eq!(entries.len(), KEYS);
    assert_eq!(entries, before.entries);
}

pub(crate) async fn snapshot_has_expiry_times(store: Arc<dyn Store>) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let ttl = Duration::from_secs(600);
    commit(&store, Txn::new().put_for(ttl, "/registry/a", "1")).await;
    commit(&store, Txn::new().put("/registry/b", "2")).await;
    let entries = all(store.snapshot("/registry/".into()).await.unwrap()).await;
    let end = u128::from(entries[0].expires_at);
    // On etcd a lease may last longer by a twentieth, and in whole seconds.
    let earliest = (now + ttl).as_millis() - 2000;
    assert!((earliest..earliest + 60_000).contains(&end), "{end}");
    assert_eq!(entries[1].expires_at, 0);
}

pub(crate) async fn open_store_is_ready(store: Arc<dyn Store>) {
    store.ready().await.unwrap();
}
