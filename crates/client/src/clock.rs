//! The clock of the loops.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use plimsoll_core::object::timestamp::Timestamp;
use tokio::time::Instant;

/// A clock. Loops read this one, so that tests can run days in milliseconds.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Clock").finish()
    }
}

impl Clock {
    /// A clock that shows the time that `now` returns.
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Clock {
        Clock(Arc::new(now))
    }

    /// The clock of this machine.
    pub fn system() -> Clock {
        Clock::new(|| {
            let since = SystemTime::now().duration_since(UNIX_EPOCH);
            Timestamp::default().saturating_add(since.unwrap_or(Duration::ZERO))
        })
    }

    /// A clock that shows `start` at first and follows tokio's, which tests can pause.
    pub fn starting_at(start: Timestamp) -> Clock {
        let begun = Instant::now();
        Clock::new(move || start.saturating_add(begun.elapsed()))
    }

    /// When tokio's clock will show that time; a past time is now.
    pub fn instant_of(&self, time: Timestamp) -> Instant {
        Instant::now() + time.saturating_since(self.now())
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        (self.0)()
    }
}

impl Default for Clock {
    fn default() -> Self {
        Clock::system()
    }
}
