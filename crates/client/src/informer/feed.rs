//! From the API into the cache.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::{StreamExt, pin_mut};
use kube::Api;
use kube::runtime::watcher::{Config, Event};
use serde::de::DeserializeOwned;

use super::Key;
use super::shared::Shared;
use crate::watching::watch;

/// Keeps the cache up to date without end.
pub(super) async fn feed<K>(api: Api<K>, shared: Arc<Shared<K>>)
where
    K: kube::Resource + DeserializeOwned + Send + Sync + 'static,
{
    let events = watch(api, Config::default());
    pin_mut!(events);
    let mut first: BTreeMap<Key, K> = BTreeMap::new();
    while let Some(event) = events.next().await {
        match event {
            Event::Init => first.clear(),
            Event::InitApply(mut object) => {
                trim(&mut object);
                first.insert(Key::of(object.meta()), object);
            }
            Event::InitDone => shared.replace(std::mem::take(&mut first)),
            Event::Apply(mut object) => {
                trim(&mut object);
                shared.apply(object);
            }
            Event::Delete(mut object) => {
                trim(&mut object);
                shared.delete(object);
            }
        }
    }
}

/// Drops labels and annotations of objects that are watched for their metadata: no loop reads them.
fn trim<K: kube::Resource>(object: &mut K) {
    if K::metadata_api() {
        let metadata = object.meta_mut();
        metadata.labels = None;
        metadata.annotations = None;
    }
}
