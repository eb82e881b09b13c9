//! How long to wait before something that failed is tried again.
//!
//! The first failure waits [`INITIAL`], each further one twice as long, up to a limit; a key that has
//! not failed for long enough starts over. Matches v1.36 client-go/util/flowcontrol/backoff.go as
//! pkg/kubelet/kubelet.go sets it up.

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_core::object::timestamp::Timestamp;

/// The first delay, of containers and images alike.
pub const INITIAL: Duration = Duration::from_secs(10);
/// The longest delay, unless configured otherwise.
pub const MAX: Duration = Duration::from_secs(300);
/// After so long without a failure the delay is the first one again.
const FORGIVEN_AFTER: Duration = Duration::from_secs(600);

/// What is remembered of failures, by key.
#[derive(Clone, Debug)]
pub struct BackOff {
    max: Duration,
    entries: BTreeMap<String, Entry>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    delay: Duration,
    updated: Timestamp,
}

/// That something has to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The whole delay.
    pub delay: Duration,
    /// When it ends.
    pub until: Timestamp,
}

impl BackOff {
    /// An empty memory with a longest delay.
    pub fn new(max: Duration) -> BackOff {
        BackOff {
            max,
            entries: BTreeMap::new(),
        }
    }

    /// Whether `key`, which failed at `failed`, has to wait at `now`. A failure that is still to come
    /// is from before the clock was set back, and nothing waits for its time to come again.
    pub fn wait_since(&self, key: &str, failed: Timestamp, now: Timestamp) -> Option<Wait> {
        let entry = self.current(key, failed)?;
        let until = failed.saturating_add(entry.delay);
        (failed <= now && now < until).then_some(Wait {
            delay: entry.delay,
            until,
        })
    }

    /// Whether `key`, whose last failure was remembered when it happened, has to wait at `now`.
    pub fn wait_since_update(&self, key: &str, now: Timestamp) -> Option<Wait> {
        let entry = self.current(key, now)?;
        let until = entry.updated.saturating_add(entry.delay);
        (entry.updated <= now && now < until).then_some(Wait {
            delay: entry.delay,
            until,
        })
    }

    /// Remembers that `key` failed at `failed`, so that the next failure waits longer.
    pub fn remember(&mut self, key: &str, failed: Timestamp, now: Timestamp) {
        let delay = self
            .current(key, failed)
            .map_or(INITIAL, |entry| entry.delay.saturating_mul(2));
        let entry = Entry {
            delay: delay.min(self.max),
            updated: now,
        };
        self.entries.insert(key.to_owned(), entry);
    }

    /// Forgets all keys that begin so.
    pub fn forget_prefix(&mut self, prefix: &str) {
        self.entries.retain(|key, _| !key.starts_with(prefix));
    }

    /// Forgets all whose last failure is long ago.
    pub fn forget_old(&mut self, now: Timestamp) {
        self.entries.retain(|_, entry| !is_old(entry, now));
    }

    fn current(&self, key: &str, at: Timestamp) -> Option<&Entry> {
        self.entries.get(key).filter(|entry| !is_old(entry, at))
    }
}

fn is_old(entry: &Entry, at: Timestamp) -> bool {
    at.saturating_since(entry.updated) > FORGIVEN_AFTER
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_secs(secs)
    }

    #[test]
    fn delays_double_up_to_the_limit_and_reset_after_ten_minutes() {
        let mut back_off = BackOff::new(MAX);
        let mut delays = Vec::new();
        let mut now = 0;
        for _ in 0..7 {
            back_off.remember("a", at(now), at(now));
            let wait = back_off.wait_since("a", at(now), at(now)).unwrap();
            delays.push(wait.delay.as_secs());
            now += 300;
        }
        assert_eq!(delays, [10, 20, 40, 80, 160, 300, 300]);
        let long_after = at(now + 301);
        assert_eq!(back_off.wait_since("a", long_after, long_after), None);
        back_off.remember("a", long_after, long_after);
        let wait = back_off.wait_since("a", long_after, long_after).unwrap();
        assert_eq!(wait.delay, INITIAL);
    }

    #[test]
    fn the_wait_ends_with_the_delay_after_the_failure() {
        let mut back_off = BackOff::new(MAX);
        back_off.remember("a", at(0), at(0));
        let wait = Wait {
            delay: INITIAL,
            until: at(15),
        };
        assert_eq!(back_off.wait_since("a", at(5), at(14)), Some(wait));
        assert_eq!(back_off.wait_since("a", at(5), at(15)), None);
        assert_eq!(back_off.wait_since("b", at(5), at(14)), None);
    }

    #[test]
    fn backward_clock_does_not_delay_restarts() {
        let mut back_off = BackOff::new(MAX);
        back_off.remember("a", at(10_000), at(10_000));
        assert!(back_off.wait_since_update("a", at(10_001)).is_some());
        assert_eq!(back_off.wait_since_update("a", at(6_400)), None);
        assert_eq!(back_off.wait_since("a", at(10_000), at(6_400)), None);
        // Later failures back off as usual, and longer.
        back_off.remember("a", at(6_400), at(6_400));
        let wait = back_off.wait_since("a", at(6_401), at(6_401)).unwrap();
        assert_eq!(wait.delay, INITIAL * 2);
    }

    #[test]
    fn a_limit_below_the_first_delay_holds_from_the_start() {
        let mut back_off = BackOff::new(Duration::from_secs(2));
        back_off.remember("a", at(0), at(0));
        let wait = back_off.wait_since_update("a", at(1)).unwrap();
        assert_eq!(wait.until, at(2));
    }
}
