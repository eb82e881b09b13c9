//! When keys expire: by the machine's clock as it was when the store was opened, and the time since.
//!
//! Setting the clock of a machine makes nothing expire early or late, as in etcd, whose leases count
//! down. A store that is opened while the clock is wrong takes it for right until it is opened again.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    /// In milliseconds since 1970.
    opened_at: u64,
    opened: Instant,
}

impl Clock {
    pub(super) fn start() -> Clock {
        // A clock before 1970 makes everything expire late, never early.
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
        Clock {
            opened_at: millis(since_1970.unwrap_or_default()),
            opened: Instant::now(),
        }
    }

    /// In milliseconds since 1970.
    pub(super) fn now(&self) -> u64 {
        self.opened_at.saturating_add(millis(self.opened.elapsed()))
    }
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
