//! Points in time.

use std::fmt;

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

    /// The time of an API object; saturates at the ends of the range.
    pub fn from_api(time: &Time) -> Timestamp {
        Timestamp::from_jiff(time.0)
    }

    /// The same as an API object has it.
    pub fn to_api(self) -> Time {
        Time(self.to_jiff())
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
    fn years_out_of_range_saturate() {
        let far = Timestamp::from_rfc3339("9000-01-01T00:00:00Z").unwrap();
        assert_eq!(far, Timestamp::from_nanos(i64::MAX));
        let old = Timestamp::from_rfc3339("0001-01-01T00:00:00Z").unwrap();
        assert_eq!(old.as_nanos(), i64::MIN);
    }
}
