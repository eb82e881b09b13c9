//! Publishes committed changes to many watchers without ever waiting for one of them.
//!
//! Watchers of the same prefix share one filtered, reference-counted batch. A watcher whose buffer
//! is full is dropped with an error.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use tokio::sync::mpsc;

use super::error::readable;
use super::{Change, Entry, Error, Revision};

/// A message to a subscriber.
#[derive(Clone, Debug)]
pub(super) enum Delivery {
    Changes(Arc<[Change]>),
    Progress(Revision),
}

/// What subscribers that share batches have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SubscriptionKey {
    prefix: Bytes,
    with_previous: bool,
}

#[derive(Debug)]
struct Subscriber {
    sender: mpsc::UnboundedSender<Delivery>,
    state: Arc<SubscriberState>,
    /// An unanswered request for progress.
    wants_progress_at: Option<Revision>,
}

/// Shared between the hub and the watcher.
#[derive(Debug, Default)]
struct SubscriberState {
    /// Changes sent and not yet received.
    backlog: AtomicUsize,
    /// Why the hub sends no more; set before the channel is closed.
    end: OnceLock<Error>,
}

#[derive(Debug)]
struct Inner {
    published: Revision,
    next_id: u64,
    groups: BTreeMap<SubscriptionKey, BTreeMap<u64, Subscriber>>,
    closed: Option<Error>,
}

/// The fan-out of one store.
#[derive(Clone, Debug)]
pub(super) struct Hub {
    inner: Arc<Mutex<Inner>>,
    /// Changes buffered for one watcher.
    buffer: usize,
}

