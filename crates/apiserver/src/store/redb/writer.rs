//! The one thread that writes: it gathers what many writers want, commits it with one flush, and
//! only then answers.
//!
//! While a commit is under way the next batch gathers in the queue; the busier the store, the
//! larger the batches.

use std::cell::OnceCell;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::super::{Change, Error, Revision, Txn};
use super::RedbOptions;
use super::batch::{Batch, Reply, Staged};
use super::compaction::Compactor;
use super::database::{Shared, is_full};
use super::format::{COMPACTED, META};
use super::log::{LOG, guarded};
use super::row::RowId;

/// Transactions in one commit.
const MAX_BATCH: usize = 1024;

/// Bytes in one commit; a larger batch would make everybody wait for the disk.
const MAX_BATCH_BYTES: usize = 8 * 1024 * 1024;

/// How often expiry and compaction are looked after.
const TICK: Duration = Duration::from_millis(500);

/// Rows removed along with a commit of writers, who wait for it.
const GARBAGE_PER_COMMIT: usize = 256;

/// Rows removed in a commit of its own, when nobody waits.
const GARBAGE_WHEN_IDLE: usize = 4096;

/// How long a full disk is left alone: every attempt reads the whole file again.
const FULL_PAUSE: Duration = Duration::from_millis(250);

/// Expired keys deleted in one commit.
const EXPIRED_PER_COMMIT: usize = 1024;

/// What the writer is asked for.
#[derive(Debug)]
pub(super) enum Job {
    Txn(Txn, oneshot::Sender<Result<Reply, Error>>),
    Compact(Revision, oneshot::Sender<Result<(), Error>>),
    Close,
}

pub(super) struct Writer {
    shared: Arc<Shared>,
    jobs: Receiver<Job>,
    compactor: Compactor,
    /// Set when a flush has failed: nothing is written any more.
    refusing: Option<Error>,
    /// Set when the disk was full: until when not to try again.
    pausing: Option<(Instant, Error)>,
    next_tick: Instant,
}

impl Writer {
    pub(super) fn new(shared: Arc<Shared>, jobs: Receiver<Job>, options: &RedbOptions) -> Self {
        let compactor = Compactor::new(options, shared.read().index.current());
        Self {
            shared,
            jobs,
            compactor,
            refusing: None,
            pausing: None,
            next_tick: Instant::now() + TICK,
        }
    }

    /// Serves until the store is closed.
    pub(super) fn run(mut self) {
        loop {
            let wait = self.next_tick.saturating_duration_since(Instant::now());
            let goes_on = match self.jobs.recv_timeout(wait) {
                Ok(job) => self.serve(job),
                Err(RecvTimeoutError::Timeout) => true,
                Err(RecvTimeoutError::Disconnected) => false,
            };
            if !goes_on {
                break;
            }
            if Instant::now() >= self.next_tick {
                self.tick();
                self.next_tick = Instant::now() + TICK;
            }
        }
        self.shared.close();
    }

    /// Serves a job and what has gathered behind it. Whether the store goes on.
    fn serve(&mut self, first: Job) -> bool {
        // Opening the file again can reveal changes, so it comes before anything is compared.
        let mut result = self.get_ready();
        let mut answers = Vec::new();
        let mut compactions = Vec::new();
        let mut closing = false;
        let mut batch;
        let mut target;
        {
            let state = self.shared.read();
            target = self.compactor.size_target(&state.index);
            batch = Batch::new(&state.index);
            let mut next = Some(first);
            while let Some(job) = next {
                match job {
                    Job::Txn(txn, answer) => {
                        answers.push((batch.stage(&state.index, txn), answer));
                    }
                    Job::Compact(revision, answer) => {
                        target = target.max(Some(revision));
                        compactions.push(answer);
                    }
                    Job::Close => closing = true,
                }
                let full = answers.len() >= MAX_BATCH || batch.bytes >= MAX_BATCH_BYTES;
                next = if closing || full {
                    None
                } else {
                    self.jobs.try_recv().ok()
                };
            }
        }
        result = result.and_then(|()| self.commit(&batch, target, GARBAGE_PER_COMMIT));
        for (reply, answer) in answers {
            // Who no longer waits for the answer has no use for it.
            let _ = answer.send(result.clone().map(|()| reply));
        }
        for answer in compactions {
            let _ = answer.send(result.clone());
        }
        if result.is_ok() {
            self.publish(&batch);
        }
        !closing
    }

    /// Makes a batch durable and visible; and forgets history up to `compact_to`.
    fn commit(
        &mut self,
        batch: &Batch,
        compact_to: Option<Revision>,
        garbage: usize,
    ) -> Result<(), Error> {
        let has_garbage = self.shared.read().index.has_garbage();
        if batch.staged.is_empty() && compact_to.is_none() && !has_garbage {
            return Ok(());
        }
        let (doomed, compacted) = if compact_to.is_some() || has_garbage {
            let mut state = self.shared.write();
            state.index.compact(compact_to.unwrap_or(0));
            (
                state.index.take_garbage(garbage),
                Some(state.index.compacted()),
            )
        } else {
            (Vec::new(), None)
        };
        let written = guarded(|| self.write_rows(&batch.staged, &doomed, compacted));
        written.map_err(|error| self.recover(error))?;
        let mut state = self.shared.write();
        for staged in &batch.staged {
            state.index.apply(staged.key.clone(), staged.version);
        }
        Ok(())
    }

