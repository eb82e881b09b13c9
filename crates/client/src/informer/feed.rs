//! From the API into the cache.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use futures::{StreamExt, pin_mut};
use kube::Api;
use kube::runtime::watcher::{Config, Event};
use serde::de::DeserializeOwned;

use super::Key;
use super::shared::Shared;
use crate::watching::watch;

/// Keeps the cache up to date for ever.
pub(super) async fn feed<K>(api: Api<K>, shared: Arc<Shared<K>>)
where
    K: kube::Resource + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
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

/// Drops what no loop reads. Of objects that are watched for their metadata, labels and
/// annotations are not read either.
fn trim<K: kube::Resource>(object: &mut K) {
    let metadata = object.meta_mut();
    metadata.managed_fields = None;
    if K::metadata_api() {
        metadata.labels = None;
        metadata.annotations = None;
    }
}
