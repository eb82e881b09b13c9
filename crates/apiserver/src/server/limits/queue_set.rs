//! Seats for one kind of request, shared among users, with a queue in front.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use tokio::sync::oneshot;

use super::shares::{Dispatch, Shares, Size};
use crate::status::Status;

/// How long a request waits for a seat.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(5);

/// The counters of a queue set.
#[derive(Clone, Debug, Default)]
pub(crate) struct QueueSetCounters {
    /// Requests that got a seat.
    pub dispatched: Counter,
    /// Requests that found the queue full.
    pub queue_full: Counter,
    /// Requests that timed out in the queue.
    pub timed_out: Counter,
}

/// The seats of one kind of request at one priority level.
#[derive(Debug)]
pub(crate) struct QueueSet {
    shares: Mutex<Shares<oneshot::Sender<()>>>,
    counters: QueueSetCounters,
}

/// A seat, or a request that waits for one; released when dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    queue_set: Arc<QueueSet>,
    user: Arc<str>,
    /// The ticket number while it waits.
    waits: Option<u64>,
}

impl QueueSet {
    pub(super) fn new(size: Size, counters: QueueSetCounters) -> Arc<QueueSet> {
        Arc::new(QueueSet {
            shares: Mutex::new(Shares::new(size)),
            counters,
        })
    }

    fn shares(&self) -> MutexGuard<'_, Shares<oneshot::Sender<()>>> {
        self.shares.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Requests that hold a seat, and requests that wait.
    pub(crate) fn load(&self) -> (usize, usize) {
        let shares = self.shares();
        (shares.taken(), shares.waiting())
    }

    /// The number of seats.
    pub(crate) fn seats(&self) -> usize {
        self.shares().size().seats
    }

    /// Takes a seat for a request of a user; or returns the 429.
    pub(super) async fn enter(self: &Arc<Self>, user: &str) -> Result<Seat, Status> {
        let mut receiver = None;
        let (user, dispatch) = self.shares().ask(user, || {
            let (sender, receive) = oneshot::channel();
            receiver = Some(receive);
            sender
        });
        let seat = |waits| Seat {
            queue_set: Arc::clone(self),
            user,
            waits,
        };
        let seat = match (dispatch, receiver) {
            (Dispatch::Now, _) => seat(None),
            (Dispatch::Queued(number), Some(receiver)) => {
                let mut seat = seat(Some(number));
                if !matches!(
                    tokio::time::timeout(QUEUE_TIMEOUT, receiver).await,
                    Ok(Ok(()))
                ) {
                    self.counters.timed_out.inc();
                    return Err(refused());
                }
                seat.waits = None;
                seat
            }
            _ => {
                self.counters.queue_full.inc();
                return Err(refused());
            }
        };
        self.counters.dispatched.inc();
        Ok(seat)
    }
}

fn refused() -> Status {
    Status::too_many_requests("too many requests, please try again later", 1)
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut shares = self.queue_set.shares();
        let next = match self.waits {
            Some(number) if shares.cancel(&self.user, number) => Vec::new(),
            // It holds a seat, whether or not the notification has arrived.
            _ => shares.release(&self.user),
        };
        drop(shares);
        for ticket in next {
            // A cancelled request releases its seat when it is dropped.
            let _ = ticket.send(());
        }
    }
}
