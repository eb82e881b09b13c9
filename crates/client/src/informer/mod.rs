//! Informers: a watch of a kind, and what a component keeps of its objects.
//!
//! [`follow`] keeps any [`Store`] up to date. Most components have one from here: they get from
//! [`Informers`] a cache of each kind they read, shared by all loops of a process, register for
//! changes, and read the objects from memory from then on. Objects are kept without
//! `managedFields`, which no loop reads and which are often half of an object. The watch ends when
//! the last loop drops it.
//!
//! Reading order: `follow` (from the API into a store), `key`, `contents` (objects and their
//! indexes), `shared` (handlers and their order), `registry` (one watch per kind).

mod contents;
mod follow;
mod key;
mod registry;
mod shared;

use std::fmt;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::Config;
use serde::de::DeserializeOwned;
use tokio::task::JoinHandle;

pub use follow::{Store, follow};
pub use key::Key;
pub use registry::{Informers, MetadataWatch};
pub use shared::{Change, Subscription};

use shared::{Feed, Shared};

use crate::supervision::survive_panics;

/// The metadata of kinds that are only known by discovery.
pub type Metadata = PartialObjectMeta;

/// The objects of a kind, kept up to date by a watch.
pub struct Informer<K> {
    shared: Arc<Shared<K>>,
    feed: JoinHandle<()>,
}

impl<K> fmt::Debug for Informer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Informer").finish_non_exhaustive()
    }
}

impl<K> Drop for Informer<K> {
    fn drop(&mut self) {
        self.feed.abort();
    }
}

impl<K> Informer<K>
where
    K: kube::Resource + Clone + DeserializeOwned + Send + Sync + 'static,
{
    /// Starts to follow the objects of `api`. `trim` drops what no reader needs of an object. Must be
    /// called within a Tokio runtime.
    pub fn start(api: Api<K>, trim: fn(&mut K)) -> Informer<K> {
        let shared: Arc<Shared<K>> = Arc::default();
        let feed = Arc::new(Feed {
            shared: Arc::clone(&shared),
            trim,
        });
        // Restarted, it lists again: subscribers are notified of the changes they missed.
        let feed = survive_panics("informer", move || {
            let (api, feed) = (api.clone(), Arc::clone(&feed));
            async move { follow(api, Config::default(), &*feed).await }
        });
        Informer {
            feed: tokio::spawn(feed),
            shared,
        }
    }
}

impl<K: kube::Resource + Send + Sync + 'static> Informer<K> {
    /// Waits until the cache holds the objects of the first list.
    pub async fn synced(&self) {
        self.shared.synced().await;
    }

    /// The object of that key.
    pub fn get(&self, key: &Key) -> Option<Arc<K>> {
        self.shared.contents().objects.get(key).cloned()
    }

    /// All objects, ordered by namespace and name.
    pub fn list(&self) -> Vec<Arc<K>> {
        self.shared.contents().objects.values().cloned().collect()
    }

    /// The objects of a namespace, ordered by name.
    pub fn in_namespace(&self, namespace: &str) -> Vec<Arc<K>> {
        let contents = self.shared.contents();
        let from = contents.objects.range(Key::new(namespace, "")..);
        let within = from.take_while(|(key, _)| key.namespace == namespace);
        within.map(|(_, object)| Arc::clone(object)).collect()
    }

    /// The objects that name the uid among their owners.
    pub fn owned_by(&self, uid: &str) -> Vec<Arc<K>> {
        self.shared.contents().owned_by(uid)
    }

    /// The pods that are bound to the node; other kinds are on none.
    pub fn on_node(&self, node: &str) -> Vec<Arc<K>> {
        self.shared.contents().on_node(node)
    }

    /// Has `handle` called for every change, first of all for every object there is already.
    ///
    /// It is called by the task that feeds the cache and must not wait; usually it adds a key to
    /// a queue. The calls end when the subscription is dropped.
    pub fn on_change(&self, handle: impl Fn(&Change<K>) + Send + Sync + 'static) -> Subscription {
        shared::subscribe(&self.shared, Box::new(handle))
    }
}

/// A change of which only the metadata is of interest.
#[derive(Clone, Copy, Debug)]
pub enum MetadataChange<'a> {
    /// The object is there, new or changed.
    Applied(&'a ObjectMeta),
    /// The object is gone.
    Deleted(&'a ObjectMeta),
}

#[cfg(test)]
mod tests;