    /// Opens the file again if that is needed. Whether it makes sense to write then.
    fn get_ready(&mut self) -> Result<(), Error> {
        let now = Instant::now();
        self.pausing = self.pausing.take().filter(|(until, _)| now < *until);
        if let Some((_, error)) = &self.pausing {
            return Err(error.clone());
        }
        if let Some(because) = self.shared.trouble() {
            self.reopen(&because);
        }
        self.shared.read().database.as_ref().map_err(Clone::clone)?;
        self.refusing.clone().map_or(Ok(()), Err)
    }

    fn write_rows(
        &self,
        staged: &[Staged],
        doomed: &[RowId],
        compacted: Option<Revision>,
    ) -> Result<(), ::redb::Error> {
        let txn = self.shared.begin_write()?;
        {
            let mut log = txn.open_table(LOG)?;
            for staged in staged {
                let row = staged.row();
                let mut place = log.insert_reserve(staged.version.row.0, row.size())?;
                row.write_to(staged.version.row, place.as_mut());
            }
            for row in doomed {
                log.remove(row.0)?;
            }
        }
        if let Some(compacted) = compacted {
            txn.open_table(META)?.insert(COMPACTED, compacted)?;
        }
        txn.commit()?;
        Ok(())
    }

    fn publish(&self, batch: &Batch) {
        if batch.staged.is_empty() {
            return;
        }
        let changes: Vec<Change> = batch.staged.iter().map(Staged::change).collect();
        let log = OnceCell::new();
        self.shared.hub.publish(batch.revision, &changes, |at| {
            let staged = &batch.staged[at];
            let Some(previous) = staged.previous else {
                return Ok(None);
            };
            let log = log.get_or_init(|| self.shared.look_up(|_| Ok(())));
            let ((), log) = log.as_ref().map_err(Clone::clone)?;
            log.entry(staged.key.clone(), previous).map(Some)
        });
    }

    /// Opens the database again after a failed commit, and says what to answer.
    fn recover(&mut self, error: ::redb::Error) -> Error {
        let store = self.shared.name.clone();
        let full = is_full(&error);
        let answer = match error {
            ::redb::Error::Corrupted(problem) => self.shared.corrupt(problem),
            error if full => Error::Full {
                store,
                source: Arc::new(error),
            },
            error => Error::Write {
                store,
                source: Arc::new(error),
            },
        };
        tracing::error!(store = self.shared.name, error = ?answer, "writing to the store failed");
        self.reopen(&answer);
        if full {
            self.pausing = Some((Instant::now() + FULL_PAUSE, answer.clone()));
        }
        self.refusing.clone().unwrap_or(answer)
    }

    fn reopen(&mut self, because: &Error) {
        let may_reload = !self.shared.flush_failed.load(Ordering::Acquire);
        let reopened = self.shared.reopen(because, may_reload);
        if self.shared.flush_failed.load(Ordering::Acquire) {
            self.refusing.get_or_insert_with(|| Error::WritesRefused {
                store: self.shared.name.clone(),
                source: Arc::new(because.clone()),
            });
        }
        match reopened {
            Ok(changes) => {
                if let Some(last) = changes.last() {
                    let previous = |at: usize| Ok(changes[at].previous.clone());
                    self.shared.hub.publish(last.revision, &changes, previous);
                }
            }
            Err(error) => {
                tracing::error!(store = self.shared.name, ?error, "the store is down");
            }
        }
    }

    /// What time alone asks for: expiry, compaction, another try at a file that was down.
    fn tick(&mut self) {
        if self.get_ready().is_err() {
            return;
        }
        let failed = |error: Error| tracing::warn!(?error, "looking after the store failed");
        if let Err(error) = self.expire() {
            return failed(error);
        }
        let target = self.compactor.target(&self.shared.read().index);
        if let Err(error) = self.compact(target) {
            failed(error);
        }
    }

    fn expire(&mut self) -> Result<(), Error> {
        let mut batch;
        {
            let state = self.shared.read();
            batch = Batch::new(&state.index);
            for (key, revision) in state.index.expired(batch.now, EXPIRED_PER_COMMIT) {
                batch.stage(&state.index, Txn::remove(key, revision));
            }
        }
        self.commit(&batch, None, 0)?;
        self.publish(&batch);
        Ok(())
    }

    /// Compacts, and removes garbage for as long as no writer waits.
    fn compact(&mut self, target: Option<Revision>) -> Result<(), Error> {
        let nothing = Batch::new(&self.shared.read().index);
        self.commit(&nothing, target, GARBAGE_WHEN_IDLE)
    }
}
