//! The whole: a thread that watches, and what others may ask of it.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use plimsoll_core::eviction::record::Record;
use plimsoll_core::eviction::record::lines::LinesRecord;
use plimsoll_core::object::node::NodeCondition;
use plimsoll_runtime::cgroup::Cgroups;
use rustix::event::{EventfdFlags, eventfd};

use super::decisions::Decisions;
use super::settings::Settings;
use super::surroundings::Surroundings;
use super::watch::Watch;

/// Why the shell does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Its thread or what wakes it cannot be made.
    #[error("cannot start watching the node's memory")]
    Thread(#[source] io::Error),
    /// Records cannot be kept.
    #[error("cannot keep records of decisions in {directory}")]
    Decisions {
        /// Where.
        directory: String,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// Watches a node and evicts pods from it until it is dropped.
#[derive(Debug)]
pub struct EvictionShell {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread and others have in common.
#[derive(Debug)]
pub(super) struct Shared {
    /// Wakes the thread.
    bell: OwnedFd,
    is_stopping: AtomicBool,
    is_reclaimed: AtomicBool,
    conditions: Mutex<BTreeSet<NodeCondition>>,
    standing: Mutex<LinesRecord>,
    /// When the thread looked at the node last.
    looked_at: Mutex<Instant>,
    decisions: Decisions,
}

/// What a shell has decided and how far the thresholds are, to be read. Outlives the shell.
#[derive(Clone, Debug)]
pub struct Journal(Arc<Shared>);

impl Journal {
    /// The latest decisions, oldest first.
    pub fn decisions(&self) -> Vec<Arc<Record>> {
        self.0.decisions.all()
    }

    /// How long ago the node was looked at: seconds, unless whatever looks at it has ended or hangs.
    pub fn age(&self) -> Duration {
        self.0.looked_at().elapsed()
    }

    /// How far each line is, as of the latest look.
    pub fn lines(&self) -> LinesRecord {
        self.0.standing().clone()
    }
}

/// That the node is freeing what it can. Dropped when that is done.
#[derive(Debug)]
pub struct Ticket(Arc<Shared>);

impl Drop for Ticket {
    fn drop(&mut self) {
        self.0.is_reclaimed.store(true, Ordering::Release);
        self.0.ring();
    }
}

impl EvictionShell {
    /// Begins to watch.
    pub fn start(
        settings: Settings,
        cgroups: Cgroups,
        surroundings: Arc<dyn Surroundings>,
    ) -> Result<EvictionShell, StartError> {
        let directory = settings.decisions_dir.clone();
        let decisions = Decisions::open(directory.clone(), settings.kept_decisions);
        let decisions = decisions.map_err(|source| StartError::Decisions {
            directory: directory.unwrap_or_default().display().to_string(),
            source,
        })?;
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let shared = Arc::new(Shared {
            bell: bell.map_err(|errno| StartError::Thread(errno.into()))?,
            is_stopping: AtomicBool::new(false),
            is_reclaimed: AtomicBool::new(false),
            conditions: Mutex::default(),
            standing: Mutex::default(),
            looked_at: Mutex::new(Instant::now()),
            decisions,
        });
        let mut watch = Watch::new(settings, cgroups, surroundings, Arc::clone(&shared));
        let thread = thread::Builder::new().name("eviction".to_owned());
        let thread = thread.spawn(move || watch.run());
        Ok(EvictionShell {
            shared,
            thread: Some(thread.map_err(StartError::Thread)?),
        })
    }

    /// The pressure conditions of the node, for its status and for admission.
    pub fn conditions(&self) -> BTreeSet<NodeCondition> {
        self.shared.conditions().clone()
    }

    /// Whether the thread that watches is there.
    pub fn is_running(&self) -> bool {
        let thread = self.thread.as_ref();
        thread.is_some_and(|thread| !thread.is_finished())
    }

    /// What it decides, to be read.
    pub fn journal(&self) -> Journal {
        Journal(Arc::clone(&self.shared))
    }

    /// Has the thread look at once: there is a new survey.
    pub fn wake(&self) {
        self.shared.ring();
    }
}

impl Drop for EvictionShell {
    fn drop(&mut self) {
        self.shared.is_stopping.store(true, Ordering::Release);
        self.shared.ring();
        if let Some(thread) = self.thread.take() {
            // It cannot be helped if it panicked.
            let _ = thread.join();
        }
    }
}

impl Shared {
    pub(super) fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    fn ring(&self) {
        // It is full of rings if this fails.
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Acquire)
    }

    /// Whether a reclaim has ended since the last call.
    pub(super) fn take_reclaimed(&self) -> bool {
        self.is_reclaimed.swap(false, Ordering::AcqRel)
    }

    pub(super) fn ticket(self: &Arc<Shared>) -> Ticket {
        self.is_reclaimed.store(false, Ordering::Release);
        Ticket(Arc::clone(self))
    }

    pub(super) fn conditions(&self) -> MutexGuard<'_, BTreeSet<NodeCondition>> {
        let conditions = self.conditions.lock();
        conditions.unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn standing(&self) -> MutexGuard<'_, LinesRecord> {
        let standing = self.standing.lock();
        standing.unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn looked_at(&self) -> MutexGuard<'_, Instant> {
        let looked_at = self.looked_at.lock();
        looked_at.unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn decisions(&self) -> &Decisions {
        &self.decisions
    }
}