impl Hub {
    /// Everything up to `published` is history; later changes will be published.
    pub(super) fn new(published: Revision, buffer: usize) -> Self {
        let inner = Inner {
            published,
            next_id: 0,
            groups: BTreeMap::new(),
            closed: None,
        };
        Self {
            inner: Arc::new(Mutex::new(inner)),
            buffer,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // No operation here leaves a half-done state after a panic.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last revision handed to watchers.
    pub(super) fn published(&self) -> Revision {
        self.lock().published
    }

    /// Subscribes to a prefix. Changes after the returned revision will be delivered.
    pub(super) fn subscribe(
        &self,
        prefix: Bytes,
        with_previous: bool,
    ) -> Result<(Subscription, Revision), Error> {
        let mut inner = self.lock();
        if let Some(error) = &inner.closed {
            return Err(error.clone());
        }
        let id = inner.next_id;
        inner.next_id += 1;
        let (sender, receiver) = mpsc::unbounded_channel();
        let state = Arc::new(SubscriberState::default());
        let key = SubscriptionKey {
            prefix,
            with_previous,
        };
        let subscriber = Subscriber {
            sender,
            state: Arc::clone(&state),
            wants_progress_at: None,
        };
        let group = inner.groups.entry(key.clone()).or_default();
        group.insert(id, subscriber);
        let subscription = Subscription {
            hub: self.clone(),
            key,
            id,
            receiver,
            state,
        };
        Ok((subscription, inner.published))
    }

    /// Publishes the changes up to `through`, in order. Previous entries are loaded only if a
    /// subscriber needs them; a subscriber that cannot get them is dropped.
    pub(super) fn publish(
        &self,
        through: Revision,
        changes: &[Change],
        load_previous: impl Fn(usize) -> Result<Option<Entry>, Error>,
    ) {
        let mut inner = self.lock();
        inner.published = inner.published.max(through);
        let published = inner.published;
        let previous: Vec<OnceCell<_>> = vec![OnceCell::new(); changes.len()];
        let with_previous = |at: usize| -> Result<Change, Error> {
            let previous = previous[at].get_or_init(|| load_previous(at)).clone()?;
            let change = changes[at].clone();
            Ok(Change { previous, ..change })
        };
        let without_previous = |at: usize| Change {
            previous: None,
            ..changes[at].clone()
        };
        for (key, subscribers) in &mut inner.groups {
            let matching =
                (0..changes.len()).filter(|at| changes[*at].key.starts_with(&key.prefix));
            let matching: Result<Vec<Change>, Error> = if key.with_previous {
                matching.map(with_previous).collect()
            } else {
                Ok(matching.map(without_previous).collect())
            };
            match matching {
                Ok(matching) => {
                    let matching = (!matching.is_empty()).then(|| matching.into());
                    subscribers.retain(|_, subscriber| {
                        subscriber.deliver(matching.as_ref(), key, self.buffer, published)
                    });
                }
                Err(error) => end(std::mem::take(subscribers), &error),
            }
        }
        inner
            .groups
            .retain(|_, subscribers| !subscribers.is_empty());
    }

    /// Ends all subscriptions with an error; new ones start after `resume_from`.
    pub(super) fn interrupt(&self, error: &Error, resume_from: Revision) {
        let mut inner = self.lock();
        inner.end_all(error);
        inner.published = inner.published.max(resume_from);
    }

    /// Ends all subscriptions for good.
    pub(super) fn close(&self) {
        let mut inner = self.lock();
        inner.end_all(&Error::Closed);
        inner.closed = Some(Error::Closed);
    }
}

impl Inner {
    fn end_all(&mut self, error: &Error) {
        for subscribers in std::mem::take(&mut self.groups).into_values() {
            end(subscribers, error);
        }
    }
}

/// Closes the channels of subscribers, which then read the reason.
fn end(subscribers: BTreeMap<u64, Subscriber>, error: &Error) {
    for subscriber in subscribers.into_values() {
        // Set once: a subscriber that was dropped before is no longer in a group.
        let _ = subscriber.state.end.set(error.clone());
    }
}

impl Subscriber {
    /// Whether the subscriber stays.
    fn deliver(
        &mut self,
        changes: Option<&Arc<[Change]>>,
        key: &SubscriptionKey,
        buffer: usize,
        published: Revision,
    ) -> bool {
        if let Some(changes) = changes {
            let backlog = self
                .state
                .backlog
                .fetch_add(changes.len(), Ordering::AcqRel);
            // A batch larger than the buffer is delivered to a watcher that has kept up.
            if backlog > 0 && backlog + changes.len() > buffer {
                let prefix = readable(&key.prefix);
                let too_slow = Error::WatchTooSlow {
                    prefix,
                    limit: buffer,
                };
                let _ = self.state.end.set(too_slow);
                return false;
            }
            if self
                .sender
                .send(Delivery::Changes(Arc::clone(changes)))
                .is_err()
            {
                return false;
            }
        }
        self.send_progress(published);
        true
    }

    fn send_progress(&mut self, published: Revision) {
        if self
            .wants_progress_at
            .is_some_and(|wanted| published >= wanted)
        {
            self.wants_progress_at = None;
            // A closed receiver removes itself.
            let _ = self.sender.send(Delivery::Progress(published));
        }
    }
}

/// The receiving side of one watcher.
#[derive(Debug)]
pub(super) struct Subscription {
    hub: Hub,
    key: SubscriptionKey,
    id: u64,
    receiver: mpsc::UnboundedReceiver<Delivery>,
    state: Arc<SubscriberState>,
}

impl Subscription {
    pub(super) async fn next(&mut self) -> Result<Delivery, Error> {
        let Some(delivery) = self.receiver.recv().await else {
            return Err(self.state.end.get().cloned().unwrap_or(Error::Closed));
        };
        if let Delivery::Changes(changes) = &delivery {
            self.state
                .backlog
                .fetch_sub(changes.len(), Ordering::AcqRel);
        }
        Ok(delivery)
    }

    pub(super) fn request_progress(&self, at_least: Revision) {
        let mut inner = self.hub.lock();
        let published = inner.published;
        let group = inner.groups.get_mut(&self.key);
        if let Some(subscriber) = group.and_then(|group| group.get_mut(&self.id)) {
            subscriber.wants_progress_at = Some(at_least);
            subscriber.send_progress(published);
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut inner = self.hub.lock();
        if let Some(group) = inner.groups.get_mut(&self.key) {
            group.remove(&self.id);
            if group.is_empty() {
                inner.groups.remove(&self.key);
            }
        }
    }
}
