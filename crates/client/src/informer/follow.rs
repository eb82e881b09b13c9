//! From a watch into what a component keeps.

use std::future::Future;

use futures::StreamExt;
use kube::Api;
use kube::runtime::watcher::{Config, Event};
use serde::de::DeserializeOwned;

use crate::watching::watch;

/// What a component keeps of the objects of a kind.
pub trait Store<K> {
    /// What is kept of one object.
    type Kept;

    /// Reduces an object, as soon as it is read, to what is kept of it.
    fn reduce(&self, object: K) -> Self::Kept;

    /// The result of a list, first and whenever a watch cannot be continued: what was kept before
    /// and is missing does not exist any more.
    fn replace(&self, objects: Vec<Self::Kept>) -> impl Future<Output = ()> + Send;

    /// An object that is new or has changed.
    fn apply(&self, object: Self::Kept) -> impl Future<Output = ()> + Send;

    /// An object that does not exist any more, in its last state.
    fn delete(&self, object: K) -> impl Future<Output = ()> + Send;
}

/// Keeps a store up to date without end. Begun again, it lists again.
pub async fn follow<K, S>(api: Api<K>, config: Config, store: &S)
where
    K: kube::Resource + DeserializeOwned + Send + 'static,
    S: Store<K>,
{
    let mut events = std::pin::pin!(watch(api, config));
    let mut listed = Vec::new();
    while let Some(event) = events.next().await {
        match event {
            Event::Init => listed.clear(),
            Event::InitApply(object) => listed.push(store.reduce(object)),
            Event::InitDone => store.replace(std::mem::take(&mut listed)).await,
            Event::Apply(object) => store.apply(store.reduce(object)).await,
            Event::Delete(object) => store.delete(object).await,
        }
    }
}
