//! Carrying out a controller's claims on objects.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Debug;
use std::sync::{Arc, PoisonError, RwLock};

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::Pod;
use kube::Resource;
use plimsoll_core::object::selector::LabelSelector;
use serde::de::DeserializeOwned;

use plimsoll_client::informer::{Change, Informer, Informers, Key, Subscription};

use super::ownership::{
    Claim, ControllerKind, adoption_patch, claim, controller_of, is_selected, release_patch,
};
use super::writes::{Writer, is_invalid, is_not_found, message_of};

/// A claim that could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// The controller is not what it was, so it must not adopt anything.
    #[error("cannot adopt {object}: {kind} {controller} is gone or being deleted")]
    Gone {
        /// The object that was to be adopted.
        object: Key,
        /// The kind of the controller.
        kind: &'static str,
        /// The controller.
        controller: Key,
    },
    /// A request failed.
    #[error("cannot claim {object}: {}", message_of(.source))]
    Request {
        /// The object.
        object: Key,
        /// Why.
        source: kube::Error,
    },
}

/// A controller that claims objects.
#[derive(Debug)]
pub struct Claimant<'a, O> {
    /// The controller as it was seen.
    pub controller: &'a O,
    /// Its kind.
    pub kind: ControllerKind,
    /// Its selector.
    pub selector: &'a LabelSelector,
    /// A finalizer that its objects carry.
    pub finalizer: Option<&'static str>,
    /// Writes for it.
    pub writer: &'a Writer,
}

impl<O> Claimant<'_, O>
where
    O: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    O: Clone + Debug + DeserializeOwned,
{
    /// Adopts and releases what is to be, and answers the objects that are the controller's.
    ///
    /// Before the first adoption the controller is read from the server: a cache that lags could
    /// make it adopt what was just orphaned by its deletion.
    pub async fn claim<K>(&self, objects: Vec<Arc<K>>) -> Result<Vec<Arc<K>>, ClaimError>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
        K: Clone + Debug + DeserializeOwned,
    {
        self.claim_those(objects, |_| true).await
    }

    /// As [`Claimant::claim`], of the objects that are also wanted for another reason than their
    /// labels; the others are released.
    pub async fn claim_those<K>(
        &self,
        objects: Vec<Arc<K>>,
        is_wanted: impl Fn(&K) -> bool,
    ) -> Result<Vec<Arc<K>>, ClaimError>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
        K: Clone + Debug + DeserializeOwned,
    {
        let owner = self.controller.meta();
        let mut own = Vec::with_capacity(objects.len());
        let mut first_error = None;
        let mut is_alive = None;
        for object in objects {
            let key = Key::of(object.meta());
            let uid = object.meta().uid.as_deref().unwrap_or_default();
            let matches = is_selected(self.selector, object.meta()) && is_wanted(&object);
            let result = match claim(owner, matches, object.meta()) {
                Claim::Ignore => continue,
                Claim::Own => {
                    own.push(object);
                    continue;
                }
                Claim::Adopt => {
                    if is_alive.is_none() {
                        is_alive = Some(self.is_alive(&key).await?);
                    }
                    if is_alive == Some(false) {
                        let (kind, controller) = (self.kind.kind, Key::of(owner));
                        first_error = Some(ClaimError::Gone {
                            object: key,
                            kind,
                            controller,
                        });
                        continue;
                    }
                    let patch = adoption_patch(owner, self.kind, uid, self.finalizer);
                    let adopted = self.writer.patch::<K>(&key, &patch).await;
                    adopted.map(|object| own.push(Arc::new(object)))
                }
                Claim::Release => {
                    let patch = release_patch(owner, uid, self.finalizer);
                    let released = self.writer.patch::<K>(&key, &patch).await;
                    match released {
                        // It has no such reference, or is another object of the same name.
                        Err(error) if is_invalid(&error) => Ok(()),
                        other => other.map(drop),
                    }
                }
            };
            match result {
                Err(error) if is_not_found(&error) => {}
                Err(source) => {
                    first_error = Some(ClaimError::Request {
                        object: key,
                        source,
                    })
                }
                Ok(()) => {}
            }
        }
        first_error.map_or(Ok(own), Err)
    }

    async fn is_alive(&self, object: &Key) -> Result<bool, ClaimError> {
        let key = Key::of(self.controller.meta());
        let found = self
            .writer
            .api::<O>(&key.namespace)
            .get_opt(&key.name)
            .await;
        let found = found.map_err(|source| ClaimError::Request {
            object: object.clone(),
            source,
        })?;
        Ok(found.is_some_and(|found| {
            let found = found.meta();
            found.uid == self.controller.meta().uid && found.deletion_timestamp.is_none()
        }))
    }
}

/// Pods by their controller, and pods without one.
pub struct PodIndex {
    pods: Arc<Informer<Pod>>,
    orphans: Arc<RwLock<Orphans>>,
    _subscription: Subscription,
}

/// Names of pods without a controller, by namespace.
type Orphans = HashMap<String, BTreeSet<String>>;

impl Debug for PodIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PodIndex").finish_non_exhaustive()
    }
}

impl PodIndex {
    /// Watches all pods.
    pub fn new(informers: &Informers) -> PodIndex {
        let pods = informers.of::<Pod>();
        let orphans = Arc::new(RwLock::new(Orphans::new()));
        let index = Arc::clone(&orphans);
        let subscription = pods.on_change(move |change| {
            let key = change.key();
            let is_there = !matches!(change, Change::Deleted(_));
            let is_orphan = is_there && controller_of(&change.object().metadata).is_none();
            let mut orphans = index.write().unwrap_or_else(PoisonError::into_inner);
            if is_orphan {
                orphans.entry(key.namespace).or_default().insert(key.name);
            } else if let Some(names) = orphans.get_mut(&key.namespace) {
                names.remove(&key.name);
                if names.is_empty() {
                    orphans.remove(&key.namespace);
                }
            }
        });
        PodIndex {
            pods,
            orphans,
            _subscription: subscription,
        }
    }

    /// The pods as they are watched.
    pub fn pods(&self) -> &Arc<Informer<Pod>> {
        &self.pods
    }

    /// The pods that the controller of that uid controls.
    pub fn controlled_by(&self, uid: &str) -> Vec<Arc<Pod>> {
        let mut pods = self.pods.owned_by(uid);
        pods.retain(|pod| controller_of(&pod.metadata).is_some_and(|c| c.uid == uid));
        pods
    }

    /// Those, and all pods of the namespace without a controller.
    pub fn claimable(&self, namespace: &str, uid: &str) -> Vec<Arc<Pod>> {
        let orphans = self.orphans.read().unwrap_or_else(PoisonError::into_inner);
        let names: Vec<String> = orphans
            .get(namespace)
            .into_iter()
            .flatten()
            .cloned()
            .collect();
        drop(orphans);
        let mut pods: BTreeMap<Key, Arc<Pod>> = BTreeMap::new();
        let orphans = names
            .into_iter()
            .filter_map(|name| self.pods.get(&Key::new(namespace, name)));
        for pod in self.controlled_by(uid).into_iter().chain(orphans) {
            pods.insert(Key::of(&pod.metadata), pod);
        }
        pods.into_values().collect()
    }
}
