//! How much is done at once.
//!
//! Reads and writes have separate limits, as upstream's; whoever finds no place waits a little and
//! is then told to come back. Watches and streams are long and cost little: they are not counted.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::status::Status;

/// How long a request waits for its place.
const PATIENCE: Duration = Duration::from_secs(5);

/// Requests that may wait for each place; beyond that they are refused at once.
const QUEUE_PER_PLACE: usize = 8;

/// The places.
#[derive(Debug)]
pub(crate) struct Limits {
    reads: Lane,
    writes: Lane,
}

#[derive(Debug)]
struct Lane {
    places: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    size: usize,
}

impl Limits {
    /// So many at once.
    pub(crate) fn new(max_reads: usize, max_writes: usize) -> Limits {
        Limits {
            reads: Lane::new(max_reads),
            writes: Lane::new(max_writes),
        }
    }

    /// A place for a request, given back when dropped; or the 429.
    pub(crate) async fn enter(&self, is_write: bool) -> Result<OwnedSemaphorePermit, Status> {
        let lane = if is_write { &self.writes } else { &self.reads };
        lane.enter().await
    }

    /// Requests in flight: reads, writes.
    pub(crate) fn in_flight(&self) -> (usize, usize) {
        (self.reads.taken(), self.writes.taken())
    }
}

impl Lane {
    fn new(size: usize) -> Lane {
        Lane {
            places: Arc::new(Semaphore::new(size)),
            waiting: Arc::new(Semaphore::new(size.saturating_mul(QUEUE_PER_PLACE))),
            size,
        }
    }

    fn taken(&self) -> usize {
        self.size.saturating_sub(self.places.available_permits())
    }

    async fn enter(&self) -> Result<OwnedSemaphorePermit, Status> {
        if let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
            return Ok(place);
        }
        let refused = || Status::too_many_requests("too many requests, please try again later", 1);
        let _seat = self.waiting.try_acquire().map_err(|_| refused())?;
        let place = Arc::clone(&self.places).acquire_owned();
        match tokio::time::timeout(PATIENCE, place).await {
            Ok(Ok(place)) => Ok(place),
            _ => Err(refused()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn whoever_finds_no_place_in_time_is_told_to_come_back() {
        let limits = Limits::new(1, 1);
        let place = limits.enter(false).await.unwrap();
        let refused = limits.enter(false).await.unwrap_err();
        assert_eq!(refused.code, 429);
        assert_eq!(refused.retry_after(), Some(1));
        assert!(limits.enter(true).await.is_ok());
        drop(place);
        assert!(limits.enter(false).await.is_ok());
    }
}
