//! One watch per kind.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt::{self, Debug};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use futures::future::BoxFuture;
use kube::core::ApiResource;
use kube::{Api, Client};
use serde::de::DeserializeOwned;

use super::{Change, Informer, Metadata, MetadataChange, Subscription};

/// The watch caches of a process. Must be used within a Tokio runtime.
pub struct Informers {
    client: Client,
    /// By the URL of the collection and by which part of the objects is read.
    known: Mutex<HashMap<(String, TypeId), Weak<dyn Watched>>>,
}

impl fmt::Debug for Informers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Informers").finish_non_exhaustive()
    }
}

/// An informer of any kind.
trait Watched: Send + Sync {
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;

    fn watch_metadata(self: Arc<Self>, handle: MetadataHandler) -> MetadataWatch;
}

type MetadataHandler = Box<dyn Fn(MetadataChange<'_>) + Send + Sync>;

/// Changes of the metadata of a kind, reported for as long as this lives.
pub struct MetadataWatch {
    informer: Arc<dyn Synced>,
    _subscription: Subscription,
}

impl fmt::Debug for MetadataWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MetadataWatch").finish_non_exhaustive()
    }
}

impl MetadataWatch {
    /// Waits until all objects of the first list have been reported.
    pub async fn synced(&self) {
        self.informer.synced().await;
    }
}

trait Synced: Send + Sync {
    fn synced(&self) -> BoxFuture<'_, ()>;
}

impl<K: kube::Resource + Send + Sync + 'static> Synced for Informer<K> {
    fn synced(&self) -> BoxFuture<'_, ()> {
        Box::pin(Informer::synced(self))
    }
}

impl<K: kube::Resource + Send + Sync + 'static> Watched for Informer<K> {
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }

    fn watch_metadata(self: Arc<Self>, handle: MetadataHandler) -> MetadataWatch {
        let subscription = self.on_change(move |change| match change {
            Change::Deleted(object) => handle(MetadataChange::Deleted(object.meta())),
            change => handle(MetadataChange::Applied(change.object().meta())),
        });
        MetadataWatch {
            informer: self,
            _subscription: subscription,
        }
    }
}

impl Informers {
    /// No caches yet; they start when they are first used.
    pub fn new(client: Client) -> Arc<Informers> {
        Arc::new(Informers {
            client,
            known: Mutex::default(),
        })
    }

    /// The client that the caches read with.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The cache of a kind, in all namespaces.
    pub fn of<K>(&self) -> Arc<Informer<K>>
    where
        K: kube::Resource<DynamicType = ()>,
        K: Clone + Debug + DeserializeOwned + Send + Sync + 'static,
    {
        self.informer::<K>(&())
    }

    /// The metadata of a kind that is only known by discovery, without labels and annotations.
    pub fn metadata_of(&self, resource: &ApiResource) -> Arc<Informer<Metadata>> {
        self.informer::<Metadata>(resource)
    }

    /// Has `handle` called for every change of the metadata of a kind.
    ///
    /// A cache of the whole objects, if there is one already, serves this too.
    pub fn watch_metadata(
        &self,
        resource: &ApiResource,
        handle: impl Fn(MetadataChange<'_>) + Send + Sync + 'static,
    ) -> MetadataWatch {
        let path = <Metadata as kube::Resource>::url_path(resource, None);
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut of_this_kind = known.iter().filter(|((known, _), _)| *known == path);
        let informer = of_this_kind.find_map(|(_, informer)| informer.upgrade());
        drop(known);
        let informer = informer.unwrap_or_else(|| self.metadata_of(resource));
        informer.watch_metadata(Box::new(handle))
    }

    fn informer<K>(&self, resource: &K::DynamicType) -> Arc<Informer<K>>
    where
        K: kube::Resource + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
    {
        let entry = (K::url_path(resource, None), TypeId::of::<K>());
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(informer) = known.get(&entry).and_then(Weak::upgrade) {
            let informer = informer.into_any().downcast::<Informer<K>>();
            return informer.expect("an informer is registered under its own type");
        }
        let api = Api::all_with(self.client.clone(), resource);
        let informer = Arc::new(Informer::start(api, trim::<K>));
        known.retain(|_, informer| informer.strong_count() > 0);
        let weak: Weak<Informer<K>> = Arc::downgrade(&informer);
        known.insert(entry, weak);
        informer
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
