//! Following changes.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_apiserver::store::{Change, Error, Store, Txn, Update, Watch, WatchRequest};

use crate::backend::{WATCH_BUFFER, commit};

/// Far longer than any operation takes; a hang fails instead of lasting.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) async fn watch(store: &Arc<dyn Store>, prefix: &'static str, after: u64) -> Watch {
    let request = WatchRequest {
        prefix: prefix.into(),
        after,
        with_previous: false,
    };
    store.watch(request).await.unwrap()
}

pub(crate) async fn next(watch: &mut Watch) -> Result<Update, Error> {
    tokio::time::timeout(PATIENCE, watch.next())
        .await
        .expect("an update arrives")
}

pub(crate) async fn change(watch: &mut Watch) -> Change {
    match next(watch).await.unwrap() {
        Update::Change(change) => change,
        progress @ Update::Progress(_) => panic!("{progress:?}"),
    }
}

pub(crate) async fn changes_arrive_in_order_without_gaps(store: Arc<dyn Store>) {
    let mut watch = watch(&store, "/", 1).await;
    let writer = Arc::clone(&store);
    let writing = tokio::spawn(async move {
        let mut tasks = Vec::new();
        for task in 0..8 {
            let store = Arc::clone(&writer);
            tasks.push(tokio::spawn(async move {
                for number in 0..10 {
                    commit(&store, Txn::create(format!("/{task}/{number}"), "")).await;
                }
            }));
        }
        for task in tasks {
            task.await.unwrap();
        }
    });
    for revision in 2..82 {
        assert_eq!(change(&mut watch).await.revision, revision);
    }
    writing.await.unwrap();
}

pub(crate) async fn watch_from_the_past_continues_live(store: Arc<dyn Store>) {
    let first = commit(&store, Txn::create("/a", "1")).await;
    let second = commit(&store, Txn::update("/a", first, "2")).await;
    let third = commit(&store, Txn::remove("/a", second)).await;
    let mut watch = watch(&store, "/a", first).await;
    let fourth = commit(&store, Txn::create("/a", "4")).await;
    let mut seen = Vec::new();
    for _ in 0..3 {
        let change = change(&mut watch).await;
        seen.push((change.revision, change.entry.map(|entry| entry.value)));
    }
    let want = [
        (second, Some("2".into())),
        (third, None),
        (fourth, Some("4".into())),
    ];
    assert_eq!(seen, want);
}

pub(crate) async fn watch_is_limited_to_its_prefix(store: Arc<dyn Store>) {
    commit(&store, Txn::create("/b/past", "")).await;
    commit(&store, Txn::create("/a/past", "")).await;
    let mut watch = watch(&store, "/a/", 1).await;
    commit(&store, Txn::create("/b/live", "")).await;
    commit(&store, Txn::create("/a/live", "")).await;
    assert_eq!(change(&mut watch).await.key, "/a/past");
    assert_eq!(change(&mut watch).await.key, "/a/live");
}

pub(crate) async fn previous_entries_are_sent_on_request(store: Arc<dyn Store>) {
    let request = |with_previous| WatchRequest {
        prefix: "/".into(),
        after: 1,
        with_previous,
    };
    let mut live = store.watch(request(true)).await.unwrap();
    let mut plain = store.watch(request(false)).await.unwrap();
    let first = commit(&store, Txn::create("/a", "1")).await;
    let second = commit(&store, Txn::update("/a", first, "2")).await;
    commit(&store, Txn::remove("/a", second)).await;
    let mut past = store.watch(request(true)).await.unwrap();
    for watch in [&mut live, &mut past] {
        let previous = [None, Some(("1", first)), Some(("2", second))];
        for want in previous {
            let previous = change(watch).await.previous;
            let want = want.map(|(value, revision)| (value.into(), revision, first));
            let got = previous.map(|e| (e.value, e.mod_revision, e.create_revision));
            assert_eq!(got, want);
        }
    }
    for _ in 0..3 {
        assert_eq!(change(&mut plain).await.previous, None);
    }
}

