//! How long a pod waits after a failed attempt.

use std::time::Duration;

use super::time::Time;

/// The times between attempts: doubled each time, up to a maximum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// After the first failure.
    pub initial: Duration,
    /// At most; zero switches backoff off.
    pub max: Duration,
}

impl Default for Backoff {
    fn default() -> Backoff {
        Backoff {
            initial: Duration::from_secs(1),
            max: Duration::from_secs(10),
        }
    }
}

impl Backoff {
    /// Pods whose backoff ends within the same window are ordered like active ones.
    pub(super) const WINDOW: Duration = Duration::from_secs(1);

    /// The wait after so many failures: initial * 2^(failures - 1), at most the maximum.
    pub fn duration(&self, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1);
        let factor = 1u32.checked_shl(doublings);
        let doubled = factor.and_then(|factor| self.initial.checked_mul(factor));
        match doubled {
            _ if failures == 0 => Duration::ZERO,
            Some(doubled) => doubled.min(self.max),
            None if self.initial.is_zero() => Duration::ZERO,
            None => self.max,
        }
    }

    /// The window in which the backoff ends that begins at `since`; `None` without a backoff.
    pub(super) fn expiry(&self, since: Time, failures: u32) -> Option<Time> {
        let has_backoff = failures > 0 && !self.max.is_zero();
        has_backoff.then(|| (since + self.duration(failures)).truncated_to_second())
    }
}

/// Whether the backoff lasts: until the window in which it ends has passed.
pub(super) fn is_backing_off(expiry: Option<Time>, now: Time) -> bool {
    expiry.is_some_and(|expiry| expiry >= now.truncated_to_second())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_maximum() {
        let secs = |failures| Backoff::default().duration(failures).as_secs();
        assert_eq!([1, 2, 3, 4, 5, 6].map(secs), [1, 2, 4, 8, 10, 10]);
        assert_eq!(secs(0), 0);
        assert_eq!(secs(64), 10);
        assert_eq!(secs(u32::MAX), 10);
    }

    #[test]
    fn backoff_ends_with_its_window() {
        let expiry = Backoff::default().expiry(Time::from_millis(300), 1);
        assert_eq!(expiry, Some(Time::from_secs(1)));
        assert!(is_backing_off(expiry, Time::from_millis(1999)));
        assert!(!is_backing_off(expiry, Time::from_millis(2000)));
    }

    #[test]
    fn without_failures_or_maximum_there_is_no_backoff() {
        let off = Backoff {
            max: Duration::ZERO,
            ..Backoff::default()
        };
        assert_eq!(off.expiry(Time::from_secs(1), 3), None);
        assert_eq!(Backoff::default().expiry(Time::from_secs(1), 0), None);
        assert!(!is_backing_off(None, Time::default()));
    }
}
