//! The embedded store: one file, one writer thread, many readers.
//!
//! - [`row`]: one change as bytes; the log of all changes is the only large table.
//! - [`index`]: which row holds which key at which revision, in memory, rebuilt on opening.
//! - [`log`]: reading rows. [`database`]: file and index together; opening again after a failure.
//! - [`batch`]: transactions checked and staged. [`writer`]: the thread that commits many of them
//!   with one flush.
//! - [`format`]: the tables, and how earlier layouts become this one.
//! - [`clock`]: when keys expire. [`history`]: past changes for a watch. [`compaction`]: how much history is kept.
//! - [`space`]: a full disk, the quota, and which writes they allow.
//! - [`snapshot`], [`create`], [`verify`], [`shrink`]: for `plimsoll store`.
//! - [`file`]: permissions and failed flushes.
//!
//! Memory is the index (about 200 bytes for a key) and the page cache of the options; values stay
//! in the file.

mod batch;
mod clock;
mod compaction;
mod create;
mod database;
mod file;
mod format;
mod history;
mod index;
mod log;
mod row;
mod shrink;
mod snapshot;
mod space;
mod verify;
mod writer;

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use ::redb::StorageBackend;
use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::{Semaphore, oneshot};

use super::error::TaskFailed;
use super::{
    Entry, Error, Found, Outcome, Page, RangeRequest, Revision, Snapshot, Store, Txn, Watch,
    WatchRequest,
};
pub use verify::{CheckValue, Problem, Report};

use batch::Reply;
use database::{Opener, Shared};
use history::LogHistory;
use row::RowId;
use space::Reserve;
use writer::{Job, WRITER, Writer};

/// The settings of an embedded store.
#[derive(Clone, Debug)]
pub struct RedbOptions {
    /// Younger history stays readable.
    pub keep_history_for: Duration,
    /// History beyond this size is compacted even if it is younger.
    pub keep_history_bytes: u64,
    /// Memory for pages of the file.
    pub cache_bytes: usize,
    /// Changes buffered for a slow watcher.
    pub watch_buffer: usize,
    /// The quota of objects and history in bytes; `None` for as many as the disk has. Objects take
    /// precedence: history is compacted to make room for them.
    pub quota_bytes: Option<u64>,
    /// Disk space that is reserved for deletes; zero for none.
    pub reserve_bytes: u64,
}

impl Default for RedbOptions {
    fn default() -> Self {
        Self {
            // The default quota of upstream's etcd.
            keep_history_for: Duration::from_secs(5 * 60),
            keep_history_bytes: 512 * 1024 * 1024,
            cache_bytes: 16 * 1024 * 1024,
            watch_buffer: 10_000,
            quota_bytes: None,
            reserve_bytes: 8 * 1024 * 1024,
        }
    }
}

/// Bytes of transactions that may wait for the writer; more writers wait before they queue.
const MAX_QUEUED_BYTES: usize = 64 * 1024 * 1024;

/// The unit in which queued bytes are counted.
const QUEUE_UNIT: usize = 1024;

/// A store in one file of this machine.
#[derive(Debug)]
pub struct RedbStore {
    shared: Arc<Shared>,
    jobs: mpsc::Sender<Job>,
    writer: Mutex<Option<JoinHandle<()>>>,
    queue_space: Semaphore,
}

impl RedbStore {
    /// Opens the file, creating it if needed, readable by its owner only. After a crash this takes
    /// the time to read the whole file once.
    ///
    /// Blocks while the file is read. Fails if another process has it open.
    pub fn open(path: &Path, options: &RedbOptions) -> Result<Self, Error> {
        let name = path.display().to_string();
        let mut reserve = Reserve::beside(path, options.reserve_bytes);
        let opener = || {
            let path = path.to_owned();
            move || file::open(&path)
        };
        let shared = match Shared::open(Box::new(opener()), name.clone(), options) {
            Err(Error::Full { .. }) if reserve.as_mut().is_some_and(Reserve::release) => {
                Shared::open(Box::new(opener()), name, options)
            }
            other => other,
        };
        Self::start(shared?, reserve, options)
    }

    /// Opens the storage that `opener` returns, which is called again after failures.
    pub fn open_with(
        name: String,
        opener: impl Fn() -> io::Result<Box<dyn StorageBackend>> + Send + Sync + 'static,
        options: &RedbOptions,
    ) -> Result<Self, Error> {
        let opener: Box<Opener> = Box::new(opener);
        Self::start(Shared::open(opener, name, options)?, None, options)
    }

    fn start(
        shared: Shared,
        reserve: Option<Reserve>,
        options: &RedbOptions,
    ) -> Result<Self, Error> {
        let shared = Arc::new(shared);
        let (jobs, queue) = mpsc::channel();
        let writer = Writer::new(Arc::clone(&shared), queue, reserve, options);
        let thread = std::thread::Builder::new().name("store-writer".to_owned());
        let thread = thread.spawn(move || writer.run());
        let thread = thread.map_err(|source| Error::Open {
            store: shared.name.clone(),
            source: Arc::new(source),
        })?;
        Ok(Self {
            shared,
            jobs,
            writer: Mutex::new(Some(thread)),
            queue_space: Semaphore::new(MAX_QUEUED_BYTES / QUEUE_UNIT),
        })
    }

