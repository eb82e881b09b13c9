//! The one thread that writes: it gathers what many writers want, commits it with one flush, and
//! only then answers.
//!
//! While a commit is under way the next batch gathers in the queue; the busier the store, the
//! larger the batches.
//!
//! After a panic it continues with the file reopened. Callers whose transactions it had taken get an
//! error, as after a commit that failed: none hangs, and none got an answer for what is not stored.

use std::cell::OnceCell;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use plimsoll_client::supervision::{BackOff, STEADY};
use tokio::sync::oneshot;

use super::super::error::TaskFailed;
use super::super::panics::survive_panic;
use super::super::{Change, Error, Revision, Txn};
use super::RedbOptions;
use super::batch::{Batch, Reply, Staged};
use super::clock::Clock;
use super::compaction::Compactor;
use super::database::{Shared, is_full};
use super::format::{COMPACTED, META};
use super::log::{LOG, guarded};
use super::row::RowId;
use super::shrink::shrink;
use super::space::{Alarm, Reserve, Space};

/// Transactions in one commit.
const MAX_BATCH: usize = 1024;

/// Bytes in one commit; a larger batch would make all callers wait for the disk.
const MAX_BATCH_BYTES: usize = 8 * 1024 * 1024;

/// How often expiry and compaction run.
const TICK: Duration = Duration::from_millis(500);

/// Rows removed along with a commit that callers wait for.
const GARBAGE_PER_COMMIT: usize = 256;

/// Rows removed in a separate commit, when no caller waits.
const GARBAGE_WHEN_IDLE: usize = 4096;

/// How long a full disk is left alone: every attempt reads the whole file again.
const FULL_PAUSE: Duration = Duration::from_millis(250);

/// Expired keys deleted in one commit.
const EXPIRED_PER_COMMIT: usize = 1024;

/// What the writer is called in health checks and errors.
pub(super) const WRITER: &str = "store-writer";

/// A job for the writer.
#[derive(Debug)]
pub(super) enum Job {
    Txn(Txn, oneshot::Sender<Result<Reply, Error>>),
    Compact(Revision, oneshot::Sender<Result<(), Error>>),
    Close,
    /// Fail as if by a fault of the program.
    Fail,
}

pub(super) struct Writer {
    shared: Arc<Shared>,
    jobs: Receiver<Job>,
    compactor: Compactor,
    space: Space,
    clock: Clock,
    /// Set when a flush has failed: nothing is written any more.
    refusing: Option<Error>,
    /// Set when the disk was full or the writer failed: until when not to try again.
    pausing: Option<(Instant, Error)>,
    next_tick: Instant,
}

impl Writer {
    pub(super) fn new(
        shared: Arc<Shared>,
        jobs: Receiver<Job>,
        reserve: Option<Reserve>,
        options: &RedbOptions,
    ) -> Self {
        let compactor = Compactor::new(options, shared.read().index.current());
        let mut space = Space::new(&shared.name, reserve, options.quota_bytes);
        space.look(&shared.read().index);
        shared.set_condition(space.error());
        Self {
            shared,
            jobs,
            compactor,
            space,
            clock: Clock::start(),
            refusing: None,
            pausing: None,
            next_tick: Instant::now() + TICK,
        }
    }

    /// Serves until the store is closed.
    pub(super) fn run(mut self) {
        let mut back_off = BackOff::default();
        loop {
            let begun = Instant::now();
            match survive_panic(|| self.work()) {
                Ok(()) => break,
                Err(problem) => self.start_again(problem, back_off.after(begun.elapsed())),
            }
        }
        self.shared.close();
    }

    /// What comes after a panic. Until the pause is over, jobs are answered with the error.
    fn start_again(&mut self, problem: String, pause: Duration) {
        let store = self.shared.name.clone();
        tracing::error!(store, problem, ?pause, "store writer failed, restarting");
        let failed = Error::Unavailable {
            store,
            source: Arc::new(TaskFailed(WRITER)),
        };
        let until = Instant::now() + pause;
        self.shared.writer_failed(&failed, until + STEADY);
        self.pausing = Some((until, failed));
    }

    fn work(&mut self) {
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
    }

