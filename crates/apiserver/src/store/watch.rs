//! Following changes.

use std::collections::VecDeque;

use async_trait::async_trait;
use bytes::Bytes;

use super::hub::{Delivery, Subscription};
use super::{Entry, Error, Revision};

/// One key put or deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The key.
    pub key: Bytes,
    /// When. Changes of one transaction share it and come in the order they were written.
    pub revision: Revision,
    /// The key after the change; `None` if it was deleted.
    pub entry: Option<Entry>,
    /// The key before the change, if it existed and [`WatchRequest::with_previous`] was set.
    pub previous: Option<Entry>,
}

/// The next message of a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all updates are changes, and a box for each would be an allocation for each"
)]
pub enum Update {
    /// Something changed.
    Change(Change),
    /// Everything up to this revision has been delivered.
    Progress(Revision),
}

/// Which changes to watch.
#[derive(Clone, Debug, Default)]
pub struct WatchRequest {
    /// Only keys that begin with this.
    pub prefix: Bytes,
    /// Changes after this revision. It may lie in the future.
    pub after: Revision,
    /// Whether changes carry the previous entry.
    pub with_previous: bool,
}

/// The changes of a prefix from a revision on.
///
/// Changes are buffered within bounds. A watcher that does not keep up gets
/// [`Error::WatchTooSlow`] after the changes that were still buffered, and lists again.
pub struct Watch {
    after: Revision,
    /// The transformation of entries.
    map: Option<MapEntry>,
    /// Changes between `after` and the subscription, until they are read.
    history: Option<Box<dyn History>>,
    subscription: Subscription,
    ready: VecDeque<Change>,
}

/// Transforms an entry.
type MapEntry = Box<dyn Fn(Entry) -> Entry + Send + Sync>;

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch")
            .field("after", &self.after)
            .field("history", &self.history)
            .finish_non_exhaustive()
    }
}

impl Watch {
    pub(super) fn new(
        after: Revision,
        history: Option<Box<dyn History>>,
        subscription: Subscription,
    ) -> Self {
        Self {
            after,
            map: None,
            history,
            subscription,
            ready: VecDeque::new(),
        }
    }

    /// Transforms all entries with `map`.
    #[must_use]
    pub fn mapped(self, map: impl Fn(Entry) -> Entry + Send + Sync + 'static) -> Self {
        Self {
            map: Some(Box::new(map)),
            ..self
        }
    }

    fn map(&self, change: Change) -> Change {
        match &self.map {
            None => change,
            Some(map) => Change {
                entry: change.entry.map(map),
                previous: change.previous.map(map),
                ..change
            },
        }
    }

    /// Waits for the next change. An error ends the watch. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<Update, Error> {
        loop {
            if let Some(change) = self.ready.pop_front() {
                return Ok(Update::Change(self.map(change)));
            }
            if let Some(history) = &mut self.history {
                match history.next_chunk().await? {
                    Some(chunk) => self.ready.extend(chunk),
                    None => self.history = None,
                }
                continue;
            }
            match self.subscription.next().await? {
                Delivery::Changes(changes) => {
                    let fresh = changes.iter().filter(|change| change.revision > self.after);
                    self.ready.extend(fresh.cloned());
                }
                Delivery::Progress(revision) => return Ok(Update::Progress(revision)),
            }
        }
    }

    /// Waits for the next change and returns all that have arrived, transactions whole; none of
    /// them and the revision alone when only progress was made.
    pub async fn next_changes(&mut self) -> Result<(Vec<Change>, Revision), Error> {
        match self.next().await? {
            Update::Change(first) => {
                let mut changes = vec![first];
                let rest = std::mem::take(&mut self.ready);
                changes.extend(rest.into_iter().map(|change| self.map(change)));
                let last = changes.last().map_or(self.after, |change| change.revision);
                Ok((changes, last))
            }
            Update::Progress(revision) => Ok((Vec::new(), revision)),
        }
    }

    /// Asks for an [`Update::Progress`] as soon as everything up to `at_least` has been seen, even
    /// if nothing of it concerned this watch. A later request replaces an unanswered one.
    pub fn request_progress(&self, at_least: Revision) {
        self.subscription.request_progress(at_least);
    }
}

/// Past changes of a prefix, read in batches.
#[async_trait]
pub(super) trait History: std::fmt::Debug + Send + Sync {
    /// The next changes, possibly none; `None` once all up to the subscription were given.
    /// Dropping the future must lose nothing.
    async fn next_chunk(&mut self) -> Result<Option<Vec<Change>>, Error>;
}