    /// Sends a job to the writer and waits for its result.
    async fn ask<T>(
        &self,
        job: impl FnOnce(oneshot::Sender<Result<T, Error>>) -> Job,
    ) -> Result<T, Error> {
        let (answer, reply) = oneshot::channel();
        self.jobs.send(job(answer)).map_err(|_| Error::Closed)?;
        reply.await.map_err(|_| self.unanswered())?
    }

    /// Why the writer took a job and did not answer it.
    fn unanswered(&self) -> Error {
        if let Err(Error::Closed) = self.shared.read().database {
            return Error::Closed;
        }
        Error::Write {
            store: self.shared.name.clone(),
            source: Arc::new(TaskFailed(WRITER)),
        }
    }

    /// Ends the writer as if it had failed, to see it start again.
    pub fn end_writer(&self) {
        // A store that is closed has none.
        let _ = self.jobs.send(Job::Fail);
    }

    /// Stops the writer; returns the thread to join, unless another caller does.
    fn stop(&self) -> Option<JoinHandle<()>> {
        // A writer that has stopped already no longer takes jobs.
        let _ = self.jobs.send(Job::Close);
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        writer.take()
    }
}

impl Drop for RedbStore {
    /// Waits for the writer, so that the file can be opened again.
    fn drop(&mut self) {
        if let Some(thread) = self.stop() {
            wait_for(thread);
        }
    }
}

fn wait_for(writer: JoinHandle<()>) {
    if writer.join().is_err() {
        tracing::error!("store writer panicked");
    }
}

#[async_trait]
impl Store for RedbStore {
    async fn get(&self, key: &[u8], at: Option<Revision>) -> Result<Found, Error> {
        // A few microseconds: cheaper here than on another thread.
        let ((revision, row), log) = self.shared.look_up(|index| {
            let revision = index.readable(at)?;
            Ok((revision, index.locate(key, revision)))
        })?;
        let entry = row.map(|row| log.entry(Bytes::copy_from_slice(key), row));
        let entry = entry.transpose()?;
        Ok(Found { revision, entry })
    }

    async fn range(&self, request: RangeRequest) -> Result<Page, Error> {
        let shared = Arc::clone(&self.shared);
        blocking(move || {
            let ((revision, rows, remaining), log) = shared.look_up(|index| {
                let revision = index.readable(request.at)?;
                let (rows, remaining) = index.locate_range(&request, revision);
                Ok((revision, rows, remaining))
            })?;
            let entries: Result<Vec<Entry>, Error> = rows
                .into_iter()
                .map(|(key, row)| log.entry(key, row))
                .collect();
            Ok(Page {
                revision,
                entries: entries?,
                remaining,
            })
        })
        .await
    }

    async fn txn(&self, txn: Txn) -> Result<Outcome, Error> {
        txn.check()?;
        let units = u32::try_from(txn.bytes() / QUEUE_UNIT + 1).unwrap_or(u32::MAX);
        let _space = self.queue_space.acquire_many(units).await;
        match self.ask(|answer| Job::Txn(txn, answer)).await? {
            Reply::Committed { revision } => Ok(Outcome::Committed { revision }),
            Reply::Conflict { key } => {
                let current = self.get(&key, None).await?.entry;
                Ok(Outcome::Conflict { key, current })
            }
        }
    }

    async fn watch(&self, request: WatchRequest) -> Result<Watch, Error> {
        let WatchRequest {
            prefix,
            after,
            with_previous,
        } = request;
        let (subscription, live_after) =
            self.shared.hub.subscribe(prefix.clone(), with_previous)?;
        if after < self.shared.read().index.compacted() {
            return Err(Error::Compacted { requested: after });
        }
        let history = LogHistory {
            shared: Arc::clone(&self.shared),
            prefix,
            with_previous,
            from: RowId::first_of(after + 1),
            to: RowId::first_of(live_after + 1),
        };
        Ok(Watch::new(after, Some(Box::new(history)), subscription))
    }

    fn has_one_writer(&self) -> bool {
        true
    }

    async fn compact(&self, revision: Revision) -> Result<(), Error> {
        self.shared
            .read()
            .index
            .readable(Some(revision))
            .or_else(|error| match error {
                Error::Compacted { .. } => Ok(revision),
                other => Err(other),
            })?;
        self.ask(|answer| Job::Compact(revision, answer)).await
    }

    async fn current_revision(&self) -> Result<Revision, Error> {
        let state = self.shared.read();
        state.database.as_ref().map_err(Clone::clone)?;
        Ok(state.index.current())
    }

    async fn ready(&self) -> Result<(), Error> {
        self.shared.condition().map_or(Ok(()), Err)
    }

    fn checks(&self) -> Vec<(&'static str, bool)> {
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let runs = writer.as_ref().is_none_or(|thread| !thread.is_finished());
        vec![(WRITER, runs && self.shared.writer_is_well())]
    }

    async fn snapshot(&self, prefix: Bytes) -> Result<Snapshot, Error> {
        let shared = Arc::clone(&self.shared);
        blocking(move || snapshot::begin(&shared, &prefix)).await
    }

    async fn close(&self) -> Result<(), Error> {
        let Some(thread) = self.stop() else {
            return Ok(());
        };
        blocking(move || {
            wait_for(thread);
            Ok(())
        })
        .await
    }
}

/// Runs a read of much of the file without blocking other tasks.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(stopped) => match stopped.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(Error::Closed),
        },
    }
}
