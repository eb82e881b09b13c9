//! A store that encrypts the values in the store below.

use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use bytes::Bytes;

use super::Keys;
use crate::store::{
    Error, Found, Outcome, Page, RangeRequest, Revision, Snapshot, Store, Txn, Watch, WatchRequest,
    Write,
};

/// A store on top of another one. Keys and revisions are those of the other.
#[derive(Debug)]
pub struct EncryptedStore {
    inner: Arc<dyn Store>,
    keys: Arc<RwLock<Arc<Keys>>>,
}

impl EncryptedStore {
    /// Encrypts what is written to `inner`, and decrypts what is read.
    pub fn new(inner: Arc<dyn Store>, keys: Keys) -> EncryptedStore {
        EncryptedStore {
            inner,
            keys: Arc::new(RwLock::new(Arc::new(keys))),
        }
    }

    /// Replaces the keys.
    pub(super) fn replace(&self, keys: Keys) {
        let mut place = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        *place = Arc::new(keys);
    }

    fn keys(&self) -> Arc<Keys> {
        current(&self.keys)
    }
}

fn current(keys: &RwLock<Arc<Keys>>) -> Arc<Keys> {
    Arc::clone(&keys.read().unwrap_or_else(PoisonError::into_inner))
}

#[async_trait]
impl Store for EncryptedStore {
    async fn get(&self, key: &[u8], at: Option<Revision>) -> Result<Found, Error> {
        let mut found = self.inner.get(key, at).await?;
        found.entry = found.entry.map(|entry| self.keys().open(entry));
        Ok(found)
    }

    async fn range(&self, request: RangeRequest) -> Result<Page, Error> {
        let mut page = self.inner.range(request).await?;
        let keys = self.keys();
        page.entries = page
            .entries
            .into_iter()
            .map(|entry| keys.open(entry))
            .collect();
        Ok(page)
    }

    async fn txn(&self, mut txn: Txn) -> Result<Outcome, Error> {
        let keys = self.keys();
        for write in &mut txn.writes {
            if let Write::Put { key, value, .. } = write {
                *value = keys
                    .encrypt(key, value)
                    .map_err(|problem| Error::Unreadable {
                        key: String::from_utf8_lossy(key).into_owned(),
                        problem: problem.into(),
                    })?;
            }
        }
        Ok(match self.inner.txn(txn).await? {
            Outcome::Conflict { key, current } => Outcome::Conflict {
                key,
                current: current.map(|entry| keys.open(entry)),
            },
            committed @ Outcome::Committed { .. } => committed,
        })
    }

    async fn watch(&self, request: WatchRequest) -> Result<Watch, Error> {
        let keys = Arc::clone(&self.keys);
        let watch = self.inner.watch(request).await?;
        Ok(watch.mapped(move |entry| current(&keys).open(entry)))
    }

    fn has_one_writer(&self) -> bool {
        self.inner.has_one_writer()
    }

    async fn compact(&self, revision: Revision) -> Result<(), Error> {
        self.inner.compact(revision).await
    }

    async fn current_revision(&self) -> Result<Revision, Error> {
        self.inner.current_revision().await
    }

    async fn ready(&self) -> Result<(), Error> {
        self.inner.ready().await
    }

    fn checks(&self) -> Vec<(&'static str, bool)> {
        self.inner.checks()
    }

    /// Values stay encrypted.
    async fn snapshot(&self, prefix: Bytes) -> Result<Snapshot, Error> {
        self.inner.snapshot(prefix).await
    }

    async fn is_stale(&self, key: &[u8]) -> Result<bool, Error> {
        let found = self.inner.get(key, None).await?;
        let keys = self.keys();
        Ok(found
            .entry
            .is_some_and(|entry| keys.is_stale(key, &entry.value)))
    }

    async fn close(&self) -> Result<(), Error> {
        self.inner.close().await
    }
}
