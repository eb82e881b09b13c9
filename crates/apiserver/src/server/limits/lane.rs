//! Places for requests of one sort, shared among users, with a queue in front.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use tokio::sync::oneshot;

use super::shares::{Asked, Shares, Size};
use crate::status::Status;

/// How long a request waits for its place.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a lane counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct LaneCounters {
    /// Requests that got a place.
    pub dispatched: Counter,
    /// Requests that found the queue full.
    pub queue_full: Counter,
    /// Requests that waited in vain.
    pub timed_out: Counter,
}

/// The places.
#[derive(Debug)]
pub(crate) struct Lane {
    shares: Mutex<Shares<oneshot::Sender<()>>>,
    counters: LaneCounters,
}

/// A place, or a request that waits for one; given back when dropped.
#[derive(Debug)]
pub(crate) struct Place {
    lane: Arc<Lane>,
    user: Arc<str>,
    /// The number under which it waits.
    waits: Option<u64>,
}

impl Lane {
    pub(super) fn new(size: Size, counters: LaneCounters) -> Arc<Lane> {
        Arc::new(Lane {
            shares: Mutex::new(Shares::new(size)),
            counters,
        })
    }

    fn shares(&self) -> MutexGuard<'_, Shares<oneshot::Sender<()>>> {
        self.shares.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Requests that have a place, and those that wait.
    pub(crate) fn load(&self) -> (usize, usize) {
        let shares = self.shares();
        (shares.taken(), shares.waiting())
    }

    /// How many places there are.
    pub(crate) fn places(&self) -> usize {
        self.shares().size().places
    }

    /// A place for a request of a user; or the 429.
    pub(super) async fn enter(self: &Arc<Self>, user: &str) -> Result<Place, Status> {
        let mut told = None;
        let (user, asked) = self.shares().ask(user, || {
            let (sender, receiver) = oneshot::channel();
            told = Some(receiver);
            sender
        });
        let place = |waits| Place {
            lane: Arc::clone(self),
            user,
            waits,
        };
        let place = match (asked, told) {
            (Asked::Enters, _) => place(None),
            (Asked::Waits(number), Some(told)) => {
                let mut place = place(Some(number));
                if !matches!(tokio::time::timeout(PATIENCE, told).await, Ok(Ok(()))) {
                    self.counters.timed_out.inc();
                    return Err(refused());
                }
                place.waits = None;
                place
            }
            _ => {
                self.counters.queue_full.inc();
                return Err(refused());
            }
        };
        self.counters.dispatched.inc();
        Ok(place)
    }
}

fn refused() -> Status {
    Status::too_many_requests("too many requests, please try again later", 1)
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut shares = self.lane.shares();
        let next = match self.waits {
            Some(number) if shares.give_up(&self.user, number) => Vec::new(),
            // It has the place, known or not.
            _ => shares.leave(&self.user),
        };
        drop(shares);
        for ticket in next {
            // One that has gone away gives its place back when it is dropped.
            let _ = ticket.send(());
        }
    }
}
