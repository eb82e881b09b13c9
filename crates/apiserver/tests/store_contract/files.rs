//! Operations on the file of an embedded store while no server uses it.

use std::path::Path;
use std::time::Duration;

use plimsoll_apiserver::store::{
    Error, RESTORED_REVISION_GAP, RangeRequest, RedbOptions, RedbStore, Store, Txn, WatchRequest,
};

use crate::snapshots::all;

const KEYS: usize = 300;

/// A closed store with some history.
async fn filled(path: &Path) {
    let store = RedbStore::open(path, &RedbOptions::default()).unwrap();
    for number in 0..KEYS {
        let key = format!("/registry/pods/{number:03}");
        let value = vec![b'x'; 2000];
        store
            .txn(Txn::create(key.clone(), value.clone()))
            .await
            .unwrap();
        store
            .txn(Txn::new().put(key, [&value[..], b"2"].concat()))
            .await
            .unwrap();
    }
    let long = Duration::from_secs(3600);
    let txn = Txn::new()
        .put("/registry/a", "1")
        .put_for(long, "/registry/b", "2");
    store.txn(txn).await.unwrap();
    store.close().await.unwrap();
}

fn check_nothing(_: &[u8], _: &[u8]) -> Result<(), String> {
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restored_store_has_all_keys_and_no_old_revisions() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = (
        folder.path().join("old.redb"),
        folder.path().join("new.redb"),
    );
    filled(&old).await;
    let store = RedbStore::open(&old, &RedbOptions::default()).unwrap();
    let snapshot = store.snapshot("".into()).await.unwrap();
    let revision = snapshot.revision;
    let entries = all(snapshot).await;
    let expected = store.range(RangeRequest::prefix("")).await.unwrap();
    let written = RedbStore::create_with(&new, revision, &mut entries.into_iter().map(Ok)).unwrap();
    assert_eq!(written, (KEYS as u64 + 2, revision + RESTORED_REVISION_GAP));
    let restored = RedbStore::open(&new, &RedbOptions::default()).unwrap();
    let found = restored.range(RangeRequest::prefix("")).await.unwrap();
    assert_eq!(found.entries, expected.entries);
    assert_eq!(found.revision, revision + RESTORED_REVISION_GAP);
    for after in [revision - 1, revision, revision + 1000] {
        let request = WatchRequest {
            after,
            ..WatchRequest::default()
        };
        let refused = restored.watch(request).await.unwrap_err();
        assert!(matches!(refused, Error::Compacted { .. }), "{refused:?}");
    }
    restored
        .txn(Txn::new().put("/registry/a", "new"))
        .await
        .unwrap();
    restored.close().await.unwrap();
    let report = RedbStore::verify(&new, &check_nothing).unwrap();
    assert_eq!(report.problems, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn verify_names_damaged_keys_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    filled(&path).await;
    let sound = std::fs::read(&path).unwrap();
    let report = RedbStore::verify(&path, &check_nothing).unwrap();
    assert_eq!((report.problems.len(), report.keys), (0, KEYS as u64 + 2));
    assert_eq!(report.rows, 2 * KEYS as u64 + 2);
    let mut damaged = sound.clone();
    for number in [7, 70] {
        let key = format!("/registry/pods/{number:03}");
        let found = damaged
            .windows(key.len())
            .rposition(|part| part == key.as_bytes());
        // In the value after the key.
        damaged[found.unwrap() + key.len() + 1000] ^= 4;
    }
    std::fs::write(&path, &damaged).unwrap();
    let is_odd = |key: &[u8], _: &[u8]| match key.ends_with(b"/a") {
        true => Err("it is odd".to_owned()),
        false => Ok(()),
    };
    let report = RedbStore::verify(&path, &is_odd).unwrap();
    let mut keys: Vec<&str> = (report.problems.iter())
        .filter_map(|problem| problem.key.as_deref())
        .collect();
    keys.sort_unstable();
    assert_eq!(
        keys,
        ["/registry/a", "/registry/pods/007", "/registry/pods/070"]
    );
    assert!(
        report
            .problems
            .iter()
            .any(|problem| problem.problem == "it is odd")
    );
    assert!(
        std::fs::read(&path).unwrap() == damaged,
        "the file was changed"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn compacting_a_file_drops_history_and_frees_space() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    filled(&path).await;
    let (before, after) = RedbStore::compact_file(&path).unwrap();
    assert!(after < before * 2 / 3, "{before} to {after} bytes");
    assert_eq!(std::fs::metadata(&path).unwrap().len(), after);
    let report = RedbStore::verify(&path, &check_nothing).unwrap();
    assert_eq!(
        (report.rows, report.keys),
        (KEYS as u64 + 2, KEYS as u64 + 2)
    );
    assert_eq!(report.problems, []);
}
