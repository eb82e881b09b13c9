//! One client's position in the changes of a kind.

use std::sync::Arc;

use tokio::sync::watch;

use super::collection::{Collection, Expired};
use super::event::Event;
use crate::store::Revision;

/// Events per batch, and their bytes: the memory cost of a client that does not read.
const BATCH: usize = 256;
const BATCH_BYTES: usize = 256 * 1024;

/// Follows the changes of a collection. Holds no changes itself: a slow watcher costs nothing, and
/// one that is too slow loses its position.
#[derive(Debug)]
pub struct Watcher {
    collection: Arc<Collection>,
    changes: watch::Receiver<u64>,
    next: u64,
    /// The start revision; events up to there are skipped.
    start: Revision,
    after: Revision,
}

/// Some changes, in order.
pub type Batch = Vec<Arc<Event>>;

impl Watcher {
    pub(super) fn new(
        collection: Arc<Collection>,
        changes: watch::Receiver<u64>,
        next: u64,
        after: Revision,
    ) -> Watcher {
        Watcher {
            collection,
            changes,
            next,
            start: after,
            after,
        }
    }

    /// The next changes; waits until there are some. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<Batch, Expired> {
        loop {
            self.changes.borrow_and_update();
            let batch = self.poll()?;
            if !batch.is_empty() {
                return Ok(batch);
            }
            // The sender lives in the collection, which this watcher keeps alive.
            let _ = self.changes.changed().await;
        }
    }

    /// The next changes, if there are some already.
    pub fn poll(&mut self) -> Result<Batch, Expired> {
        let events = self.collection.events_from(self.next, BATCH, BATCH_BYTES);
        let mut events = events.ok_or(Expired {
            requested: self.after,
            oldest: self.after,
        })?;
        self.next += events.len() as u64;
        // A watch may start at a revision that has not been seen here yet. It is the start that
        // counts: changes of one transaction have one revision and may be in two batches.
        events.retain(|event| event.revision() > self.start);
        if let Some(last) = events.last() {
            self.after = last.revision();
        }
        Ok(events)
    }

    /// Everything up to here has been returned.
    pub fn revision(&self) -> Revision {
        self.after
    }

    /// How many watchers follow the same changes.
    pub fn watchers_of_kind(&self) -> usize {
        self.collection.watchers()
    }
}
