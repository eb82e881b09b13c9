//! A cache of bounded size that drops the least recently used entry.

use std::collections::BTreeMap;

/// Values by key; beyond the capacity the least recently used one is dropped.
#[derive(Clone, Debug)]
pub(super) struct LruCache<K, V> {
    capacity: usize,
    values: BTreeMap<K, (u64, V)>,
    by_use: BTreeMap<u64, K>,
    uses: u64,
}

impl<K: Ord + Clone, V> LruCache<K, V> {
    pub(super) fn new(capacity: usize) -> LruCache<K, V> {
        LruCache {
            capacity,
            values: BTreeMap::new(),
            by_use: BTreeMap::new(),
            uses: 0,
        }
    }

    /// The value of a key, which counts as a use.
    pub(super) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let (used, value) = self.values.get_mut(key)?;
        let known = self.by_use.remove(used)?;
        self.uses += 1;
        *used = self.uses;
        self.by_use.insert(self.uses, known);
        Some(value)
    }

    /// Sets a value, and returns the one that was dropped for it.
    pub(super) fn insert(&mut self, key: K, value: V) -> Option<V> {
        self.remove(&key);
        let forgotten = if self.values.len() >= self.capacity {
            let oldest = self.by_use.pop_first().map(|(_, key)| key);
            oldest.and_then(|key| self.values.remove(&key))
        } else {
            None
        };
        self.uses += 1;
        self.by_use.insert(self.uses, key.clone());
        self.values.insert(key, (self.uses, value));
        forgotten.map(|(_, value)| value)
    }

    pub(super) fn remove(&mut self, key: &K) -> Option<V> {
        let (used, value) = self.values.remove(key)?;
        self.by_use.remove(&used);
        Some(value)
    }

    /// All of them, in the order of their keys; not a use.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.values.iter().map(|(key, (_, value))| (key, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn least_recently_used_entry_is_dropped() {
        let mut lru_cache = LruCache::new(2);
        assert_eq!(lru_cache.insert("a", 1), None);
        assert_eq!(lru_cache.insert("b", 2), None);
        assert_eq!(lru_cache.get_mut(&"a"), Some(&mut 1));
        assert_eq!(lru_cache.insert("c", 3), Some(2));
        assert_eq!(lru_cache.insert("a", 4), None);
        assert_eq!(
            lru_cache.iter().collect::<Vec<_>>(),
            [(&"a", &4), (&"c", &3)]
        );
        assert_eq!(lru_cache.by_use.len(), 2);
    }
}
