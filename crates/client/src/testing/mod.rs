//! A small API server in memory, for tests of the loops.
//!
//! It keeps objects as JSON and implements what the loops rely on: resource versions and conflicts,
//! lists and watches, merge patches, subresources, finalizers, graceful deletion of pods,
//! discovery. It validates nothing.
//!
//! Reading order: `kinds`, `state` (objects and writes), `patch`, `service` (requests and answers),
//! `follower` (what every component that follows objects has to do).

mod follower;
mod kinds;
mod patch;
mod service;
mod state;
mod test_api;

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use kube::Client;
use plimsoll_core::object::timestamp::Timestamp;
use serde_json::Value;
use tokio::sync::watch;

use crate::clock::Clock;
use crate::informer::Key;

pub use follower::{Known, check_follows_pods};
use state::State;
pub use test_api::TestApi;

/// The API server; clones of the `Arc` share its objects.
pub struct Cluster {
    state: Mutex<State>,
    revision: watch::Sender<u64>,
    streams_lists: bool,
}

impl Cluster {
    /// An empty cluster.
    pub fn new() -> Arc<Cluster> {
        Cluster::build(true)
    }

    /// A cluster of the time before lists were streamed.
    pub fn without_streamed_lists() -> Arc<Cluster> {
        Cluster::build(false)
    }

    fn build(streams_lists: bool) -> Arc<Cluster> {
        Arc::new(Cluster {
            state: Mutex::default(),
            revision: watch::Sender::new(0),
            streams_lists,
        })
    }

    /// A client of this server.
    pub fn client(self: &Arc<Self>) -> Client {
        Client::new(service::Service(Arc::clone(self)), "default")
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn published<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state();
        let answer = change(&mut state);
        self.revision.send_replace(state.revision());
        answer
    }

    /// Stores an object as it is, new or in place of another; returns it with uid and version.
    pub fn put(&self, object: Value) -> Value {
        let kind = kinds::of_object(&object);
        self.published(|state| state.put(kind, object))
    }

    /// Changes an object in place.
    pub fn change(&self, plural: &str, key: &Key, change: impl FnOnce(&mut Value)) {
        let kind = kinds::of_plural(plural);
        let mut object = self.get(plural, key).expect("there is such an object");
        change(&mut object);
        self.published(|state| state.put(kind, object));
    }

    /// Removes an object at once.
    pub fn remove(&self, plural: &str, key: &Key) {
        self.published(|state| state.remove(kinds::of_plural(plural), key));
    }

    /// Forgets all changes so far. A watch that has not sent them ends, and has to begin with a list.
    pub fn compact(&self) {
        self.published(State::compact);
    }

    /// Deletes an object as a client would, with the propagation policy.
    pub fn delete(&self, plural: &str, key: &Key, policy: &str) {
        let options = serde_json::json!({"propagationPolicy": policy});
        let kind = kinds::of_plural(plural);
        let deleted = self.published(|state| state.delete(kind, key, &options));
        assert!(deleted.is_ok(), "{plural} {key} can be deleted");
    }

    /// An object as it is stored.
    pub fn get(&self, plural: &str, key: &Key) -> Option<Value> {
        self.state().get(kinds::of_plural(plural), key).cloned()
    }

    /// All objects of a kind.
    pub fn list(&self, plural: &str) -> Vec<Value> {
        let state = self.state();
        let objects = state.list(kinds::of_plural(plural), None);
        objects.cloned().collect()
    }

    /// Waits until `condition` holds, and fails when it does not within a minute.
    pub async fn eventually(&self, what: &str, condition: impl Fn(&Cluster) -> bool) {
        let mut revisions = self.revision.subscribe();
        let wait = async {
            while !condition(self) {
                revisions.changed().await.expect("the cluster lives");
            }
        };
        let in_time = tokio::time::timeout(Duration::from_secs(60), wait).await;
        assert!(in_time.is_ok(), "not within a minute: {what}");
    }
}

/// A line of a watch. Servers write the type first, and clients rely on it.
pub fn watch_line(kind: &str, object: &Value) -> String {
    format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n")
}

/// What virtual clocks show at first: the beginning of 2026.
pub const VIRTUAL_START: i64 = 1_767_225_600;

/// A clock that follows Tokio's, which tests can stop and which then runs as fast as it can.
pub fn virtual_clock() -> Clock {
    Clock::starting_at(Timestamp::from_secs(VIRTUAL_START))
}

/// As [`virtual_clock`], but one that is set: it is ahead by so many seconds, and measures on.
pub fn clock_that_is_set() -> (Arc<AtomicI64>, Clock) {
    let (ahead, even) = (Arc::new(AtomicI64::new(0)), virtual_clock());
    let (by, shown) = (Arc::clone(&ahead), even.clone());
    let now = move || {
        let by = by.load(Ordering::Relaxed).saturating_mul(1_000_000_000);
        Timestamp::from_nanos(shown.now().as_nanos().saturating_add(by))
    };
    (ahead, Clock::set_by_others(now, move || even.now()))
}

#[cfg(test)]
mod tests;

impl std::fmt::Debug for Cluster {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Cluster").finish_non_exhaustive()
    }
}
