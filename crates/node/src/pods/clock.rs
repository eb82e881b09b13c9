//! What time it is, as workers see it.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use plimsoll_core::object::timestamp::Timestamp;
use tokio::time::Instant;

/// A clock for the times that stand in statuses. Waiting is done with tokio's.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Clock").finish()
    }
}

impl Clock {
    /// The clock of this machine.
    pub fn system() -> Clock {
        Clock(Arc::new(|| {
            let since = SystemTime::now().duration_since(UNIX_EPOCH);
            Timestamp::default().saturating_add(since.unwrap_or(Duration::ZERO))
        }))
    }

    /// A clock that shows `start` at first and goes on with tokio's, which tests can pause.
    pub fn starting_at(start: Timestamp) -> Clock {
        let begun = Instant::now();
        Clock(Arc::new(move || start.saturating_add(begun.elapsed())))
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        (self.0)()
    }

    /// When tokio's clock will show that time; a past time is now.
    pub fn instant_of(&self, time: Timestamp) -> Instant {
        Instant::now() + time.saturating_since(self.now())
    }
}
