//! The objects of one kind, and their recent changes.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::event::Event;
use super::extract::SelectorPaths;
use super::object::{Encoder, Object, Unreadable};
use super::unreadable::Findings;
use super::{ROOT, watcher::Watcher};
use crate::kinds::Kind;
use crate::store::{Change, Entry, Revision};

/// Changes that are kept for watchers that start late or read slowly.
const MAX_EVENTS: usize = 65_536;

/// How long they are kept: as long as the store keeps its history. Later watchers list first.
const KEPT_FOR: Duration = Duration::from_secs(5 * 60);

/// Bytes that are kept for them: superseded objects, and the lines that watchers get. The latest
/// changes are kept in any case, so that a list can be followed by a watch.
const MAX_EVENT_BYTES: usize = 48 * 1024 * 1024;
const MIN_EVENTS: usize = 128;

/// The objects of one kind.
#[derive(Debug)]
pub struct Collection {
    kind: &'static Kind,
    /// `/registry/<storage>/`.
    prefix: String,
    wanted: SelectorPaths,
    state: RwLock<State>,
    /// Incremented by every change, also of an undecodable object, for watchers to wait on.
    changes: watch::Sender<u64>,
    /// How often stored bytes could not be decoded.
    decode_errors: AtomicU64,
    findings: Arc<Findings>,
}

#[derive(Debug, Default)]
struct State {
    objects: BTreeMap<Arc<str>, Arc<Object>>,
    /// Stored objects that cannot be decoded. Lists and watches leave them out.
    unreadable: BTreeMap<Arc<str>, Revision>,
    events: VecDeque<Arc<Event>>,
    /// Number of the first event in `events`, counted from the start of the process.
    first: u64,
    /// Changes after this revision are all in `events`.
    complete_after: Revision,
    event_bytes: usize,
}

/// The stored objects of a kind.
#[derive(Debug, Default)]
pub(super) struct Loaded {
    pub(super) objects: Vec<Arc<Object>>,
    pub(super) unreadable: Vec<(Arc<str>, Revision)>,
}

/// A watch starts before the oldest kept change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too old resource version: {requested} ({oldest})")]
pub struct Expired {
    /// The requested revision.
    pub requested: Revision,
    /// The oldest revision that can be requested.
    pub oldest: Revision,
}

impl Collection {
    pub(super) fn new(kind: &'static Kind, findings: Arc<Findings>) -> Collection {
        let storage = kind.storage.expect("only stored kinds have a collection");
        Collection {
            kind,
            prefix: format!("{ROOT}{storage}/"),
            wanted: SelectorPaths::of_storage(storage),
            state: RwLock::default(),
            changes: watch::Sender::new(0),
            decode_errors: AtomicU64::new(0),
            findings,
        }
    }

