//! Conditional writes.

use std::sync::Arc;

use bytes::Bytes;
use plimsoll_apiserver::store::{
    Error, MAX_TXN_BYTES, MAX_TXN_OPERATIONS, Outcome, RangeRequest, Store, Txn,
};

use crate::backend::commit;

/// The key and value that a conflict reports.
async fn conflict(store: &Arc<dyn Store>, txn: Txn) -> (Bytes, Option<Bytes>) {
    match store.txn(txn).await.unwrap() {
        Outcome::Conflict { key, current } => (key, current.map(|entry| entry.value)),
        committed @ Outcome::Committed { .. } => panic!("{committed:?}"),
    }
}

async fn value(store: &Arc<dyn Store>, key: &str) -> Option<Bytes> {
    let found = store.get(key.as_bytes(), None).await.unwrap();
    found.entry.map(|entry| entry.value)
}

pub(crate) async fn create_needs_absence(store: Arc<dyn Store>) {
    commit(&store, Txn::create("/a", "one")).await;
    let refused = conflict(&store, Txn::create("/a", "two")).await;
    assert_eq!(refused, ("/a".into(), Some("one".into())));
    assert_eq!(value(&store, "/a").await, Some("one".into()));
}

pub(crate) async fn update_needs_the_last_revision(store: Arc<dyn Store>) {
    let first = commit(&store, Txn::create("/a", "one")).await;
    commit(&store, Txn::update("/a", first, "two")).await;
    let refused = conflict(&store, Txn::update("/a", first, "three")).await;
    assert_eq!(refused, ("/a".into(), Some("two".into())));
    let refused = conflict(&store, Txn::update("/b", first, "three")).await;
    assert_eq!(refused, ("/b".into(), None));
    assert_eq!(value(&store, "/b").await, None);
}

pub(crate) async fn delete_needs_the_last_revision(store: Arc<dyn Store>) {
    let first = commit(&store, Txn::create("/a", "one")).await;
    let second = commit(&store, Txn::update("/a", first, "two")).await;
    let refused = conflict(&store, Txn::remove("/a", first)).await;
    assert_eq!(refused, ("/a".into(), Some("two".into())));
    let gone = commit(&store, Txn::remove("/a", second)).await;
    assert!(gone > second);
    assert_eq!(value(&store, "/a").await, None);
}

pub(crate) async fn several_keys_change_at_one_revision(store: Arc<dyn Store>) {
    commit(&store, Txn::create("/old", "")).await;
    let before = store.current_revision().await.unwrap();
    let txn = Txn::create("/a", "1").put("/b", "2").delete("/old");
    let revision = commit(&store, txn).await;
    assert_eq!(revision, before + 1);
    let page = store.range(RangeRequest::prefix("/")).await.unwrap();
    let revisions: Vec<_> = page
        .entries
        .iter()
        .map(|entry| entry.mod_revision)
        .collect();
    assert_eq!(revisions, [revision, revision]);
}

pub(crate) async fn nothing_changes_when_one_comparison_fails(store: Arc<dyn Store>) {
    commit(&store, Txn::create("/b", "kept")).await;
    let before = store.current_revision().await.unwrap();
    let txn = Txn::create("/a", "1")
        .if_absent("/b")
        .put("/b", "2")
        .delete("/c");
    let refused = conflict(&store, txn).await;
    assert_eq!(refused, ("/b".into(), Some("kept".into())));
    assert_eq!(value(&store, "/a").await, None);
    assert_eq!(value(&store, "/b").await, Some("kept".into()));
    assert_eq!(store.current_revision().await.unwrap(), before);
}

pub(crate) async fn deleting_nothing_makes_no_revision(store: Arc<dyn Store>) {
    let revision = commit(&store, Txn::create("/a", "")).await;
    assert_eq!(commit(&store, Txn::new().delete("/b")).await, revision);
    assert_eq!(store.current_revision().await.unwrap(), revision);
}

pub(crate) async fn recreated_key_has_a_new_create_revision(store: Arc<dyn Store>) {
    commit(&store, Txn::create("/a", "one")).await;
    commit(&store, Txn::new().delete("/a")).await;
    let again = commit(&store, Txn::create("/a", "two")).await;
    let entry = store.get(b"/a", None).await.unwrap().entry.unwrap();
    assert_eq!((entry.create_revision, entry.mod_revision), (again, again));
    assert!(entry.is_new());
}

pub(crate) async fn duplicate_key_in_a_transaction_is_rejected(store: Arc<dyn Store>) {
    let refused = store.txn(Txn::new().put("/a", "1").delete("/a")).await;
    assert!(matches!(refused, Err(Error::DuplicateKey { key }) if key == "/a"));
    assert_eq!(store.current_revision().await.unwrap(), 1);
}

pub(crate) async fn oversized_transaction_is_rejected_before_it_is_sent(store: Arc<dyn Store>) {
    let large = vec![b'x'; MAX_TXN_BYTES + 1];
    let refused = store.txn(Txn::create("/a", large)).await;
    assert!(matches!(
        refused,
        Err(Error::TooLarge {
            limit: MAX_TXN_BYTES,
            ..
        })
    ));
    let many = |count| (0..count).fold(Txn::new(), |txn, n| txn.put(format!("/a/{n}"), ""));
    let refused = store.txn(many(MAX_TXN_OPERATIONS + 1)).await;
    assert!(matches!(refused, Err(Error::TooManyOperations { .. })));
    commit(&store, many(MAX_TXN_OPERATIONS)).await;
    commit(&store, Txn::create("/large", vec![b'x'; 1024 * 1024])).await;
}

pub(crate) async fn one_of_many_concurrent_creates_wins(store: Arc<dyn Store>) {
    let mut tasks = Vec::new();
    for number in 0..16 {
        let store = Arc::clone(&store);
        let txn = Txn::create("/a", format!("{number}"));
        tasks.push(tokio::spawn(async move { store.txn(txn).await.unwrap() }));
    }
    let mut winners = 0;
    for task in tasks {
        winners += usize::from(matches!(task.await.unwrap(), Outcome::Committed { .. }));
    }
    assert_eq!(winners, 1);
    assert_eq!(store.current_revision().await.unwrap(), 2);
}

pub(crate) async fn concurrent_increments_are_all_applied(store: Arc<dyn Store>) {
    commit(&store, Txn::create("/count", "0")).await;
    let mut tasks = Vec::new();
    for _ in 0..8 {
        let store = Arc::clone(&store);
        tasks.push(tokio::spawn(async move {
            for _ in 0..10 {
                increment(&store).await;
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(value(&store, "/count").await, Some("80".into()));
    // One revision for the creation, one for each increment, none for a conflict.
    assert_eq!(store.current_revision().await.unwrap(), 82);
}

async fn increment(store: &Arc<dyn Store>) {
    let mut entry = store.get(b"/count", None).await.unwrap().entry.unwrap();
    loop {
        let count: u32 = std::str::from_utf8(&entry.value).unwrap().parse().unwrap();
        let txn = Txn::update("/count", entry.mod_revision, (count + 1).to_string());
        match store.txn(txn).await.unwrap() {
            Outcome::Committed { .. } => return,
            Outcome::Conflict { current, .. } => entry = current.unwrap(),
        }
    }
}
