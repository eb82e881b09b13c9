//! Points in time.

use std::fmt;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff;

/// A point in time: nanoseconds since 1970, from 1677 to 2262.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// That many nanoseconds after the beginning of 1970.
    pub const fn from_nanos(nanos: i64) -> Timestamp {
        Timestamp(nanos)
    }

    /// That many seconds after the beginning of 1970; saturates.
    pub const fn from_secs(secs: i64) -> Timestamp {
        Timestamp(secs.saturating_mul(1_000_000_000))
    }

    /// The nanoseconds since the beginning of 1970.
    pub const fn as_nanos(self) -> i64 {
        self.0
    }

    /// That much later; saturates.
    pub fn saturating_add(self, duration: Duration) -> Timestamp {
        let nanos = i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
        Timestamp(self.0.saturating_add(nanos))
    }

    /// That much earlier; saturates.
    pub fn saturating_sub(self, duration: Duration) -> Timestamp {
        let nanos = i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
        Timestamp(self.0.saturating_sub(nanos))
    }

    /// How long ago `earlier` was; zero if it is not earlier.
    pub fn saturating_since(self, earlier: Timestamp) -> Duration {
        let nanos = i128::from(self.0) - i128::from(earlier.0);
        u64::try_from(nanos).map_or(Duration::ZERO, Duration::from_nanos)
    }

    /// The time of an API object; saturates at the ends of the range.
    pub fn from_api(time: &Time) -> Timestamp {
        Timestamp::from_jiff(time.0)
    }

    /// The same as an API object has it.
    pub fn to_api(self) -> Time {
        Time(self.to_jiff())
    }

    /// The same without the part of a second, as the API writes most times.
    pub fn to_api_seconds(self) -> Time {
        let secs = self.0.div_euclid(1_000_000_000);
        Timestamp::from_secs(secs).to_api()
    }

    /// Reads an RFC 3339 text such as `2026-01-01T00:00:00Z`.
    pub fn from_rfc3339(text: &str) -> Option<Timestamp> {
        text.parse().ok().map(Timestamp::from_jiff)
    }

    fn from_jiff(time: jiff::Timestamp) -> Timestamp {
        let nanos = time.as_nanosecond();
        let end = if nanos < 0 { i64::MIN } else { i64::MAX };
        Timestamp(i64::try_from(nanos).unwrap_or(end))
    }

    fn to_jiff(self) -> jiff::Timestamp {
        jiff::Timestamp::from_nanosecond(self.0.into())
            .expect("64 bits of nanoseconds are within jiff's range")
    }
}

/// RFC 3339, in UTC, with as many digits of a second as there are.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.to_jiff().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_and_printed_alike() {
        for text in [
            "2026-01-01T00:00:00Z",
            "1969-12-31T23:59:59.5Z",
            "1970-01-01T00:00:00.000000001Z",
        ] {
            let time = Timestamp::from_rfc3339(text).unwrap();
            assert_eq!(time.to_string(), text);
            assert_eq!(Timestamp::from_api(&time.to_api()), time);
        }
        assert_eq!(Timestamp::from_rfc3339("yesterday"), None);
    }

    #[test]
    fn api_times_are_whole_seconds() {
        for (text, whole) in [
            ("2026-01-01T00:00:00.9Z", "2026-01-01T00:00:00Z"),
            ("1969-12-31T23:59:59.5Z", "1969-12-31T23:59:59Z"),
        ] {
            let time = Timestamp::from_rfc3339(text).unwrap().to_api_seconds();
            assert_eq!(Timestamp::from_api(&time).to_string(), whole);
        }
        Timestamp(i64::MIN).to_api_seconds();
    }

    #[test]
    fn sums_and_differences_saturate() {
        let (early, late) = (Timestamp::from_secs(10), Timestamp::from_secs(70));
        assert_eq!(early.saturating_add(Duration::from_secs(60)), late);
        assert_eq!(late.saturating_since(early), Duration::from_secs(60));
        assert_eq!(early.saturating_since(late), Duration::ZERO);
        let (first, last) = (Timestamp(i64::MIN), Timestamp(i64::MAX));
        assert_eq!(late.saturating_add(Duration::MAX), last);
        assert_eq!(last.saturating_since(first), Duration::from_nanos(u64::MAX));
    }

    #[test]
    fn years_out_of_range_saturate() {
        let far = Timestamp::from_rfc3339("9000-01-01T00:00:00Z").unwrap();
        assert_eq!(far, Timestamp::from_nanos(i64::MAX));
        let old = Timestamp::from_rfc3339("0001-01-01T00:00:00Z").unwrap();
        assert_eq!(old.as_nanos(), i64::MIN);
    }
}
