//! Pods in an order, found by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::facts::PodFacts;
use super::queued_pod::QueuedPod;
use crate::object::identity::PodRef;

/// Pods in the order of a key that differs for each of them.
#[derive(Clone, Debug)]
pub(super) struct Ordered<K> {
    key_of: fn(&QueuedPod) -> K,
    by_key: BTreeMap<K, QueuedPod>,
    keys: BTreeMap<PodRef, K>,
}

impl<K: Ord + Clone> Ordered<K> {
    pub(super) fn by(key_of: fn(&QueuedPod) -> K) -> Ordered<K> {
        Ordered {
            key_of,
            by_key: BTreeMap::new(),
            keys: BTreeMap::new(),
        }
    }

    /// Adds a pod in place of one of the same name.
    pub(super) fn insert(&mut self, queued: QueuedPod) {
        let (key, pod_ref) = ((self.key_of)(&queued), queued.pod.pod_ref.clone());
        if let Some(replaced) = self.keys.insert(pod_ref, key.clone()) {
            self.by_key.remove(&replaced);
        }
        self.by_key.insert(key, queued);
    }

    pub(super) fn remove(&mut self, pod_ref: &PodRef) -> Option<QueuedPod> {
        let key = self.keys.remove(pod_ref)?;
        self.by_key.remove(&key)
    }

    pub(super) fn pop_first(&mut self) -> Option<QueuedPod> {
        let (_, queued) = self.by_key.pop_first()?;
        self.keys.remove(&queued.pod.pod_ref);
        Some(queued)
    }

    pub(super) fn pop_first_if(&mut self, ready: impl Fn(&QueuedPod) -> bool) -> Option<QueuedPod> {
        let is_ready = self.first().is_some_and(ready);
        is_ready.then(|| self.pop_first()).flatten()
    }

    pub(super) fn first(&self) -> Option<&QueuedPod> {
        self.by_key.values().next()
    }

    pub(super) fn contains(&self, pod_ref: &PodRef) -> bool {
        self.keys.contains_key(pod_ref)
    }

    pub(super) fn get(&self, pod_ref: &PodRef) -> Option<&QueuedPod> {
        self.by_key.get(self.keys.get(pod_ref)?)
    }

    /// Puts another version of a pod in its place, if it is here.
    pub(super) fn update(&mut self, pod: &Arc<PodFacts>) {
        if let Some(mut queued) = self.remove(&pod.pod_ref) {
            queued.pod = Arc::clone(pod);
            self.insert(queued);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.by_key.len()
    }

    /// In order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &QueuedPod> {
        self.by_key.values()
    }
}
