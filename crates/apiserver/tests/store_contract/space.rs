//! A full quota. A full disk needs another test: `plimsoll/tests/node/full_disk.rs`.

use std::time::{Duration, Instant};

use plimsoll_apiserver::store::{Error, RedbOptions, Txn};

use crate::backend::{commit, redb_with};

const QUOTA: u64 = 1024 * 1024;
const PATIENCE: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deletes_beyond_the_quota_succeed_and_free_space() {
    let backend = redb_with(RedbOptions {
        quota_bytes: Some(QUOTA),
        ..RedbOptions::default()
    });
    let store = backend.store();
    let value = vec![b'x'; 20_000];
    let mut stored = 0;
    let refused = loop {
        match store
            .txn(Txn::create(format!("/{stored}"), value.clone()))
            .await
        {
            Ok(_) => stored += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, Error::Full { .. }), "{refused:?}");
    let why = std::error::Error::source(&refused).unwrap().to_string();
    assert!(
        why.contains("of 1048576 bytes are in use: creates and updates that grow"),
        "{why}"
    );
    assert!((45..=52).contains(&stored), "{stored} values of 20 kB");
    let unready = store.ready().await.unwrap_err();
    assert!(matches!(unready, Error::Full { .. }), "{unready:?}");
    // Neither an update of the same size nor an urgent one is rejected.
    commit(&store, Txn::new().put("/0", value.clone())).await;
    let growing = Txn::new().put("/0", [&value[..], b"more"].concat());
    store.txn(growing.clone()).await.unwrap_err();
    commit(&store, growing.urgent()).await;
    for number in 0..10 {
        commit(&store, Txn::new().delete(format!("/{number}"))).await;
    }
    let deadline = Instant::now() + PATIENCE;
    while store.ready().await.is_err() {
        assert!(Instant::now() < deadline, "the alarm stays");
        tokio::task::yield_now().await;
    }
    commit(&store, Txn::create("/again", value)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn history_makes_room_for_objects() {
    let backend = redb_with(RedbOptions {
        quota_bytes: Some(QUOTA),
        ..RedbOptions::default()
    });
    let store = backend.store();
    let mut largest = 0;
    for number in 0..500_u32 {
        commit(
            &store,
            Txn::new().put("/a", vec![number.to_le_bytes()[0]; 20_000]),
        )
        .await;
        largest = largest.max(backend.file_size());
    }
    assert!(largest < 8 * QUOTA, "{largest} bytes of file");
    store.ready().await.unwrap();
}
