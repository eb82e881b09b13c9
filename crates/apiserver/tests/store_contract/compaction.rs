//! Compaction.

use std::sync::Arc;

use plimsoll_apiserver::store::{Error, RangeRequest, Store, Txn, Update, WatchRequest};

use crate::backend::commit;
use crate::watches;

/// A key changed and another deleted, at revisions 2 to 6.
async fn some_history(store: &Arc<dyn Store>) -> u64 {
    let first = commit(store, Txn::create("/a", "1")).await;
    let second = commit(store, Txn::update("/a", first, "2")).await;
    commit(store, Txn::create("/b", "1")).await;
    commit(store, Txn::new().delete("/b")).await;
    let last = commit(store, Txn::update("/a", second, "3")).await;
    assert_eq!(last, 6);
    last
}

pub(crate) async fn reads_below_the_compacted_revision_fail(store: Arc<dyn Store>) {
    let last = some_history(&store).await;
    store.compact(last - 1).await.unwrap();
    let compacted =
        |error: &Error| matches!(error, Error::Compacted { requested } if *requested == last - 2);
    let got = store.get(b"/a", Some(last - 2)).await.unwrap_err();
    assert!(compacted(&got), "{got}");
    let request = |at| RangeRequest {
        at: Some(at),
        ..RangeRequest::prefix("/")
    };
    let got = store.range(request(last - 2)).await.unwrap_err();
    assert!(compacted(&got), "{got}");
    let page = store.range(request(last - 1)).await.unwrap();
    assert_eq!(
        (page.entries.len(), &page.entries[0].value[..]),
        (1, &b"2"[..])
    );
}

pub(crate) async fn watches_below_the_compacted_revision_fail(store: Arc<dyn Store>) {
    let last = some_history(&store).await;
    store.compact(last - 1).await.unwrap();
    let request = |after| WatchRequest {
        prefix: "/".into(),
        after,
        with_previous: true,
    };
    for after in [1, last - 3, last - 2] {
        let refused = match store.watch(request(after)).await {
            Ok(mut watch) => watches::next(&mut watch).await.unwrap_err(),
            Err(error) => error,
        };
        assert!(
            matches!(refused, Error::Compacted { .. }),
            "{after}: {refused}"
        );
    }
    let mut watch = store.watch(request(last - 1)).await.unwrap();
    let Update::Change(change) = watches::next(&mut watch).await.unwrap() else {
        panic!("no progress was requested");
    };
    assert_eq!(change.revision, last);
    assert_eq!(change.previous.unwrap().value, "2");
}

pub(crate) async fn current_values_survive_compaction(store: Arc<dyn Store>) {
    let last = some_history(&store).await;
    store.compact(last).await.unwrap();
    let page = store.range(RangeRequest::prefix("/")).await.unwrap();
    assert_eq!((page.revision, page.entries.len()), (last, 1));
    assert_eq!(
        (&page.entries[0].value[..], page.entries[0].create_revision),
        (&b"3"[..], 2)
    );
    assert_eq!(commit(&store, Txn::create("/b", "again")).await, last + 1);
    commit(&store, Txn::update("/a", last, "4")).await;
}

pub(crate) async fn compacting_the_future_fails(store: Arc<dyn Store>) {
    let last = some_history(&store).await;
    let refused = store.compact(last + 1).await;
    assert!(
        matches!(refused, Err(Error::FutureRevision { .. })),
        "{refused:?}"
    );
}

pub(crate) async fn compacting_twice_is_not_an_error(store: Arc<dyn Store>) {
    let last = some_history(&store).await;
    store.compact(last).await.unwrap();
    store.compact(last).await.unwrap();
    store.compact(last - 1).await.unwrap();
    assert!(store.get(b"/a", Some(last)).await.unwrap().entry.is_some());
}

pub(crate) async fn compaction_never_hides_a_delete(store: Arc<dyn Store>) {
    let created = commit(&store, Txn::create("/a", "1")).await;
    let deleted = commit(&store, Txn::remove("/a", created)).await;
    commit(&store, Txn::create("/b", "1")).await;
    let mut watch = watches::watch(&store, "/", created).await;
    store.compact(deleted).await.unwrap();
    match watches::next(&mut watch).await {
        Ok(Update::Change(change)) => assert_eq!((change.revision, change.entry), (deleted, None)),
        Err(Error::Compacted { .. }) => {}
        other => panic!("{other:?}"),
    }
}
