//! The stores under test.

use std::sync::Arc;

use plimsoll_apiserver::store::{
    EtcdOptions, EtcdStore, Outcome, RedbOptions, RedbStore, Store, Txn,
};
use plimsoll_testkit::etcd::Etcd;
use tempfile::TempDir;

/// Small, so that falling behind is quick.
pub(crate) const WATCH_BUFFER: usize = 100;

/// A store, and the resources it needs.
pub(crate) struct Backend {
    store: Arc<dyn Store>,
    folder: Option<TempDir>,
    _etcd: Option<Etcd>,
}

impl Backend {
    /// Bytes of the store on disk, if it is in a file.
    pub(crate) fn file_size(&self) -> u64 {
        let folder = self.folder.as_ref().unwrap();
        std::fs::metadata(folder.path().join("store.redb"))
            .unwrap()
            .len()
    }

    pub(crate) fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store)
    }
}

pub(crate) fn redb() -> Backend {
    redb_with(RedbOptions::default())
}

pub(crate) fn redb_with(options: RedbOptions) -> Backend {
    let folder = tempfile::tempdir().unwrap();
    let options = RedbOptions {
        watch_buffer: WATCH_BUFFER,
        ..options
    };
    let store = RedbStore::open(&folder.path().join("store.redb"), &options).unwrap();
    Backend {
        store: Arc::new(store),
        folder: Some(folder),
        _etcd: None,
    }
}

pub(crate) async fn etcd() -> Backend {
    let etcd = tokio::task::spawn_blocking(Etcd::start).await.unwrap();
    Backend {
        store: connect(&etcd).await,
        folder: None,
        _etcd: Some(etcd),
    }
}

/// One more server on the same etcd.
pub(crate) async fn connect(etcd: &Etcd) -> Arc<dyn Store> {
    let options = EtcdOptions {
        endpoints: vec![etcd.endpoint()],
        watch_buffer: WATCH_BUFFER,
        ..EtcdOptions::default()
    };
    Arc::new(EtcdStore::connect(&options).await.unwrap())
}

/// Commits and returns the revision.
pub(crate) async fn commit(store: &Arc<dyn Store>, txn: Txn) -> u64 {
    match store.txn(txn).await.unwrap() {
        Outcome::Committed { revision } => revision,
        conflict @ Outcome::Conflict { .. } => panic!("{conflict:?}"),
    }
}
