//! Keys that expire.

use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_apiserver::store::{Store, Txn};

use crate::backend::commit;
use crate::watches::{change, watch};

/// The shortest time to live of etcd.
const TTL: Duration = Duration::from_secs(1);

pub(crate) async fn key_expires_and_watchers_are_notified(store: Arc<dyn Store>) {
    let mut watch = watch(&store, "/", 1).await;
    let start = Instant::now();
    let put = commit(&store, Txn::new().put_for(TTL, "/event", "soon gone")).await;
    assert!(change(&mut watch).await.entry.is_some());
    let gone = change(&mut watch).await;
    assert!(start.elapsed() >= TTL);
    assert_eq!((&gone.key[..], gone.entry), (&b"/event"[..], None));
    assert!(gone.revision > put);
    assert_eq!(store.get(b"/event", None).await.unwrap().entry, None);
    assert!(
        store
            .get(b"/event", Some(put))
            .await
            .unwrap()
            .entry
            .is_some()
    );
}

pub(crate) async fn later_put_without_expiry_stays(store: Arc<dyn Store>) {
    let mut watch = watch(&store, "/", 1).await;
    let put = Txn::new()
        .put_for(TTL, "/kept", "1")
        .put_for(TTL, "/gone", "1");
    let revision = commit(&store, put).await;
    commit(&store, Txn::update("/kept", revision, "2")).await;
    for _ in 0..3 {
        assert!(change(&mut watch).await.entry.is_some());
    }
    assert_eq!(change(&mut watch).await.key, "/gone");
    let kept = store.get(b"/kept", None).await.unwrap().entry.unwrap();
    assert_eq!(kept.value, "2");
}
