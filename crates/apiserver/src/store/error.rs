//! The errors of a store, and whether a retry can help.

use std::sync::Arc;

use super::Revision;
use crate::bounds::TooDeep;

/// The cause. Shared, because one failed commit fails many writers.
pub type Cause = Arc<dyn std::error::Error + Send + Sync>;

/// Why a store failed. `store` names the file or the etcd endpoints concerned.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// History before this revision is compacted: list again.
    #[error("revision {requested} has been compacted")]
    Compacted {
        /// The requested revision.
        requested: Revision,
    },
    /// No such revision yet.
    #[error("revision {requested} is in the future")]
    FutureRevision {
        /// The requested revision.
        requested: Revision,
    },
    /// The watcher did not read fast enough and has lost its position: list again.
    #[error("watch of {prefix:?} is more than {limit} changes behind")]
    WatchTooSlow {
        /// What was watched.
        prefix: String,
        /// How many changes are kept for a slow watcher.
        limit: usize,
    },
    /// A transaction may write a key once.
    #[error("key {key:?} is written twice in one transaction")]
    DuplicateKey {
        /// The key.
        key: String,
    },
    /// A transaction with too many comparisons or writes.
    #[error("transaction has {count} operations, at most {limit} are allowed")]
    TooManyOperations {
        /// Comparisons or writes, whichever are more.
        count: usize,
        /// How many there may be.
        limit: usize,
    },
    /// A transaction with too many bytes.
    #[error("request is too large: {bytes} bytes, at most {limit} are allowed")]
    TooLarge {
        /// Keys and values together.
        bytes: usize,
        /// How many there may be.
        limit: usize,
    },
    /// An object that is nested too deeply to be read back.
    #[error("value of {key:?} cannot be stored")]
    TooDeep {
        /// The key.
        key: String,
        /// How deep it is.
        #[source]
        source: TooDeep,
    },
    /// The disk (or etcd's quota) is full. Nothing of this transaction was acknowledged; the store
    /// accepts writes again by itself once there is space.
    #[error("no space left for {store}")]
    Full {
        /// The file or endpoints.
        store: String,
        /// The error of the system.
        #[source]
        source: Cause,
    },
    /// A write failed; whether it took place is unknown until the key is read again.
    #[error("writing to {store} failed")]
    Write {
        /// The file or endpoints.
        store: String,
        /// The error of the system.
        #[source]
        source: Cause,
    },
    /// The system did not confirm that written data is on the disk. Further writes would risk
    /// acknowledged data, so nothing is written until the store is opened again.
    #[error("{store} takes no writes until it is opened again: data could not be flushed to disk")]
    WritesRefused {
        /// The file.
        store: String,
        /// The error of the system.
        #[source]
        source: Cause,
    },
    /// Reading stored data failed.
    #[error("reading from {store} failed")]
    Read {
        /// The file or endpoints.
        store: String,
        /// The error of the system.
        #[source]
        source: Cause,
    },
    /// The store could not be opened or reached.
    #[error("opening {store} failed")]
    Open {
        /// The file or endpoints.
        store: String,
        /// The error of the system.
        #[source]
        source: Cause,
    },
    /// Another process has the file open.
    #[error("{store} is in use by another process")]
    InUse {
        /// The file.
        store: String,
    },
    /// The file is not a store, or too corrupt to be opened.
    #[error("{store} is not a store of Plimsoll, or is damaged")]
    NotAStore {
        /// The file.
        store: String,
        /// What is wrong with it.
        #[source]
        source: Cause,
    },
    /// Stored data was not written by this program, or is corrupt.
    #[error("{store} is damaged at row {row:#x}: {problem}")]
    Damaged {
        /// The file.
        store: String,
        /// Which row of the log.
        row: u64,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The file's structure is corrupt, not just single values.
    #[error(
        "{store} is damaged: {problem}; check it with \"plimsoll store verify\", and restore a \
         snapshot with \"plimsoll store restore\""
    )]
    Corrupt {
        /// The file.
        store: String,
        /// What was found.
        problem: String,
    },
    /// The value of a key is corrupt, or encrypted with a missing key.
    #[error("the stored value of {key} cannot be read: {problem}")]
    Unreadable {
        /// The key.
        key: String,
        /// What is wrong with its value.
        problem: Arc<str>,
    },
    /// The store does not respond, or not in time.
    #[error("{store} is unavailable")]
    Unavailable {
        /// The file or endpoints.
        store: String,
        /// The error.
        #[source]
        source: Cause,
    },
    /// The store refuses the request, for instance for lack of permission.
    #[error("{store} refused the request")]
    Refused {
        /// The endpoints.
        store: String,
        /// The response.
        #[source]
        source: Cause,
    },
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}

impl Error {
    /// Whether the same call may succeed later without intervention or changed arguments.
    ///
    /// A retried write is safe when it compares revisions: had the first try taken place, the
    /// second one conflicts.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Full { .. } | Self::Write { .. } | Self::Unavailable { .. } => true,
            Self::Compacted { .. }
            | Self::FutureRevision { .. }
            | Self::WatchTooSlow { .. }
            | Self::DuplicateKey { .. }
            | Self::TooManyOperations { .. }
            | Self::TooLarge { .. }
            | Self::TooDeep { .. }
            | Self::WritesRefused { .. }
            | Self::Read { .. }
            | Self::Open { .. }
            | Self::InUse { .. }
            | Self::NotAStore { .. }
            | Self::Damaged { .. }
            | Self::Corrupt { .. }
            | Self::Unreadable { .. }
            | Self::Refused { .. }
            | Self::Closed => false,
        }
    }
}

/// A task or thread of the store has failed.
#[derive(Debug, thiserror::Error)]
#[error("{0} failed and is restarted")]
pub(super) struct TaskFailed(pub(super) &'static str);

/// A key or prefix in readable form.
pub(super) fn readable(key: &[u8]) -> String {
    String::from_utf8_lossy(key).into_owned()
}
