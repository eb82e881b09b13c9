//! The watch cache: the latest state of all objects, in memory. Reads and watches are answered from
//! it.
//!
//! One task follows the store and applies every change, including those of other servers. Objects
//! are kept as the bytes that clients get; an event is encoded at most once however many clients
//! watch. A read that must see the latest write reads the store's revision and waits until the
//! cache has reached it.
//!
//! Reading order: `encoding` (of an object), `members` (changing an encoded
//! object), `object`, `extract` (what selectors
//! look at), `scan`, `collection` (the objects of a kind and their recent changes), `unreadable` (stored
//! bytes that are no object), `watcher`, `feed`.

mod check;
mod collection;
mod encoding;
mod event;
mod extract;
mod feed;
mod members;
mod object;
mod scan;
mod unreadable;
mod watcher;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

pub(crate) use check::check_stored;
pub use collection::{Collection, Expired};
pub use encoding::{encode, encode_with_revision};
pub(crate) use event::line;
pub use event::{Event, EventType};
pub(crate) use members::Members;
pub use object::Object;
pub(crate) use object::Unreadable;
pub(crate) use unreadable::{Finding, Findings};
pub use watcher::{Batch, Watcher};

use crate::kinds::{self, Kind};
use crate::store::{Error, Revision, Store};

/// The prefix of all keys, as upstream lays them out in etcd.
pub const ROOT: &str = "/registry/";

/// How long a reader waits for the cache to catch up before it gets an error.
const FRESHNESS_TIMEOUT: Duration = Duration::from_secs(3);

/// The latest state of all kinds.
#[derive(Debug)]
pub struct Cache {
    /// By the kind's part of the key.
    collections: BTreeMap<&'static str, Arc<Collection>>,
    /// How far the store has been followed; 0 before the first load.
    revision: watch::Sender<Revision>,
    findings: Arc<Findings>,
}

/// The cache has not reached the requested revision in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Too large resource version: {wanted}, current: {current}")]
pub struct TooLargeResourceVersion {
    /// The requested revision.
    pub wanted: Revision,
    /// The current revision of the cache.
    pub current: Revision,
}

impl Cache {
    /// An empty cache of all stored kinds.
    pub(crate) fn new() -> Cache {
        let findings = Arc::new(Findings::new());
        let mut collections = BTreeMap::new();
        for kind in kinds::all() {
            if let Some(storage) = kind.storage {
                let collection = || Arc::new(Collection::new(kind, Arc::clone(&findings)));
                collections.entry(storage).or_insert_with(collection);
            }
        }
        Cache {
            collections,
            revision: watch::Sender::new(0),
            findings,
        }
    }

    /// Loads everything and follows the store from then on, until the store is closed.
    pub async fn start(store: Arc<dyn Store>) -> Result<Arc<Cache>, Error> {
        let cache = Arc::new(Cache::new());
        feed::start(&cache, store).await?;
        Ok(cache)
    }

    /// The objects of a kind; `None` for kinds that are never stored.
    pub fn collection(&self, kind: &Kind) -> Option<&Arc<Collection>> {
        self.collections.get(kind.storage?)
    }

    /// The objects in a place of the store, which is the plural of most kinds. For the kinds that
    /// every request reads: nothing has to be found in the table of kinds.
    pub(crate) fn stored(&self, storage: &str) -> Option<&Arc<Collection>> {
        self.collections.get(storage)
    }

    /// What is stored and cannot be read, each once.
    pub(crate) fn findings(&self) -> &Arc<Findings> {
        &self.findings
    }

    /// All collections.
    pub fn collections(&self) -> impl Iterator<Item = &Arc<Collection>> {
        self.collections.values()
    }

    fn collection_of_key(&self, key: &str) -> Option<(&Arc<Collection>, usize)> {
        let path = key.strip_prefix(ROOT)?;
        // Some storage prefixes contain a slash: `services/specs`.
        let ends = path.match_indices('/').map(|(at, _)| at).take(2);
        ends.into_iter().find_map(|end| {
            let collection = self.collections.get(&path[..end])?;
            Some((collection, ROOT.len() + end + 1))
        })
    }

    /// The revision that the cache has reached.
    pub fn revision(&self) -> Revision {
        *self.revision.borrow()
    }

    /// Waits until the cache is at `wanted` or later; returns its revision.
    pub async fn wait_for(&self, wanted: Revision) -> Result<Revision, TooLargeResourceVersion> {
        let current = self.revision();
        if current >= wanted {
            return Ok(current);
        }
        let mut revision = self.revision.subscribe();
        let reached = revision.wait_for(|current| *current >= wanted);
        match tokio::time::timeout(FRESHNESS_TIMEOUT, reached).await {
            Ok(Ok(current)) => Ok(*current),
            _ => Err(TooLargeResourceVersion {
                wanted,
                current: self.revision(),
            }),
        }
    }

    fn publish(&self, revision: Revision) {
        self.revision.send_if_modified(|current| {
            let is_later = revision > *current;
            *current = revision.max(*current);
            is_later
        });
    }
}
