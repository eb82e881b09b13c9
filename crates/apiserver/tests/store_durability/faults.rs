//! Failing operations, a full disk, and files that should not be opened.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_apiserver::store::{
    Change, Error, RedbOptions, RedbStore, Store, Txn, Update, Watch, WatchRequest,
};

use crate::block_on;
use crate::disk::{Disk, Fault, Operation};
use crate::ledger::{Acknowledged, Ledger};

/// Steps within which the fault should occur.
const STEPS: u64 = 12;

/// A store must recover within this time.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) fn open(disk: &Disk) -> Result<RedbStore, Error> {
    let disk = disk.clone();
    // A small cache makes the store read from the disk.
    let options = RedbOptions {
        cache_bytes: 64 * 1024,
        ..RedbOptions::default()
    };
    RedbStore::open_with(
        "a disk in memory".to_owned(),
        move || Ok(disk.open()),
        &options,
    )
}

/// A store that has taken some steps already.
async fn started(disk: &Disk) -> (Arc<RedbStore>, Ledger, Vec<Acknowledged>) {
    let store = Arc::new(open(disk).unwrap());
    let mut ledger = Ledger::resume(&*store, "w").await.unwrap();
    let mut acknowledged = Vec::new();
    for _ in 0..3 {
        acknowledged.push(ledger.step(&*store).await.unwrap());
    }
    (store, ledger, acknowledged)
}

async fn watch_all(store: &RedbStore) -> Watch {
    let request = WatchRequest {
        after: 1,
        with_previous: true,
        ..WatchRequest::default()
    };
    store.watch(request).await.unwrap()
}

/// Everything that a watch shows up to the current revision.
async fn seen(store: &RedbStore, watch: &mut Watch) -> Vec<Change> {
    watch.request_progress(store.current_revision().await.unwrap());
    let mut changes = Vec::new();
    loop {
        match tokio::time::timeout(PATIENCE, watch.next())
            .await
            .unwrap()
            .unwrap()
        {
            Update::Change(change) => changes.push(change),
            Update::Progress(_) => return changes,
        }
    }
}

/// Fails the first, the second, ... write until none is left to fail.
pub(crate) fn failed_writes() {
    // When several fail in a row, opening the file again fails too.
    for times in [1, 2, 5] {
        let struck = (1..)
            .take_while(|at| block_on(failed_write(*at, times)))
            .count();
        println!("failed writes: each of {struck}, {times} in a row, lost: 0");
        assert!(struck > 20);
    }
}

/// Whether the fault occurred.
async fn failed_write(at: u64, times: u64) -> bool {
    let disk = Disk::default();
    let (store, mut ledger, mut acknowledged) = started(&disk).await;
    let mut watch = watch_all(&store).await;
    disk.fail(Fault {
        operation: Operation::Write,
        at,
        times,
    });
    for _ in 0..STEPS {
        match ledger.step(&*store).await {
            Ok(step) => acknowledged.push(step),
            Err(error) => {
                assert!(error.is_retryable(), "{error:?}");
                recovered(&store).await;
                ledger.check(&*store, &acknowledged).await;
            }
        }
    }
    let struck = disk.mend();
    ledger.check(&*store, &acknowledged).await;
    let live = seen(&store, &mut watch).await;
    assert_eq!(live, seen(&store, &mut watch_all(&store).await).await);
    let revision = store.current_revision().await.unwrap();
    drop(watch);
    drop(store);
    let store = open(&disk).unwrap();
    ledger.check(&store, &acknowledged).await;
    assert_eq!(store.current_revision().await.unwrap(), revision);
    assert!(ledger.step(&store).await.unwrap().revision > revision);
    struck
}

/// Writes until the store accepts it.
async fn recovered(store: &RedbStore) {
    let deadline = Instant::now() + PATIENCE;
    while let Err(error) = store.txn(Txn::new().put("/recovered", "")).await {
        assert!(
            error.is_retryable() && Instant::now() < deadline,
            "{error:?}"
        );
        tokio::task::yield_now().await;
    }
}

pub(crate) fn failed_flushes() {
    let struck = (1..).take_while(|at| block_on(failed_flush(*at))).count();
    println!("failed flushes: each of {struck}, lost: 0");
    assert!(struck > 5);
}

