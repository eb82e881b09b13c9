//! Writes that a controller has ordered and not yet seen in its watches.
//!
//! A watch lags behind the writes it reports. A controller that counted its pods right after it
//! created some would not see them and create them again. So it records how many creations and
//! which deletions it waits for, and plans nothing for that object until they are seen or five
//! minutes have passed. Matches v1.36 pkg/controller/controller_utils.go, `ControllerExpectations`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use plimsoll_client::informer::Key;

/// A watch that lost an event must not stop a controller without end.
pub const TIMEOUT: Duration = Duration::from_mins(5);

/// The expectations of one controller, by the object it works for.
#[derive(Debug, Default)]
pub struct Expectations {
    by_object: Mutex<BTreeMap<Key, Expected>>,
}

#[derive(Debug)]
struct Expected {
    creations: usize,
    /// Names of pods. A pod is seen to go twice, when its deletion begins and when it is over, and
    /// must be counted once.
    deletions: BTreeSet<String>,
    since: Instant,
}

/// What a controller orders.
#[derive(Clone, Copy, Debug)]
pub enum Order<'a> {
    /// A pod is made.
    Creation,
    /// The pod of that name is deleted.
    Deletion(&'a str),
}

impl Expected {
    fn none() -> Expected {
        Expected {
            creations: 0,
            deletions: BTreeSet::new(),
            since: Instant::now(),
        }
    }

    fn is_expired(&self) -> bool {
        self.since.elapsed() > TIMEOUT
    }
}

impl Expectations {
    /// No panic happens while the lock is held, so what a poisoned lock protects is sound.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Expected>> {
        self.by_object
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Records what is about to be ordered; older expectations of the object are dropped.
    pub fn expect(
        &self,
        object: &Key,
        creations: usize,
        deletions: impl IntoIterator<Item = String>,
    ) {
        let expected = Expected {
            creations,
            deletions: deletions.into_iter().collect(),
            since: Instant::now(),
        };
        self.lock().insert(object.clone(), expected);
    }

    /// Records one more order beside those that are waited for.
    pub fn expect_also(&self, object: &Key, order: Order<'_>) {
        let mut objects = self.lock();
        let expected = objects.entry(object.clone()).or_insert_with(Expected::none);
        if expected.is_expired() {
            *expected = Expected::none();
        }
        match order {
            Order::Creation => expected.creations += 1,
            Order::Deletion(pod) => {
                expected.deletions.insert(pod.to_owned());
            }
        }
        expected.since = Instant::now();
    }

    /// Whether everything ordered for the object was seen, or waited for long enough.
    pub fn are_met(&self, object: &Key) -> bool {
        self.lock().get(object).is_none_or(|expected| {
            expected.creations == 0 && expected.deletions.is_empty() || expected.is_expired()
        })
    }

    /// A pod of the object was seen, or will never be.
    pub fn created(&self, object: &Key, count: usize) {
        if let Some(expected) = self.lock().get_mut(object) {
            expected.creations = expected.creations.saturating_sub(count);
        }
    }

    /// The deletion of a pod of the object was seen, or will never be.
    pub fn deleted(&self, object: &Key, pod: &str) {
        if let Some(expected) = self.lock().get_mut(object) {
            expected.deletions.remove(pod);
        }
    }

    /// Forgets an object.
    pub fn forget(&self, object: &Key) {
        self.lock().remove(object);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> Key {
        Key::new("n", "a")
    }

    #[tokio::test]
    async fn expectations_wait_for_observed_writes() {
        let expectations = Expectations::default();
        assert!(expectations.are_met(&key()));
        expectations.expect(&key(), 2, []);
        expectations.created(&key(), 1);
        assert!(!expectations.are_met(&key()));
        expectations.created(&key(), 1);
        assert!(expectations.are_met(&key()));
    }

    #[tokio::test(start_paused = true)]
    async fn orders_add_up_until_they_expire() {
        let expectations = Expectations::default();
        expectations.expect_also(&key(), Order::Creation);
        expectations.expect_also(&key(), Order::Creation);
        expectations.expect_also(&key(), Order::Deletion("p"));
        expectations.created(&key(), 1);
        expectations.deleted(&key(), "p");
        assert!(!expectations.are_met(&key()));
        expectations.created(&key(), 1);
        assert!(expectations.are_met(&key()));
        expectations.expect_also(&key(), Order::Deletion("lost"));
        tokio::time::advance(Duration::from_secs(301)).await;
        expectations.expect_also(&key(), Order::Creation);
        expectations.created(&key(), 1);
        assert!(expectations.are_met(&key()));
    }

    #[tokio::test]
    async fn a_deletion_seen_twice_counts_once() {
        let expectations = Expectations::default();
        expectations.expect(&key(), 0, ["p".to_owned(), "q".to_owned()]);
        expectations.deleted(&key(), "p");
        expectations.deleted(&key(), "p");
        expectations.deleted(&key(), "other");
        assert!(!expectations.are_met(&key()));
        expectations.deleted(&key(), "q");
        assert!(expectations.are_met(&key()));
    }

    #[tokio::test(start_paused = true)]
    async fn expectations_expire_after_five_minutes() {
        let expectations = Expectations::default();
        expectations.expect(&key(), 1, []);
        tokio::time::advance(Duration::from_secs(300)).await;
        assert!(!expectations.are_met(&key()));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(expectations.are_met(&key()));
    }
}
