//! The store: bytes under keys, one revision counter for everything, history for a
//! while.
//!
//! The store is independent of Kubernetes. Keys are paths as upstream lays them out
//! (`/registry/<resource>/<namespace>/<name>`), a value is whatever the object machinery wrote.
//! Every transaction that changes something gets the next [`Revision`]; reads, lists and watches
//! name revisions, and history stays readable until it is compacted. A write is acknowledged only
//! when it is durable.
//!
//! Reading order: this trait; `txn` and `entry`, the arguments and results; `watch`, following
//! changes; `snapshot`, everything at once; `hub`, publishing changes to many watchers; `redb`, the
//! embedded store; `etcd`, the same on a real etcd. `tests/store_contract` holds both to one
//! behaviour.

mod entry;
mod error;
mod etcd;
mod hub;
mod panics;
mod redb;
mod snapshot;
mod txn;
mod watch;

pub use entry::{Entry, Found, Page, RangeRequest};
pub use error::{Cause, Error};
pub use etcd::{EtcdOptions, EtcdStore, EtcdTls};
pub use panics::catches_panics;

pub use redb::{CheckValue, Problem, RedbOptions, RedbStore, Report};
pub use snapshot::{
    RESTORED_REVISION_GAP, Snapshot, SnapshotEncoder, SnapshotEntry, SnapshotError, SnapshotReader,
    Summary,
};
pub use txn::{Compare, MAX_TXN_BYTES, MAX_TXN_OPERATIONS, Outcome, Txn, Write};
pub use watch::{Change, Update, Watch, WatchRequest};

use async_trait::async_trait;
use bytes::Bytes;

/// The position of a change in the one history that all keys share. An empty store is at 1.
pub type Revision = u64;

/// Keys and values with revisions, transactions and watches.
///
/// All methods may be called from many tasks at once. Dropping a returned future abandons the
/// response, not the work: a transaction may still take place.
#[async_trait]
pub trait Store: std::fmt::Debug + Send + Sync + 'static {
    /// Reads one key, as it is or as it was at a revision.
    async fn get(&self, key: &[u8], at: Option<Revision>) -> Result<Found, Error>;

    /// Lists the keys under a prefix in byte order.
    async fn range(&self, request: RangeRequest) -> Result<Page, Error>;

    /// Changes several keys at once if the comparisons hold.
    ///
    /// All changes of a transaction have one revision. One that changes nothing (only deletes of
    /// absent keys) makes no revision.
    async fn txn(&self, txn: Txn) -> Result<Outcome, Error>;

    /// Follows the changes of a prefix: in order, without gaps, none twice.
    async fn watch(&self, request: WatchRequest) -> Result<Watch, Error>;

    /// Whether no other process can write to the store: what a watch reports is then what this one has
    /// encoded.
    fn has_one_writer(&self) -> bool;

    /// Compacts changes superseded at or before `revision`; reads and watches below it fail with
    /// [`Error::Compacted`] from then on. A revision already compacted is not an error.
    async fn compact(&self, revision: Revision) -> Result<(), Error>;

    /// The revision of the last change, no older than any acknowledged to any caller before the
    /// call.
    async fn current_revision(&self) -> Result<Revision, Error>;

    /// Whether the store is fully operational; otherwise the reason, such as a full disk.
    async fn ready(&self) -> Result<(), Error>;

    /// The tasks of the store's own, and whether each is well: neither has it failed a moment ago nor
    /// does it not run.
    fn checks(&self) -> Vec<(&'static str, bool)>;

    /// Begins to read all keys with a prefix as they are now.
    async fn snapshot(&self, prefix: Bytes) -> Result<Snapshot, Error>;

    /// Whether the key would be stored in another form if it was put again: with another encryption
    /// key.
    async fn is_stale(&self, key: &[u8]) -> Result<bool, Error> {
        let _ = key;
        Ok(false)
    }

    /// Ends all watches, finishes running operations and releases the file or connection. Later
    /// calls fail with [`Error::Closed`].
    async fn close(&self) -> Result<(), Error>;
}