async fn failed_flush(at: u64) -> bool {
    let disk = Disk::default();
    let (store, mut ledger, mut acknowledged) = started(&disk).await;
    disk.fail(Fault {
        operation: Operation::Flush,
        at,
        times: 1,
    });
    let mut refused = None;
    for _ in 0..STEPS {
        match ledger.step(&*store).await {
            Ok(step) => {
                assert!(refused.is_none(), "written after {refused:?}");
                acknowledged.push(step);
            }
            Err(error) => {
                assert!(matches!(error, Error::WritesRefused { .. }), "{error:?}");
                refused = Some(error);
            }
        }
    }
    // Reads still succeed, and show nothing that may not be on the disk.
    ledger.check(&*store, &acknowledged).await;
    assert_eq!(ledger.number, acknowledged.last().unwrap().number);
    drop(store);
    let store = open(&disk).unwrap();
    ledger.check(&store, &acknowledged).await;
    let revision = store.current_revision().await.unwrap();
    assert!(ledger.step(&store).await.unwrap().revision > revision);
    refused.is_some()
}

pub(crate) fn failed_reads() {
    block_on(async {
        let disk = Disk::default();
        let store = open(&disk).unwrap();
        let value = vec![b'x'; 16 * 1024];
        for number in 0..100 {
            store
                .txn(Txn::create(format!("/{number}"), value.clone()))
                .await
                .unwrap();
        }
        disk.fail(Fault {
            operation: Operation::Read,
            at: 1,
            times: 1,
        });
        let read = async || {
            for number in 0..100 {
                store.get(format!("/{number}").as_bytes(), None).await?;
            }
            Ok::<(), Error>(())
        };
        let error = read().await.unwrap_err();
        assert!(matches!(error, Error::Read { .. }), "{error:?}");
        let deadline = Instant::now() + PATIENCE;
        while let Err(error) = read().await {
            assert!(Instant::now() < deadline, "{error:?}");
            tokio::task::yield_now().await;
        }
    });
}

pub(crate) fn full_disk() {
    block_on(async {
        let disk = Disk::default();
        let (store, mut ledger, mut acknowledged) = started(&disk).await;
        disk.limit_space(Some(512 * 1024));
        let value = vec![b'x'; 16 * 1024];
        let mut stored: u64 = 0;
        let error = loop {
            match store
                .txn(Txn::create(format!("/fill/{stored}"), value.clone()))
                .await
            {
                Ok(_) => stored += 1,
                Err(error) => break error,
            }
        };
        assert!(
            matches!(error, Error::Full { .. }) && error.is_retryable(),
            "{error:?}"
        );
        assert_eq!(error.to_string(), "no space left for a disk in memory");
        // Reads still succeed while the disk is full.
        ledger.check(&*store, &acknowledged).await;
        let last = format!("/fill/{}", stored - 1);
        assert!(
            store
                .get(last.as_bytes(), None)
                .await
                .unwrap()
                .entry
                .is_some()
        );
        for _ in 0..3 {
            let again = store
                .txn(Txn::create("/more", value.clone()))
                .await
                .unwrap_err();
            assert!(again.is_retryable(), "{again:?}");
        }
        disk.limit_space(None);
        let deadline = Instant::now() + PATIENCE;
        while let Err(error) = store.txn(Txn::new().put("/more", "")).await {
            assert!(
                error.is_retryable() && Instant::now() < deadline,
                "{error:?}"
            );
            tokio::task::yield_now().await;
        }
        for _ in 0..STEPS {
            acknowledged.push(ledger.step(&*store).await.unwrap());
        }
        drop(store);
        let store = open(&disk).unwrap();
        ledger.check(&store, &acknowledged).await;
        assert!(
            store
                .get(last.as_bytes(), None)
                .await
                .unwrap()
                .entry
                .is_some()
        );
    });
}

pub(crate) fn file_mode() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    let mode = || std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    drop(RedbStore::open(&path, &RedbOptions::default()).unwrap());
    assert_eq!(mode(), 0o600);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    drop(RedbStore::open(&path, &RedbOptions::default()).unwrap());
    assert_eq!(mode(), 0o600);
}

pub(crate) fn opened_twice() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    let first = RedbStore::open(&path, &RedbOptions::default()).unwrap();
    let second = RedbStore::open(&path, &RedbOptions::default()).unwrap_err();
    assert!(matches!(second, Error::InUse { .. }), "{second:?}");
    drop(first);
    RedbStore::open(&path, &RedbOptions::default()).unwrap();
}

pub(crate) fn not_a_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    std::fs::write(&path, vec![b'?'; 100_000]).unwrap();
    let error = RedbStore::open(&path, &RedbOptions::default()).unwrap_err();
    assert!(matches!(error, Error::NotAStore { .. }), "{error:?}");
    assert_eq!(std::fs::read(&path).unwrap(), vec![b'?'; 100_000]);
}
