//! The clock of the loops.
//!
//! The clock of a machine may be set while a process runs: at boot from 1970 to today, by hand an
//! hour back. Timestamps in objects and logs are of that clock ([`Clock::now`]). Intervals are
//! measured with a clock that is never set ([`Clock::steady`]).

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use plimsoll_core::object::timestamp::Timestamp;
use tokio::time::Instant;

type Read = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// A clock. Loops read this one, so that tests can run days in milliseconds.
#[derive(Clone)]
pub struct Clock {
    now: Read,
    steady: Read,
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Clock").finish()
    }
}

impl Clock {
    /// A clock that shows the time that `now` returns, and is never set.
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Clock {
        let now: Read = Arc::new(now);
        let steady = Arc::clone(&now);
        Clock { now, steady }
    }

    /// A clock that shows what `now` answers, which may jump, and measures with `steady`.
    pub fn set_by_others(
        now: impl Fn() -> Timestamp + Send + Sync + 'static,
        steady: impl Fn() -> Timestamp + Send + Sync + 'static,
    ) -> Clock {
        Clock {
            now: Arc::new(now),
            steady: Arc::new(steady),
        }
    }

    /// The clock of this machine.
    pub fn system() -> Clock {
        let (start, begun) = (system_time(), std::time::Instant::now());
        Clock::set_by_others(system_time, move || start.saturating_add(begun.elapsed()))
    }

    /// The clock of this machine, but never set back: it then continues from its last value.
    /// For times that are compared with those written down earlier.
    pub fn advancing() -> Clock {
        Clock::system().advancing_from(Timestamp::default())
    }

    /// As this clock, but no earlier than `floor`, and never set back.
    pub fn advancing_from(&self, floor: Timestamp) -> Clock {
        let clock = self.clone();
        let last = Mutex::new((self.now().max(floor), self.steady()));
        Clock::new(move || {
            let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
            let steady = clock.steady();
            let expected = last.0.saturating_add(steady.saturating_since(last.1));
            *last = (clock.now().max(expected), steady);
            last.0
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

    /// As [`Clock::instant_of`], of a time of [`Clock::steady`].
    pub fn instant_of_steady(&self, time: Timestamp) -> Instant {
        Instant::now() + time.saturating_since(self.steady())
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        (self.now)()
    }

    /// A time that passes evenly and is never set, to measure with. It is the time of
    /// [`Clock::now`] until that is set.
    pub fn steady(&self) -> Timestamp {
        (self.steady)()
    }

    /// What [`Clock::steady`] showed when the clock showed that past time; now for one that is to
    /// come. Only true as long as the clock was not set since, so it is computed once and kept.
    pub fn steady_of(&self, time: Timestamp) -> Timestamp {
        let age = self.now().saturating_since(time);
        self.steady().saturating_sub(age)
    }
}

impl Default for Clock {
    fn default() -> Self {
        Clock::system()
    }
}

fn system_time() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    Timestamp::default().saturating_add(since.unwrap_or(Duration::ZERO))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicI64, Ordering};

    const YEAR: i64 = 365 * 24 * 60 * 60;

    /// Seconds that a test sets.
    fn hand() -> (Arc<AtomicI64>, impl Fn() -> Timestamp + Send + Sync) {
        let hand = Arc::new(AtomicI64::new(1_000_000));
        let read = Arc::clone(&hand);
        let now = move || Timestamp::from_secs(read.load(Ordering::Relaxed));
        (hand, now)
    }

    #[test]
    fn durations_are_measured_across_clock_changes() {
        let ((wall, now), (even, steady)) = (hand(), hand());
        let clock = Clock::set_by_others(now, steady);
        let begun = clock.steady();
        for set in [YEAR, 3600, 0] {
            wall.store(set, Ordering::Relaxed);
            even.fetch_add(10, Ordering::Relaxed);
            assert_eq!(clock.now(), Timestamp::from_secs(set));
        }
        let took = clock.steady().saturating_since(begun);
        assert_eq!(took, Duration::from_secs(30));
        // What was written down by the clock as it is now can be measured from.
        let written = clock.now();
        wall.fetch_add(5, Ordering::Relaxed);
        even.fetch_add(5, Ordering::Relaxed);
        let since = clock.steady().saturating_since(clock.steady_of(written));
        assert_eq!(since, Duration::from_secs(5));
        let to_come = Timestamp::from_secs(YEAR);
        assert_eq!(clock.steady_of(to_come), clock.steady());
    }

    #[test]
    fn advancing_clock_follows_forward_jumps_and_ignores_backward_ones() {
        let ((wall, now), (even, steady)) = (hand(), hand());
        let system = Clock::set_by_others(now, steady);
        let clock = system.advancing_from(Timestamp::default());
        let at = Timestamp::from_secs;
        assert_eq!(clock.now(), at(1_000_000));
        wall.store(1_000_000 + YEAR, Ordering::Relaxed);
        assert_eq!(clock.now(), at(1_000_000 + YEAR));
        wall.store(0, Ordering::Relaxed);
        even.fetch_add(7, Ordering::Relaxed);
        assert_eq!(clock.now(), at(1_000_007 + YEAR));
        wall.store(1_000_000 + 2 * YEAR, Ordering::Relaxed);
        assert_eq!(clock.now(), at(1_000_000 + 2 * YEAR));
        let later = clock.advancing_from(at(3 * YEAR));
        assert_eq!(later.now(), at(3 * YEAR));
    }
}
