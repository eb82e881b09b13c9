//! Moments, as the caller's clock gives them.

use std::ops::Add;
use std::time::Duration;

/// A moment: nanoseconds since an epoch of the caller's choice.
///
/// The epoch must fall on a whole second of the wall clock, since backoff ends on whole seconds;
/// the Unix epoch does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

const NANOS_PER_SEC: u64 = 1_000_000_000;

impl Time {
    /// That many nanoseconds after the epoch.
    pub const fn from_nanos(nanos: u64) -> Time {
        Time(nanos)
    }

    /// That many milliseconds after the epoch; saturates.
    pub const fn from_millis(millis: u64) -> Time {
        Time(millis.saturating_mul(1_000_000))
    }

    /// That many seconds after the epoch; saturates.
    pub const fn from_secs(secs: u64) -> Time {
        Time(secs.saturating_mul(NANOS_PER_SEC))
    }

    /// Nanoseconds since the epoch.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// How long after `earlier` it is; zero if it is not.
    pub const fn saturating_since(self, earlier: Time) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// The last whole second.
    #[must_use]
    pub const fn truncated_to_second(self) -> Time {
        Time(self.0 - self.0 % NANOS_PER_SEC)
    }
}

/// Saturates at the end of time.
impl Add<Duration> for Time {
    type Output = Time;

    fn add(self, duration: Duration) -> Time {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Time(self.0.saturating_add(nanos))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncation_keeps_whole_seconds_and_sums_saturate() {
        assert_eq!(
            Time::from_millis(2999).truncated_to_second(),
            Time::from_secs(2)
        );
        assert_eq!(Time::from_secs(2).truncated_to_second(), Time::from_secs(2));
        let end = Time::from_nanos(u64::MAX);
        assert_eq!(end + Duration::MAX, end);
        assert_eq!(Time::from_secs(1).saturating_since(end), Duration::ZERO);
    }
}
