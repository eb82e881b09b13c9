//! The stores under test.

use std::sync::Arc;

use plimsoll_apiserver::store::{EtcdOptions, EtcdStore, RedbOptions, RedbStore, Store};
use plimsoll_testkit::etcd::Etcd;
use tempfile::TempDir;

/// Small, so that falling behind is quick.
pub(crate) const WATCH_BUFFER: usize = 100;

/// A store, and what has to outlive it.
pub(crate) struct Backend {
    store: Arc<dyn Store>,
    _folder: Option<TempDir>,
    _etcd: Option<Etcd>,
}

impl Backend {
    pub(crate) fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store)
    }
}

pub(crate) fn redb() -> Backend {
    let folder = tempfile::tempdir().unwrap();
    let options = RedbOptions {
        watch_buffer: WATCH_BUFFER,
        ..RedbOptions::default()
    };
    let store = RedbStore::open(&folder.path().join("store.redb"), &options).unwrap();
    Backend {
        store: Arc::new(store),
        _folder: Some(folder),
        _etcd: None,
    }
}

pub(crate) async fn etcd() -> Backend {
    let etcd = tokio::task::spawn_blocking(Etcd::start).await.unwrap();
    let options = EtcdOptions {
        endpoints: vec![etcd.endpoint().to_owned()],
        watch_buffer: WATCH_BUFFER,
        ..EtcdOptions::default()
    };
    let store = EtcdStore::connect(&options).await.unwrap();
    Backend {
        store: Arc::new(store),
        _folder: None,
        _etcd: Some(etcd),
    }
}

/// Commits and gives the revision.
pub(crate) async fn commit(store: &Arc<dyn Store>, txn: plimsoll_apiserver::store::Txn) -> u64 {
    use plimsoll_apiserver::store::Outcome;
    match store.txn(txn).await.unwrap() {
        Outcome::Committed { revision } => revision,
        conflict @ Outcome::Conflict { .. } => panic!("{conflict:?}"),
    }
}
