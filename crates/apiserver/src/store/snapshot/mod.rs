//! Everything in a store as of one revision, to be kept in a file or written to another store.
//!
//! Values are as the store below encryption has them: a snapshot shows no more than the store.

mod file;

use async_trait::async_trait;

use super::{Entry, Error, Revision};

pub use file::{SnapshotEncoder, SnapshotError, SnapshotReader, Summary};

/// A restored store continues this far behind the snapshot, so that no revision is used twice:
/// clients that have seen any later one have to list again. etcd's documentation advises the same.
pub const RESTORED_REVISION_GAP: Revision = 1_000_000_000;

/// A key in a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotEntry {
    /// The key with its value and revisions.
    pub entry: Entry,
    /// Milliseconds since 1970 after which the key is deleted; zero for never.
    pub expires_at: u64,
}

/// Everything as of one revision, read a piece at a time.
#[derive(Debug)]
pub struct Snapshot {
    /// The revision that is read.
    pub revision: Revision,
    rows: Box<dyn Rows>,
}

impl Snapshot {
    pub(super) fn new(revision: Revision, rows: impl Rows + 'static) -> Self {
        let rows = Box::new(rows);
        Self { revision, rows }
    }

    /// The next keys in byte order; `None` after the last.
    pub async fn next_chunk(&mut self) -> Result<Option<Vec<SnapshotEntry>>, Error> {
        self.rows.next_chunk().await
    }
}

/// The source of a snapshot.
#[async_trait]
pub(super) trait Rows: std::fmt::Debug + Send {
    async fn next_chunk(&mut self) -> Result<Option<Vec<SnapshotEntry>>, Error>;
}
