//! Reading one key and many.

use std::sync::Arc;

use plimsoll_apiserver::store::{Entry, Error, RangeRequest, Store, Txn};

use crate::backend::commit;

fn keys(entries: &[Entry]) -> Vec<&[u8]> {
    entries.iter().map(|entry| &entry.key[..]).collect()
}

pub(crate) async fn empty_store_is_at_revision_one(store: Arc<dyn Store>) {
    assert_eq!(store.current_revision().await.unwrap(), 1);
    let page = store.range(RangeRequest::prefix("")).await.unwrap();
    assert_eq!(
        (page.revision, page.entries, page.remaining),
        (1, vec![], 0)
    );
}

pub(crate) async fn key_reads_back_with_its_revisions(store: Arc<dyn Store>) {
    let created = commit(&store, Txn::create("/a", "one")).await;
    let updated = commit(&store, Txn::update("/a", created, "two")).await;
    assert!(updated > created);
    let found = store.get(b"/a", None).await.unwrap();
    assert_eq!(found.revision, updated);
    let entry = found.entry.unwrap();
    assert_eq!(
        (&entry.key[..], &entry.value[..]),
        (&b"/a"[..], &b"two"[..])
    );
    assert_eq!(
        (entry.create_revision, entry.mod_revision),
        (created, updated)
    );
    assert!(!entry.is_new());
    assert_eq!(store.current_revision().await.unwrap(), updated);
}

pub(crate) async fn absent_key_is_not_an_error(store: Arc<dyn Store>) {
    let found = store.get(b"/a", None).await.unwrap();
    assert_eq!((found.revision, found.entry), (1, None));
}

pub(crate) async fn past_revisions_are_readable(store: Arc<dyn Store>) {
    let one = commit(&store, Txn::create("/a", "one")).await;
    let two = commit(&store, Txn::update("/a", one, "two")).await;
    let gone = commit(&store, Txn::remove("/a", two)).await;
    let value = async |at| {
        let found = store.get(b"/a", Some(at)).await.unwrap();
        assert_eq!(found.revision, at);
        found.entry.map(|entry| entry.value)
    };
    assert_eq!(value(one).await.as_deref(), Some(&b"one"[..]));
    assert_eq!(value(two).await.as_deref(), Some(&b"two"[..]));
    assert_eq!(value(gone).await, None);
}

pub(crate) async fn future_revisions_are_errors(store: Arc<dyn Store>) {
    let revision = commit(&store, Txn::create("/a", "one")).await;
    let future = Some(revision + 1);
    let got = store.get(b"/a", future).await;
    assert!(matches!(got, Err(Error::FutureRevision { requested }) if Some(requested) == future));
    let request = RangeRequest {
        at: future,
        ..RangeRequest::prefix("/")
    };
    let got = store.range(request).await;
    assert!(matches!(got, Err(Error::FutureRevision { .. })));
}

pub(crate) async fn range_is_in_byte_order_and_ends_with_its_prefix(store: Arc<dyn Store>) {
    for key in ["/b/2", "/b0", "/a/9", "/b/10", "/b/1", "/b", "/b/1/x"] {
        commit(&store, Txn::create(key, "")).await;
    }
    let page = store.range(RangeRequest::prefix("/b/")).await.unwrap();
    let want: [&[u8]; 4] = [b"/b/1", b"/b/1/x", b"/b/10", b"/b/2"];
    assert_eq!(keys(&page.entries), want);
    assert_eq!(page.remaining, 0);
}

pub(crate) async fn pages_continue_and_count_the_remaining_keys(store: Arc<dyn Store>) {
    for number in 0..7 {
        commit(&store, Txn::create(format!("/a/{number}"), "")).await;
    }
    let mut request = RangeRequest {
        limit: Some(3),
        ..RangeRequest::prefix("/a/")
    };
    let mut seen = Vec::new();
    for remaining in [4, 1, 0] {
        let page = store.range(request.clone()).await.unwrap();
        assert_eq!(page.remaining, remaining);
        let last = page.entries.last().unwrap().key.clone();
        request.start = Some([&last[..], b"\0"].concat().into());
        request.at = Some(page.revision);
        seen.extend(page.entries);
    }
    assert_eq!(seen.len(), 7);
    assert!(seen.is_sorted_by_key(|entry| entry.key.clone()));
}

pub(crate) async fn pages_of_one_revision_do_not_see_later_writes(store: Arc<dyn Store>) {
    for key in ["/a/1", "/a/3", "/a/5"] {
        commit(&store, Txn::create(key, "old")).await;
    }
    let at = Some(store.current_revision().await.unwrap());
    let three = store.get(b"/a/3", None).await.unwrap().entry.unwrap();
    commit(&store, Txn::create("/a/2", "new")).await;
    commit(&store, Txn::update("/a/3", three.mod_revision, "new")).await;
    commit(&store, Txn::new().delete("/a/5")).await;
    let request = RangeRequest {
        at,
        limit: Some(2),
        ..RangeRequest::prefix("/a/")
    };
    let page = store.range(request).await.unwrap();
    let want: [&[u8]; 2] = [b"/a/1", b"/a/3"];
    assert_eq!(keys(&page.entries), want);
    assert_eq!(
        (&page.entries[1].value[..], page.remaining),
        (&b"old"[..], 1)
    );
    assert_eq!(Some(page.revision), at);
}

pub(crate) async fn limit_of_zero_only_counts(store: Arc<dyn Store>) {
    for number in 0..3 {
        commit(&store, Txn::create(format!("/a/{number}"), "")).await;
    }
    let request = RangeRequest {
        limit: Some(0),
        ..RangeRequest::prefix("/a/")
    };
    let page = store.range(request).await.unwrap();
    assert_eq!((page.entries.len(), page.remaining), (0, 3));
}

pub(crate) async fn arbitrary_bytes_are_keys_and_values(store: Arc<dyn Store>) {
    let key: &[u8] = b"\xff\0\xfe";
    let value: Vec<u8> = (0..=255).collect();
    commit(&store, Txn::create(key, value.clone())).await;
    let entry = store.get(key, None).await.unwrap().entry.unwrap();
    assert_eq!(entry.value, value);
    let page = store
        .range(RangeRequest::prefix(&b"\xff"[..]))
        .await
        .unwrap();
    assert_eq!(keys(&page.entries), [key]);
}

pub(crate) async fn closed_store_returns_errors(store: Arc<dyn Store>) {
    commit(&store, Txn::create("/a", "one")).await;
    store.close().await.unwrap();
    assert!(matches!(store.get(b"/a", None).await, Err(Error::Closed)));
    let range = store.range(RangeRequest::prefix("/")).await;
    assert!(matches!(range, Err(Error::Closed)));
    let txn = store.txn(Txn::create("/b", "two")).await;
    assert!(matches!(txn, Err(Error::Closed)));
    assert!(matches!(store.current_revision().await, Err(Error::Closed)));
    assert!(matches!(store.compact(1).await, Err(Error::Closed)));
    store.close().await.unwrap();
}
