//! The objects of a kind that a watch has reported, across lists that start again.

use std::collections::BTreeMap;

/// Objects by key.
#[derive(Debug)]
pub(super) struct Store<K, V> {
    objects: BTreeMap<K, (u64, V)>,
    /// Counts the lists, so that objects missing from the last one can be found.
    list: u64,
    is_listed: bool,
}

impl<K: Ord + Clone, V> Store<K, V> {
    pub(super) fn new() -> Store<K, V> {
        Store {
            objects: BTreeMap::new(),
            list: 0,
            is_listed: false,
        }
    }

    /// Whether all objects have been seen at least once.
    pub(super) fn is_listed(&self) -> bool {
        self.is_listed
    }

    /// A list begins.
    pub(super) fn begin_list(&mut self) {
        self.list += 1;
    }

    /// A list ends; returns the keys of objects that were not in it, which are still kept.
    pub(super) fn end_list(&mut self) -> Vec<K> {
        self.is_listed = true;
        let objects = self.objects.iter();
        let stale = objects.filter(|(_, (list, _))| *list != self.list);
        stale.map(|(key, _)| key.clone()).collect()
    }

    /// Keeps an object, and returns what it was.
    pub(super) fn insert(&mut self, key: K, object: V) -> Option<V> {
        let old = self.objects.insert(key, (self.list, object));
        old.map(|(_, object)| object)
    }

    pub(super) fn remove(&mut self, key: &K) -> Option<V> {
        self.objects.remove(key).map(|(_, object)| object)
    }

    pub(super) fn get(&self, key: &K) -> Option<&V> {
        self.objects.get(key).map(|(_, object)| object)
    }

    pub(super) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.objects.get_mut(key).map(|(_, object)| object)
    }

    #[cfg(test)]
    pub(super) fn values(&self) -> impl Iterator<Item = &V> {
        self.objects.values().map(|(_, object)| object)
    }

    pub(super) fn len(&self) -> usize {
        self.objects.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_missing_from_new_list_are_reported() {
        let mut store = Store::new();
        store.begin_list();
        store.insert("a", 1);
        store.insert("b", 2);
        assert!(!store.is_listed());
        assert!(store.end_list().is_empty());
        store.insert("c", 3);
        store.begin_list();
        assert_eq!(store.insert("b", 4), Some(2));
        assert_eq!(store.end_list(), ["a", "c"]);
        assert!(store.is_listed());
        assert_eq!(store.remove(&"a"), Some(1));
        assert_eq!((store.len(), store.get(&"b")), (2, Some(&4)));
    }
}
