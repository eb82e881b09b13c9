//! Following the store.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use super::collection::{Collection, Loaded};
use super::object::Encoder;
use super::{Cache, ROOT};
use crate::store::{Change, Error, RangeRequest, Revision, Store, Watch, WatchRequest};
use plimsoll_client::supervision::survive_panics;

/// Objects that are read at once when everything is loaded.
const PAGE: usize = 2000;

/// How long to wait after the store failed.
const RETRY: Duration = Duration::from_millis(200);

/// How often an idle cache reads the store's revision: other writers may change keys that are not
/// followed.
const PROGRESS: Duration = Duration::from_secs(5);

/// How often changes that are too old are forgotten.
const TIDY: Duration = Duration::from_secs(10);

/// Loads everything, then keeps following in a task of its own. The task ends when the cache is
/// dropped or the store is closed. If it panics, it loads everything again.
pub(super) async fn start(cache: &Arc<Cache>, store: Arc<dyn Store>) -> Result<(), Error> {
    let mut first = Some(load(cache, store.as_ref()).await?);
    let cache = Arc::downgrade(cache);
    tokio::spawn(survive_panics("cache", move || {
        let (cache, store, watch) = (cache.clone(), Arc::clone(&store), first.take());
        async move {
            let watch = match watch {
                Some(watch) => Some(watch),
                None => reload(&cache, store.as_ref()).await,
            };
            if let Some(watch) = watch {
                follow(cache, store, watch).await;
            }
        }
    }));
    Ok(())
}

async fn follow(cache: Weak<Cache>, store: Arc<dyn Store>, mut watch: Watch) {
    let encoder = match store.has_one_writer() {
        true => Encoder::ThisProcess,
        false => Encoder::Unknown,
    };
    let mut tidied_at = Instant::now();
    loop {
        let error = loop {
            if tidied_at.elapsed() >= TIDY {
                tidied_at = Instant::now();
                let Some(cache) = cache.upgrade() else { return };
                for collection in cache.collections() {
                    collection.forget_old(tidied_at);
                }
            }
            match tokio::time::timeout(PROGRESS, watch.next_changes()).await {
                Ok(Ok((changes, revision))) => {
                    let Some(cache) = cache.upgrade() else { return };
                    apply(&cache, changes, encoder);
                    cache.publish(revision);
                }
                Ok(Err(error)) => break error,
                Err(_) => match store.current_revision().await {
                    Ok(current) => watch.request_progress(current),
                    Err(error) => break error,
                },
            }
        };
        if matches!(error, Error::Closed) {
            return;
        }
        tracing::warn!(
            error = &error as &dyn std::error::Error,
            "watch lost, relisting store"
        );
        match reload(&cache, store.as_ref()).await {
            Some(reloaded) => watch = reloaded,
            None => return,
        }
    }
}

/// Reloads as soon as the store can be read; `None` if it is closed or the cache dropped.
async fn reload(cache: &Weak<Cache>, store: &dyn Store) -> Option<Watch> {
    loop {
        tokio::time::sleep(RETRY).await;
        let cache = cache.upgrade()?;
        match load(&cache, store).await {
            Ok(watch) => return Some(watch),
            Err(Error::Closed) => return None,
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "failed to list store, retrying"
                );
            }
        }
    }
}

/// Applies changes, each kind's at once.
fn apply(cache: &Cache, changes: Vec<Change>, encoder: Encoder) {
    type Changes<'a> = (&'a Arc<Collection>, Vec<(Arc<str>, Change)>);
    let mut by_kind: BTreeMap<&str, Changes<'_>> = BTreeMap::new();
    for change in changes {
        if let Some((collection, key)) = place(cache, &change.key) {
            let slot = by_kind.entry(collection.prefix());
            let (_, changes) = slot.or_insert_with(|| (collection, Vec::new()));
            changes.push((key, change));
        }
    }
    let now = Instant::now();
    for (collection, changes) in by_kind.into_values() {
        collection.apply(changes, now, encoder);
    }
}

/// Reads everything at one revision and watches from there.
async fn load(cache: &Cache, store: &dyn Store) -> Result<Watch, Error> {
    let mut found: BTreeMap<&str, Loaded> = BTreeMap::new();
    let mut request = RangeRequest {
        limit: Some(PAGE),
        ..RangeRequest::prefix(ROOT)
    };
    let revision = loop {
        let page = store.range(request.clone()).await?;
        for entry in &page.entries {
            let Some((collection, key)) = place(cache, &entry.key) else {
                continue;
            };
            let loaded = found.entry(collection.prefix()).or_default();
            let revision = entry.mod_revision;
            match collection.read(Arc::clone(&key), entry) {
                Ok(object) => loaded.objects.push(Arc::new(object)),
                Err(_) => loaded.unreadable.push((key, revision)),
            }
        }
        match page.entries.last() {
            Some(last) if page.remaining > 0 => {
                let mut start = last.key.to_vec();
                start.push(0);
                request.start = Some(start.into());
                request.at = Some(page.revision);
            }
            _ => break page.revision,
        }
    };
    for collection in cache.collections() {
        let loaded = found.remove(collection.prefix()).unwrap_or_default();
        collection.load(loaded, revision);
    }
    cache.publish(revision);
    watch_after(store, revision).await
}

async fn watch_after(store: &dyn Store, revision: Revision) -> Result<Watch, Error> {
    let request = WatchRequest {
        prefix: ROOT.into(),
        after: revision,
        with_previous: false,
    };
    store.watch(request).await
}

/// The collection of a key, and the key within it. Other keys are ignored.
fn place<'a>(cache: &'a Cache, key: &[u8]) -> Option<(&'a Arc<Collection>, Arc<str>)> {
    let key = std::str::from_utf8(key).ok()?;
    let (collection, start) = cache.collection_of_key(key)?;
    Some((collection, key[start..].into()))
}