pub(crate) async fn delete_has_its_revision(store: Arc<dyn Store>) {
    let mut watch = watch(&store, "/", 1).await;
    commit(&store, Txn::create("/a", "1")).await;
    let gone = commit(&store, Txn::new().delete("/a")).await;
    assert!(
        change(&mut watch)
            .await
            .entry
            .is_some_and(|entry| entry.is_new())
    );
    let delete = change(&mut watch).await;
    assert_eq!((delete.revision, delete.entry), (gone, None));
    assert_eq!(delete.key, "/a");
}

pub(crate) async fn transaction_arrives_whole_and_in_order(store: Arc<dyn Store>) {
    commit(&store, Txn::create("/b", "")).await;
    let mut live = watch(&store, "/", 2).await;
    let revision = commit(
        &store,
        Txn::new().put("/c", "1").delete("/b").put("/a", "2"),
    )
    .await;
    let mut past = watch(&store, "/", 2).await;
    for watch in [&mut live, &mut past] {
        for key in ["/c", "/b", "/a"] {
            let change = change(watch).await;
            assert_eq!((change.key, change.revision), (key.into(), revision));
        }
    }
}

pub(crate) async fn progress_is_reported_without_changes(store: Arc<dyn Store>) {
    let mut watch = watch(&store, "/a/", 1).await;
    commit(&store, Txn::create("/a/1", "")).await;
    let mut revision = 0;
    for number in 0..5 {
        revision = commit(&store, Txn::create(format!("/b/{number}"), "")).await;
    }
    watch.request_progress(revision);
    assert_eq!(change(&mut watch).await.key, "/a/1");
    match next(&mut watch).await.unwrap() {
        Update::Progress(reached) => assert_eq!(reached, revision),
        change @ Update::Change(_) => panic!("{change:?}"),
    }
    // A future revision is reported when it is reached.
    watch.request_progress(revision + 1);
    let later = commit(&store, Txn::create("/b/later", "")).await;
    assert_eq!(next(&mut watch).await.unwrap(), Update::Progress(later));
}

pub(crate) async fn watch_from_the_future_waits(store: Arc<dyn Store>) {
    let mut watch = watch(&store, "/", 3).await;
    for number in 0..3 {
        commit(&store, Txn::create(format!("/{number}"), "")).await;
    }
    assert_eq!(change(&mut watch).await.revision, 4);
}

pub(crate) async fn slow_watcher_is_dropped_and_others_are_not(store: Arc<dyn Store>) {
    let mut slow = watch(&store, "/", 1).await;
    let mut quick = watch(&store, "/", 1).await;
    let count = u64::try_from(WATCH_BUFFER).unwrap() * 2;
    for number in 0..count {
        commit(&store, Txn::create(format!("/{number}"), "")).await;
        assert_eq!(change(&mut quick).await.revision, number + 2);
    }
    let mut seen = 1;
    let error = loop {
        match next(&mut slow).await {
            Ok(Update::Change(change)) => {
                assert_eq!(change.revision, seen + 1);
                seen = change.revision;
            }
            Ok(progress @ Update::Progress(_)) => panic!("{progress:?}"),
            Err(error) => break error,
        }
    };
    assert!(
        matches!(
            error,
            Error::WatchTooSlow {
                limit: WATCH_BUFFER,
                ..
            }
        ),
        "{error}"
    );
    assert!(seen < count);
    // It continues from its position.
    let mut again = watch(&store, "/", seen).await;
    assert_eq!(change(&mut again).await.revision, seen + 1);
}

pub(crate) async fn closing_ends_watches(store: Arc<dyn Store>) {
    let mut watch = watch(&store, "/", 1).await;
    store.close().await.unwrap();
    assert!(matches!(next(&mut watch).await, Err(Error::Closed)));
    let request = WatchRequest::default();
    assert!(matches!(store.watch(request).await, Err(Error::Closed)));
}
