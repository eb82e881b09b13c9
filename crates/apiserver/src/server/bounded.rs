//! The store as the server writes to it: every object to be stored passes this check, whichever
//! caller or request it comes from.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

use crate::bounds;
use crate::store::{
    Error, Found, Outcome, Page, RangeRequest, Revision, Snapshot, Store, Txn, Watch, WatchRequest,
    Write,
};

/// A store that rejects objects that clients could not decode. The store below limits sizes.
#[derive(Debug)]
pub(super) struct Bounded(Arc<dyn Store>);

impl Bounded {
    pub(super) fn new(store: Arc<dyn Store>) -> Bounded {
        Bounded(store)
    }
}

/// Rejects a value that is nested too deeply.
pub(super) fn check(key: &[u8], value: &[u8]) -> Result<(), Error> {
    bounds::check(value).map_err(|source| Error::TooDeep {
        key: String::from_utf8_lossy(key).into_owned(),
        source,
    })
}

#[async_trait]
impl Store for Bounded {
    async fn txn(&self, txn: Txn) -> Result<Outcome, Error> {
        for write in &txn.writes {
            if let Write::Put { key, value, .. } = write {
                check(key, value)?;
            }
        }
        self.0.txn(txn).await
    }

    async fn get(&self, key: &[u8], at: Option<Revision>) -> Result<Found, Error> {
        self.0.get(key, at).await
    }

    async fn range(&self, request: RangeRequest) -> Result<Page, Error> {
        self.0.range(request).await
    }

    async fn watch(&self, request: WatchRequest) -> Result<Watch, Error> {
        self.0.watch(request).await
    }

    fn has_one_writer(&self) -> bool {
        self.0.has_one_writer()
    }

    async fn compact(&self, revision: Revision) -> Result<(), Error> {
        self.0.compact(revision).await
    }

    async fn current_revision(&self) -> Result<Revision, Error> {
        self.0.current_revision().await
    }

    async fn ready(&self) -> Result<(), Error> {
        self.0.ready().await
    }

    fn checks(&self) -> Vec<(&'static str, bool)> {
        self.0.checks()
    }

    async fn snapshot(&self, prefix: Bytes) -> Result<Snapshot, Error> {
        self.0.snapshot(prefix).await
    }

    async fn is_stale(&self, key: &[u8]) -> Result<bool, Error> {
        self.0.is_stale(key).await
    }

    async fn close(&self) -> Result<(), Error> {
        self.0.close().await
    }
}
