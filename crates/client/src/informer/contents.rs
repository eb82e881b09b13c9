//! The objects of a kind and the ways to find them.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

use super::Key;

/// The objects of a kind, by key, by owner and by node. Every index holds exactly the keys of the
/// objects that belong there.
pub(super) struct Contents<K> {
    pub(super) objects: BTreeMap<Key, Arc<K>>,
    by_owner: Index,
    by_node: Index,
}

impl<K> Default for Contents<K> {
    fn default() -> Self {
        Contents {
            objects: BTreeMap::new(),
            by_owner: Index::default(),
            by_node: Index::default(),
        }
    }
}

impl<K: kube::Resource + 'static> Contents<K> {
    /// Stores an object; returns the one before.
    pub(super) fn insert(&mut self, key: Key, object: Arc<K>) -> Option<Arc<K>> {
        let before = self.remove(&key);
        for uid in owner_uids(&*object) {
            self.by_owner.insert(uid, &key);
        }
        if let Some(node) = node_name(&*object) {
            self.by_node.insert(node, &key);
        }
        self.objects.insert(key, object);
        before
    }

    pub(super) fn remove(&mut self, key: &Key) -> Option<Arc<K>> {
        let object = self.objects.remove(key)?;
        for uid in owner_uids(&*object) {
            self.by_owner.remove(uid, key);
        }
        if let Some(node) = node_name(&*object) {
            self.by_node.remove(node, key);
        }
        Some(object)
    }

    pub(super) fn owned_by(&self, uid: &str) -> Vec<Arc<K>> {
        self.found(self.by_owner.keys(uid))
    }

    pub(super) fn on_node(&self, node: &str) -> Vec<Arc<K>> {
        self.found(self.by_node.keys(node))
    }

    fn found<'a>(&self, keys: impl Iterator<Item = &'a Key>) -> Vec<Arc<K>> {
        keys.filter_map(|key| self.objects.get(key).cloned())
            .collect()
    }
}

fn owner_uids<K: kube::Resource>(object: &K) -> impl Iterator<Item = &str> {
    let owners = object.meta().owner_references.as_deref();
    owners.unwrap_or_default().iter().map(|o| o.uid.as_str())
}

fn node_name(object: &dyn Any) -> Option<&str> {
    let spec = object.downcast_ref::<Pod>()?.spec.as_ref()?;
    spec.node_name.as_deref().filter(|name| !name.is_empty())
}

/// Keys of objects by a value that they share.
#[derive(Default)]
struct Index(HashMap<String, BTreeSet<Key>>);

impl Index {
    fn insert(&mut self, value: &str, key: &Key) {
        match self.0.get_mut(value) {
            Some(keys) => {
                keys.insert(key.clone());
            }
            None => {
                let keys = BTreeSet::from([key.clone()]);
                self.0.insert(value.to_owned(), keys);
            }
        }
    }

    fn remove(&mut self, value: &str, key: &Key) {
        if let Some(keys) = self.0.get_mut(value) {
            keys.remove(key);
            if keys.is_empty() {
                self.0.remove(value);
            }
        }
    }

    fn keys(&self, value: &str) -> impl Iterator<Item = &Key> {
        self.0.get(value).into_iter().flatten()
    }
}
