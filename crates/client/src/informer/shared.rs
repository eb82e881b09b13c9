//! The cache as its feed and its readers share it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, Weak};

use tokio::sync::watch;

use super::contents::Contents;
use super::{Key, Store};

/// What happened to an object.
#[derive(Debug)]
pub enum Change<K> {
    /// It was not known before.
    Added(Arc<K>),
    /// It is another than before.
    Updated {
        /// As it was.
        before: Arc<K>,
        /// As it is.
        after: Arc<K>,
    },
    /// It is gone; this is the last that is known of it.
    Deleted(Arc<K>),
}

impl<K> Change<K> {
    /// The object as it is, or was last.
    pub fn object(&self) -> &Arc<K> {
        match self {
            Change::Added(object) | Change::Deleted(object) => object,
            Change::Updated { after, .. } => after,
        }
    }
}

impl<K: kube::Resource> Change<K> {
    /// The key of the object.
    pub fn key(&self) -> Key {
        Key::of(self.object().meta())
    }
}

pub(super) type Handler<K> = Box<dyn Fn(&Change<K>) + Send + Sync>;

/// Ends the calls to a handler when it is dropped.
#[must_use = "the handler is called only as long as this lives"]
pub struct Subscription {
    end: Option<Box<dyn FnOnce() + Send + Sync>>,
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription").finish_non_exhaustive()
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(end) = self.end.take() {
            end();
        }
    }
}

pub(super) struct Shared<K> {
    contents: RwLock<Contents<K>>,
    /// Locked for as long as a change is applied and handlers are notified, so that every handler
    /// sees every change once and in order. Always taken before `contents`.
    handlers: Mutex<Handlers<K>>,
    synced: watch::Sender<bool>,
}

struct Handlers<K> {
    by_id: BTreeMap<u64, Handler<K>>,
    next_id: u64,
}

impl<K> Default for Shared<K> {
    fn default() -> Self {
        Shared {
            contents: RwLock::default(),
            handlers: Mutex::new(Handlers {
                by_id: BTreeMap::new(),
                next_id: 0,
            }),
            synced: watch::Sender::new(false),
        }
    }
}

impl<K> Handlers<K> {
    fn notify(&self, change: &Change<K>) {
        for handle in self.by_id.values() {
            handle(change);
        }
    }
}

/// Notifies `handle` of all objects there are, and registers it for changes.
pub(super) fn subscribe<K: kube::Resource + Send + Sync + 'static>(
    shared: &Arc<Shared<K>>,
    handle: Handler<K>,
) -> Subscription {
    let mut handlers = shared.lock_handlers();
    let known: Vec<Arc<K>> = shared.contents().objects.values().cloned().collect();
    for object in known {
        handle(&Change::Added(object));
    }
    let id = handlers.next_id;
    handlers.next_id += 1;
    handlers.by_id.insert(id, handle);
    let weak: Weak<Shared<K>> = Arc::downgrade(shared);
    Subscription {
        end: Some(Box::new(move || {
            if let Some(shared) = weak.upgrade() {
                shared.lock_handlers().by_id.remove(&id);
            }
        })),
    }
}

impl<K> Shared<K> {
    fn lock_handlers(&self) -> std::sync::MutexGuard<'_, Handlers<K>> {
        // A handler that panics ends the feed's task; the map of handlers is sound.
        self.handlers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn contents(&self) -> RwLockReadGuard<'_, Contents<K>> {
        self.contents.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) async fn synced(&self) {
        let mut synced = self.synced.subscribe();
        // The sender lives in `self`, so it cannot be gone.
        let _ = synced.wait_for(|synced| *synced).await;
    }
}

/// The cache as the watch feeds it.
pub(super) struct Feed<K> {
    pub(super) shared: Arc<Shared<K>>,
    /// Drops what no reader needs of an object.
    pub(super) trim: fn(&mut K),
}

impl<K: kube::Resource + Send + Sync + 'static> Store<K> for Feed<K> {
    type Kept = K;

    fn reduce(&self, mut object: K) -> K {
        (self.trim)(&mut object);
        object
    }

    async fn replace(&self, objects: Vec<K>) {
        let objects = objects.into_iter();
        let objects = objects.map(|object| (Key::of(object.meta()), object));
        self.shared.replace(objects.collect());
    }

    async fn apply(&self, object: K) {
        self.shared.apply(object);
    }

    async fn delete(&self, object: K) {
        self.shared.delete(self.reduce(object));
    }
}

impl<K: kube::Resource + 'static> Shared<K> {
    /// Takes in an object that the watch reports.
    pub(super) fn apply(&self, object: K) {
        let handlers = self.lock_handlers();
        self.apply_one(&handlers, Key::of(object.meta()), Arc::new(object));
    }

    pub(super) fn delete(&self, object: K) {
        let handlers = self.lock_handlers();
        let removed = self.write().remove(&Key::of(object.meta()));
        if removed.is_some() {
            handlers.notify(&Change::Deleted(Arc::new(object)));
        }
    }

    /// Takes in the result of a list: objects missing from it are gone.
    pub(super) fn replace(&self, objects: BTreeMap<Key, K>) {
        let handlers = self.lock_handlers();
        let contents = self.contents();
        let known = contents.objects.keys();
        let gone: Vec<Key> = known
            .filter(|key| !objects.contains_key(key))
            .cloned()
            .collect();
        drop(contents);
        for key in gone {
            let removed = self.write().remove(&key);
            if let Some(object) = removed {
                handlers.notify(&Change::Deleted(object));
            }
        }
        for (key, object) in objects {
            self.apply_one(&handlers, key, Arc::new(object));
        }
        drop(handlers);
        self.synced.send_replace(true);
    }

    fn apply_one(&self, handlers: &Handlers<K>, key: Key, object: Arc<K>) {
        let known = self.contents().objects.get(&key).cloned();
        if let Some(before) = known {
            if is_same_version(&*before, &*object) {
                return;
            }
            // A deletion and a creation that the watch missed are still two changes.
            if before.meta().uid != object.meta().uid {
                self.write().remove(&key);
                handlers.notify(&Change::Deleted(before));
            }
        }
        let before = self.write().insert(key, Arc::clone(&object));
        handlers.notify(&match before {
            Some(before) => Change::Updated {
                before,
                after: object,
            },
            None => Change::Added(object),
        });
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, Contents<K>> {
        let guard = self.contents.write();
        guard.unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_same_version<K: kube::Resource>(a: &K, b: &K) -> bool {
    let (a, b) = (a.meta(), b.meta());
    a.uid == b.uid && a.resource_version.is_some() && a.resource_version == b.resource_version
}
