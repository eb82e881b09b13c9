//! From the API into the cache.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use futures::{StreamExt, pin_mut};
use kube::Api;
use kube::runtime::watcher::{self, Config, Error, Event, watcher};
use kube::runtime::{WatchStreamExt, watcher::InitialListStrategy};
use serde::de::DeserializeOwned;

use super::Key;
use super::shared::Shared;

/// Keeps the cache up to date for ever.
///
/// The first contents are streamed, which neither side has to hold as one list. A server that
/// refuses to, or never ends the stream of first contents, is listed page by page instead.
pub(super) async fn feed<K>(api: Api<K>, shared: Arc<Shared<K>>)
where
    K: kube::Resource + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    let mut strategy = InitialListStrategy::StreamingList;
    loop {
        let config = Config {
            initial_list_strategy: strategy,
            ..Config::default()
        };
        watch(api.clone(), config, &shared).await;
        strategy = InitialListStrategy::ListWatch;
    }
}

/// Follows a watch; returns when its way of getting the first contents does not work.
async fn watch<K>(api: Api<K>, config: Config, shared: &Shared<K>)
where
    K: kube::Resource + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    let is_streaming = config.initial_list_strategy == InitialListStrategy::StreamingList;
    let events = watcher(api, config).default_backoff();
    pin_mut!(events);
    let mut first: Option<BTreeMap<Key, K>> = None;
    let mut has_listed = false;
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => {
                let ended_early = first.replace(BTreeMap::new()).is_some();
                if ended_early && is_streaming && !has_listed {
                    return;
                }
            }
            Ok(Event::InitApply(mut object)) => {
                trim(&mut object);
                if let Some(first) = &mut first {
                    first.insert(Key::of(object.meta()), object);
                }
            }
            Ok(Event::InitDone) => {
                has_listed = true;
                shared.replace(first.take().unwrap_or_default());
            }
            Ok(Event::Apply(mut object)) => {
                trim(&mut object);
                shared.apply(object);
            }
            Ok(Event::Delete(mut object)) => {
                trim(&mut object);
                shared.delete(object);
            }
            Err(error) => {
                tracing::debug!(%error, "watch interrupted");
                if is_streaming && !has_listed && is_refusal(&error) {
                    return;
                }
            }
        }
    }
}

/// Whether the server answered, and said no.
fn is_refusal(error: &watcher::Error) -> bool {
    match error {
        Error::WatchError(_) => true,
        Error::WatchStartFailed(error) | Error::WatchFailed(error) => {
            matches!(error, kube::Error::Api(_))
        }
        Error::InitialListFailed(_) | Error::NoResourceVersion => false,
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