    /// Serves a job and what has gathered behind it. Returns whether the store continues.
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
            let room = self.space.room_for_history(&state.index);
            target = self.compactor.size_target(&state.index, room);
            batch = Batch::new(&state.index, self.clock.now());
            let mut next = Some(first);
            while let Some(job) = next {
                match job {
                    Job::Txn(txn, answer) => {
                        let refusal = match self.space.is_limited() && !txn.is_urgent {
                            true => {
                                let growth = batch.growth_of(&state.index, &txn);
                                self.space.refusal(&state.index, batch.growth, growth)
                            }
                            false => None,
                        };
                        if let Some(refusal) = refusal {
                            self.publish_condition();
                            // As below.
                            let _ = answer.send(Err(refusal));
                            next = self.jobs.try_recv().ok();
                            continue;
                        }
                        answers.push((batch.stage(&state.index, txn), answer));
                    }
                    Job::Compact(revision, answer) => {
                        target = target.max(Some(revision));
                        compactions.push(answer);
                    }
                    Job::Close => closing = true,
                    // The hook for panics has nothing to report.
                    Job::Fail => resume_unwind(Box::new("it was ended")),
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
        self.publish_condition();
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
        let write = |this: &Self| guarded(|| this.write_rows(&batch.staged, &doomed, compacted));
        let mut written = write(self);
        if let Err(error) = &written
            && is_full(error)
            && self.space.disk_is_full()
            && self.is_back(batch)
        {
            written = write(self);
        }
        written.map_err(|error| self.recover(error))?;
        if !doomed.is_empty() {
            self.space.note_removal();
        }
        let mut state = self.shared.write();
        for staged in &batch.staged {
            state.index.apply(staged.key.clone(), staged.version);
        }
        Ok(())
    }

    /// Opens the file again after a commit that did not fit. Whether the same batch can be committed
    /// then: nothing came between.
    fn is_back(&mut self, batch: &Batch) -> bool {
        let before = self.shared.read().index.current();
        let store = self.shared.name.clone();
        let because = self.space.error().unwrap_or(Error::Closed);
        tracing::error!(store, error = ?because, "the disk is full");
        self.reopen(&because);
        let state = self.shared.read();
        let first = batch
            .staged
            .first()
            .map(|staged| staged.version.row.revision());
        let is_next = first.is_none_or(|first| first > state.index.current());
        self.refusing.is_none()
            && state.database.is_ok()
            && state.index.current() == before
            && is_next
    }

    /// Publishes what the store cannot do at the moment.
    fn publish_condition(&self) {
        let condition = self.refusing.clone().or_else(|| self.space.error());
        self.shared.set_condition(condition);
    }

    /// Looks whether there is room on the disk again, and makes some if that is possible.
    fn mind_space(&mut self) {
        let is_to_shrink = self.space.look(&self.shared.read().index);
        if is_to_shrink && !self.shared.read().index.has_garbage() {
            let mut state = self.shared.write();
            if let Ok(database) = &mut state.database
                && let Err(error) = guarded(|| shrink(database))
            {
                tracing::debug!(%error, "the file was not made smaller");
                self.space.note_removal();
            }
        } else if is_to_shrink {
            self.space.note_removal();
        }
        self.publish_condition();
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
            error if full => {
                tracing::debug!(store, %error, "a commit did not fit");
                Error::Full {
                    store,
                    source: Arc::new(Alarm::Disk),
                }
            }
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

    /// Periodic work: expiry, compaction, another try at a file that was down.
    fn tick(&mut self) {
        self.mind_space();
        if self.get_ready().is_err() {
            return;
        }
        let failed = |error: Error| tracing::warn!(?error, "looking after the store failed");
        if let Err(error) = self.expire() {
            return failed(error);
        }
        let target = {
            let state = self.shared.read();
            let room = self.space.room_for_history(&state.index);
            self.compactor.target(&state.index, room)
        };
        if let Err(error) = self.compact(target) {
            failed(error);
        }
    }

    fn expire(&mut self) -> Result<(), Error> {
        let mut batch;
        {
            let state = self.shared.read();
            batch = Batch::new(&state.index, self.clock.now());
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
        let nothing = Batch::new(&self.shared.read().index, self.clock.now());
        self.commit(&nothing, target, GARBAGE_WHEN_IDLE)
    }
}