    /// The kind, in the encoding that is stored.
    pub fn kind(&self) -> &'static Kind {
        self.kind
    }

    /// The beginning of its keys in the store.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Reads what the store has under a key of this kind. What cannot be read is named in the log
    /// and counted, each time, and recorded for an event.
    pub(crate) fn read(&self, key: Arc<str>, entry: &Entry) -> Result<Object, Unreadable> {
        self.read_from(Encoder::Unknown, key, entry)
    }

    fn read_from(
        &self,
        encoder: Encoder,
        key: Arc<str>,
        entry: &Entry,
    ) -> Result<Object, Unreadable> {
        let revision = entry.mod_revision;
        let object = match &entry.unreadable {
            Some(problem) => Err(Unreadable::Stored(Arc::clone(problem))),
            None => {
                let key = Arc::clone(&key);
                Object::read(key, revision, &entry.value, &self.wanted, encoder)
            }
        };
        if let Err(error) = &object {
            self.decode_errors.fetch_add(1, Ordering::Relaxed);
            self.findings.note(self.kind, &key, error);
            let key = format!("{}{key}", self.prefix);
            tracing::error!(key, revision, %error, "ignoring stored object that cannot be decoded");
        }
        object
    }

    /// How often stored bytes could not be decoded.
    pub(crate) fn decode_errors(&self) -> u64 {
        self.decode_errors.load(Ordering::Relaxed)
    }

    fn state(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn state_mut(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// One object by `namespace/name` or name.
    pub fn get(&self, key: &str) -> Option<Arc<Object>> {
        self.state().objects.get(key).cloned()
    }

    /// The revision of a stored object that cannot be decoded.
    pub fn unreadable(&self, key: &str) -> Option<Revision> {
        self.state().unreadable.get(key).copied()
    }

    /// The stored objects under `prefix` that cannot be decoded.
    pub fn unreadable_keys(&self, prefix: &str) -> Vec<Arc<str>> {
        let state = self.state();
        let keys = state.unreadable.keys();
        keys.filter(|key| key.starts_with(prefix))
            .cloned()
            .collect()
    }

    /// The objects whose keys begin with `prefix` (`namespace/`, or nothing for all), from `start`
    /// on, in the order of keys.
    pub fn list(&self, prefix: &str, start: Option<&str>) -> Vec<Arc<Object>> {
        self.state().list(prefix, start)
    }

    /// The objects as [`Self::list`] gives them, and a revision at which this is exactly what was
    /// there; at least `reached`, which the caller has waited for.
    pub fn list_at(&self, prefix: &str, reached: Revision) -> (Vec<Arc<Object>>, Revision) {
        let state = self.state();
        let revision = state.last_revision().max(reached);
        (state.list(prefix, None), revision)
    }

    /// Changes whenever an object does.
    pub fn version(&self) -> u64 {
        *self.changes.borrow()
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.state().objects.len()
    }

    /// Whether there are no objects.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Replaces everything: the first load, or a load after the feed was interrupted. Watchers that
    /// were following have lost their position and get an error.
    pub(super) fn load(&self, loaded: Loaded, revision: Revision) {
        let mut state = self.state_mut();
        let objects = loaded.objects.into_iter();
        state.objects = objects.map(|o| (Arc::clone(o.key()), o)).collect();
        state.unreadable = loaded.unreadable.into_iter().collect();
        // A gap in the numbers: no watcher can continue across it.
        state.first = state.next() + 1;
        state.events.clear();
        state.event_bytes = 0;
        state.complete_after = revision;
        drop(state);
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// Applies changes in order. An object that can no longer be decoded counts as deleted: this is
    /// the state that a new server would load, and a role that cannot be decoded grants nothing.
    pub(super) fn apply(&self, changes: Vec<(Arc<str>, Change)>, now: Instant, encoder: Encoder) {
        let changes = changes.into_iter().map(|(key, change)| {
            let revision = change.revision;
            let read = match change.entry {
                Some(entry) => self
                    .read_from(encoder, Arc::clone(&key), &entry)
                    .map(|object| Some(Arc::new(object))),
                None => Ok(None),
            };
            (key, revision, read)
        });
        let changes: Vec<_> = changes.collect();
        let mut state = self.state_mut();
        for (key, revision, read) in changes {
            match read {
                Ok(object) => {
                    state.unreadable.remove(&key);
                    state.apply(key, revision, object, now);
                }
                Err(_) => {
                    state.unreadable.insert(Arc::clone(&key), revision);
                    state.apply(key, revision, None, now);
                }
            }
        }
        drop(state);
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// Forgets changes that no watcher has read in time.
    pub(super) fn forget_old(&self, now: Instant) {
        // Most of the time there are none, and readers should not wait for this.
        if self.state().has_old(now) {
            self.state_mut().forget_old(now);
        }
    }

    /// Follows changes after `revision`.
    pub fn watch_after(self: &Arc<Self>, revision: Revision) -> Result<Watcher, Expired> {
        let changes = self.changes.subscribe();
        let state = self.state();
        if revision < state.complete_after {
            return Err(Expired {
                requested: revision,
                oldest: state.complete_after,
            });
        }
        let before = state
            .events
            .partition_point(|event| event.revision <= revision);
        let next = state.first + before as u64;
        Ok(Watcher::new(Arc::clone(self), changes, next, revision))
    }

    /// The objects as they are, and a watcher that continues from there.
    pub fn list_and_watch(self: &Arc<Self>, prefix: &str) -> (Vec<Arc<Object>>, Watcher) {
        let changes = self.changes.subscribe();
        let state = self.state();
        let objects = state.list(prefix, None);
        let (next, last) = (state.next(), state.last_revision());
        (objects, Watcher::new(Arc::clone(self), changes, next, last))
    }

    /// Events from number `next` on, up to `limit` or until they have `bytes`; `None` if they are
    /// no longer there.
    pub(super) fn events_from(
        &self,
        next: u64,
        limit: usize,
        bytes: usize,
    ) -> Option<Vec<Arc<Event>>> {
        let state = self.state();
        let skip = usize::try_from(next.checked_sub(state.first)?).ok()?;
        let mut taken = 0;
        let events = state.events.range(skip.min(state.events.len())..);
        let events = events.take(limit).take_while(|event| {
            let has_room = taken < bytes;
            taken += event.line_bytes();
            has_room
        });
        Some(events.cloned().collect())
    }

    /// How many watchers follow the changes.
    pub(super) fn watchers(&self) -> usize {
        self.changes.receiver_count()
    }
}

impl State {
    /// The number that the next event gets.
    fn next(&self) -> u64 {
        self.first + self.events.len() as u64
    }

    fn list(&self, prefix: &str, start: Option<&str>) -> Vec<Arc<Object>> {
        let from = start.filter(|start| *start > prefix).unwrap_or(prefix);
        let range = self
            .objects
            .range::<str, _>((Bound::Included(from), Bound::Unbounded));
        let below = range.take_while(|(key, _)| key.starts_with(prefix));
        below.map(|(_, object)| Arc::clone(object)).collect()
    }

    fn last_revision(&self) -> Revision {
        self.events
            .back()
            .map_or(self.complete_after, |event| event.revision)
    }

    fn apply(
        &mut self,
        key: Arc<str>,
        revision: Revision,
        object: Option<Arc<Object>>,
        now: Instant,
    ) {
        let previous = match &object {
            Some(object) => self.objects.insert(key, Arc::clone(object)),
            None => match self.objects.remove(&key) {
                Some(gone) => Some(gone),
                // Deleted before it was ever added: no event.
                None => return,
            },
        };
        let event = Event::new(revision, object, previous, now);
        self.event_bytes += event.kept_bytes();
        self.events.push_back(Arc::new(event));
        while self.events.len() > MAX_EVENTS
            || self.event_bytes > MAX_EVENT_BYTES && self.events.len() > MIN_EVENTS
        {
            self.forget_oldest();
        }
    }

    fn has_old(&self, now: Instant) -> bool {
        let is_old = |event: &Arc<Event>| now.saturating_duration_since(event.seen_at) > KEPT_FOR;
        self.events.len() > MIN_EVENTS && self.events.front().is_some_and(is_old)
    }

    fn forget_old(&mut self, now: Instant) {
        while self.has_old(now) {
            self.forget_oldest();
        }
        // Gives back memory after a burst.
        if self.events.capacity() > 4 * self.events.len().max(MIN_EVENTS) {
            self.events.shrink_to(2 * self.events.len());
        }
    }

    fn forget_oldest(&mut self) {
        if let Some(oldest) = self.events.pop_front() {
            self.event_bytes = self.event_bytes.saturating_sub(oldest.kept_bytes());
            self.complete_after = oldest.revision;
            self.first += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds;

    fn pods() -> Collection {
        let kind = kinds::by_kind("v1", "Pod").unwrap();
        Collection::new(kind, Arc::new(Findings::new()))
    }

    /// A pod that is written again and again.
    fn changes(revisions: std::ops::RangeInclusive<Revision>) -> Vec<(Arc<str>, Change)> {
        let change = |revision| {
            let entry = Entry {
                key: "/registry/pods/d/p".into(),
                value: r#"{"metadata":{"name":"p","namespace":"d"}}"#.into(),
                create_revision: 2,
                mod_revision: revision,
                unreadable: None,
            };
            let change = Change {
                key: entry.key.clone(),
                revision,
                entry: Some(entry),
                previous: None,
            };
            (Arc::from("d/p"), change)
        };
        revisions.map(change).collect()
    }

    #[test]
    fn undecodable_change_deletes_only_its_own_object() {
        let pods = Arc::new(pods());
        let changed = |key: &str, revision: Revision, value: &'static str| {
            let entry = Entry {
                key: format!("/registry/pods/{key}").into(),
                value: value.into(),
                create_revision: 2,
                mod_revision: revision,
                unreadable: None,
            };
            let change = Change {
                key: entry.key.clone(),
                revision,
                entry: Some(entry),
                previous: None,
            };
            (Arc::from(key), change)
        };
        let good = r#"{"metadata":{"name":"p","namespace":"d"}}"#;
        pods.apply(
            vec![changed("d/p", 2, good), changed("d/q", 3, good)],
            Instant::now(),
            Encoder::Unknown,
        );
        let mut watcher = pods.watch_after(3).unwrap();
        let changes = vec![changed("d/p", 4, "{"), changed("d/r", 5, good)];
        pods.apply(changes, Instant::now(), Encoder::Unknown);
        let seen: Vec<_> = watcher.poll().unwrap();
        let seen = seen.iter().filter_map(|event| event.seen(|_| true));
        let seen: Vec<_> = seen
            .map(|(sort, object)| (sort.as_str(), &**object.key()))
            .collect();
        assert_eq!(seen, [("DELETED", "d/p"), ("ADDED", "d/r")]);
        assert_eq!(pods.unreadable("d/p"), Some(4));
        assert_eq!((pods.len(), pods.decode_errors()), (2, 1));
        let changes = vec![changed("d/p", 6, good)];
        pods.apply(changes, Instant::now(), Encoder::Unknown);
        assert_eq!((pods.unreadable("d/p"), pods.len()), (None, 3));
    }

    #[test]
    fn old_changes_expire_except_the_latest() {
        let (pods, begun) = (Arc::new(pods()), Instant::now());
        pods.apply(changes(2..=1001), begun, Encoder::Unknown);
        pods.apply(changes(1002..=1011), begun + KEPT_FOR, Encoder::Unknown);
        pods.forget_old(begun + KEPT_FOR);
        assert!(pods.watch_after(1).is_ok(), "all kept for a while");
        pods.forget_old(begun + KEPT_FOR + Duration::from_secs(1));
        let oldest = 1011 - MIN_EVENTS as Revision;
        assert!(pods.watch_after(oldest).is_ok());
        let expired = pods.watch_after(oldest - 1).unwrap_err();
        assert_eq!(expired.oldest, oldest);
        let state = pods.state();
        assert_eq!(state.events.len(), MIN_EVENTS);
        let bytes: usize = state.events.iter().map(|event| event.kept_bytes()).sum();
        assert_eq!(state.event_bytes, bytes);
        assert!(state.events.capacity() <= 4 * MIN_EVENTS);
    }
}
