//! Answers with an expiry.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// A bounded map whose entries end by themselves.
#[derive(Debug)]
pub(super) struct Expiring<K, V> {
    entries: Mutex<HashMap<K, (Instant, V)>>,
    capacity: usize,
}

impl<K: Eq + Hash + Clone, V: Clone> Expiring<K, V> {
    pub(super) fn new(capacity: usize) -> Expiring<K, V> {
        Expiring {
            entries: Mutex::default(),
            capacity,
        }
    }

    pub(super) fn get(&self, key: &K, now: Instant) -> Option<V> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let (end, value) = entries.get(key)?;
        (now < *end).then(|| value.clone())
    }

    /// Keeps an answer. Without room, expired answers are dropped, then the next to expire.
    pub(super) fn put(&self, key: K, value: V, now: Instant, life: Duration) {
        if life.is_zero() {
            return;
        }
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() >= self.capacity && !entries.contains_key(&key) {
            entries.retain(|_, (end, _)| now < *end);
        }
        if entries.len() >= self.capacity && !entries.contains_key(&key) {
            let next = entries.iter().min_by_key(|(_, (end, _))| *end);
            if let Some(next) = next.map(|(key, _)| key.clone()) {
                entries.remove(&next);
            }
        }
        entries.insert(key, (now + life, value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_answer_expires() {
        let cache = Expiring::new(8);
        let now = Instant::now();
        cache.put("a", 1, now, Duration::from_secs(2));
        assert_eq!(cache.get(&"a", now + Duration::from_secs(1)), Some(1));
        assert_eq!(cache.get(&"a", now + Duration::from_secs(2)), None);
    }

    #[test]
    fn cache_never_exceeds_its_capacity() {
        let cache = Expiring::new(2);
        let now = Instant::now();
        cache.put("long", 1, now, Duration::from_secs(9));
        cache.put("short", 2, now, Duration::from_secs(1));
        cache.put("new", 3, now, Duration::from_secs(5));
        assert_eq!(cache.get(&"long", now), Some(1));
        assert_eq!(cache.get(&"short", now), None);
        assert_eq!(cache.get(&"new", now), Some(3));
    }
}
