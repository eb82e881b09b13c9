//! Go's durations: `1m30s`, `1.5h`, `250us`.
//!
//! Parsing and printing give the same answers and errors as Go's `time.ParseDuration` and
//! `Duration.String`, since configuration files, flags and messages carry those texts.

use std::fmt;
use std::ops::{Add, Sub};
use std::str::FromStr;

use crate::object::timestamp::Timestamp;

/// A length of time in nanoseconds, as Go has it: signed, about 292 years either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(i64);

/// Why a text is not a duration. The messages are Go's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// Malformed, or too long to be kept in 64 bits.
    #[error("time: invalid duration {}", quoted(.0))]
    Invalid(String),
    /// A number stands alone.
    #[error("time: missing unit in duration {}", quoted(.0))]
    MissingUnit(String),
    /// There is no such unit.
    #[error("time: unknown unit {} in duration {}", quoted(.unit), quoted(.text))]
    UnknownUnit {
        /// The text after the number.
        unit: String,
        /// The whole text.
        text: String,
    },
}

const MICROSECOND: u64 = 1_000;
const MILLISECOND: u64 = 1_000 * MICROSECOND;
const SECOND: u64 = 1_000 * MILLISECOND;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;

/// The magnitude of the least duration; a magnitude above it is refused.
const MAX_MAGNITUDE: u64 = 1 << 63;

impl Duration {
    /// No time at all.
    pub const ZERO: Duration = Duration(0);

    /// That many nanoseconds.
    pub const fn from_nanos(nanos: i64) -> Duration {
        Duration(nanos)
    }

    /// That many seconds; saturates.
    pub const fn from_secs(secs: i64) -> Duration {
        Duration(secs.saturating_mul(SECOND.cast_signed()))
    }

    /// That many milliseconds; saturates.
    pub const fn from_millis(millis: i64) -> Duration {
        Duration(millis.saturating_mul(MILLISECOND.cast_signed()))
    }

    /// The nanoseconds.
    pub const fn as_nanos(self) -> i64 {
        self.0
    }

    /// The seconds as a float.
    pub fn as_secs_f64(self) -> f64 {
        let second = SECOND.cast_signed();
        #[expect(
            clippy::cast_precision_loss,
            reason = "both parts are small enough to be exact"
        )]
        let (whole, rest) = ((self.0 / second) as f64, (self.0 % second) as f64);
        whole + rest / 1e9
    }

    /// Whether it is below zero.
    pub const fn is_negative(self) -> bool {
        self.0 < 0
    }
}

/// Saturates.
impl Add<Duration> for Timestamp {
    type Output = Timestamp;

    fn add(self, duration: Duration) -> Timestamp {
        Timestamp::from_nanos(self.as_nanos().saturating_add(duration.0))
    }
}

/// How long after the other it is; saturates.
impl Sub for Timestamp {
    type Output = Duration;

    fn sub(self, earlier: Timestamp) -> Duration {
        Duration(self.as_nanos().saturating_sub(earlier.as_nanos()))
    }
}

impl FromStr for Duration {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Duration, ParseError> {
        let invalid = || ParseError::Invalid(text.to_owned());
        let is_negative = text.starts_with('-');
        let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
        if rest == "0" {
            return Ok(Duration::ZERO);
        }
        if rest.is_empty() {
            return Err(invalid());
        }
        let mut magnitude = 0u64;
        while !rest.is_empty() {
            let (nanos, after) = parse_term(rest, text)?;
            // Two halves of 2^64 wrap to nothing, in Go as well.
            magnitude = magnitude.wrapping_add(nanos);
            if magnitude > MAX_MAGNITUDE {
                return Err(invalid());
            }
            rest = after;
        }
        let nanos = if is_negative {
            magnitude.cast_signed().wrapping_neg()
        } else {
            i64::try_from(magnitude).map_err(|_| invalid())?
        };
        Ok(Duration(nanos))
    }
}

/// Reads one number with its unit off the front of `rest`.
fn parse_term<'a>(rest: &'a str, text: &str) -> Result<(u64, &'a str), ParseError> {
    let invalid = || ParseError::Invalid(text.to_owned());
    let (digits, rest) = split_where(rest, |c| !c.is_ascii_digit());
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(after) => split_where(after, |c| !c.is_ascii_digit()),
        None => ("", rest),
    };
    if digits.is_empty() && fraction.is_empty() {
        return Err(invalid());
    }
    let whole = parse_whole(digits).ok_or_else(invalid)?;
    let (unit_name, rest) = split_where(rest, |c| c == '.' || c.is_ascii_digit());
    if unit_name.is_empty() {
        return Err(ParseError::MissingUnit(text.to_owned()));
    }
    let unit = unit_of(unit_name).ok_or_else(|| ParseError::UnknownUnit {
        unit: unit_name.to_owned(),
        text: text.to_owned(),
    })?;
    let mut nanos = whole.checked_mul(unit).ok_or_else(invalid)?;
    if nanos <= MAX_MAGNITUDE {
        nanos += nanos_of_fraction(fraction, unit);
    }
    if nanos > MAX_MAGNITUDE {
        return Err(invalid());
    }
    Ok((nanos, rest))
}

fn split_where(text: &str, is_end: fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(is_end).unwrap_or(text.len()))
}

/// `None` above 2^63; no digits are zero.
fn parse_whole(digits: &str) -> Option<u64> {
    if digits.is_empty() {
        return Some(0);
    }
    digits.parse().ok().filter(|whole| *whole <= MAX_MAGNITUDE)
}

/// Digits that no longer fit are dropped; they are less than a nanosecond.
fn nanos_of_fraction(digits: &str, unit: u64) -> u64 {
    let (mut fraction, mut scale) = (0u64, 1f64);
    for digit in digits.bytes().map(|byte| u64::from(byte - b'0')) {
        if fraction > (MAX_MAGNITUDE - 1) / 10 || fraction * 10 + digit > MAX_MAGNITUDE {
            break;
        }
        fraction = fraction * 10 + digit;
        scale *= 10.0;
    }
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "Go computes this in floats; the product is below one unit"
    )]
    let nanos = (fraction as f64 * (unit as f64 / scale)) as u64;
    nanos
}

fn unit_of(name: &str) -> Option<u64> {
    Some(match name {
        "ns" => 1,
        // The micro sign and the Greek letter mu look alike.
        "us" | "\u{b5}s" | "\u{3bc}s" => MICROSECOND,
        "ms" => MILLISECOND,
        "s" => SECOND,
        "m" => MINUTE,
        "h" => HOUR,
        _ => return None,
    })
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&render(self.0))
    }
}

/// Hours, minutes and seconds from one second up; below it the largest unit that leaves a digit
/// before the point.
fn render(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let magnitude = nanos.unsigned_abs();
    let text = match magnitude {
        0 => "0s".to_owned(),
        1..MICROSECOND => format!("{magnitude}ns"),
        MICROSECOND..MILLISECOND => format!("{}\u{b5}s", decimal(magnitude, MICROSECOND)),
        MILLISECOND..SECOND => format!("{}ms", decimal(magnitude, MILLISECOND)),
        _ => {
            let seconds = decimal(magnitude % MINUTE, SECOND);
            match (magnitude / HOUR, magnitude / MINUTE % 60) {
                (0, 0) => format!("{seconds}s"),
                (0, minutes) => format!("{minutes}m{seconds}s"),
                (hours, minutes) => format!("{hours}h{minutes}m{seconds}s"),
            }
        }
    };
    format!("{sign}{text}")
}

/// `magnitude / unit` without trailing zeros; `unit` is a power of ten.
fn decimal(magnitude: u64, unit: u64) -> String {
    let (whole, rest) = (magnitude / unit, magnitude % unit);
    if rest == 0 {
        return whole.to_string();
    }
    let width = unit.ilog10() as usize;
    let fraction = format!("{rest:0width$}");
    format!("{whole}.{}", fraction.trim_end_matches('0'))
}

/// The quoting of Go's package time, which escapes bytes where others escape characters.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            ' '..='\u{7f}' => out.push(c),
            _ => {
                let mut bytes = [0; 4];
                for byte in c.encode_utf8(&mut bytes).bytes() {
                    out.push_str(&format!("\\x{byte:02x}"));
                }
            }
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<i64, String> {
        text.parse()
            .map(Duration::as_nanos)
            .map_err(|error: ParseError| error.to_string())
    }

    #[test]
    fn terms_add_up_and_fractions_are_read_to_the_nanosecond() {
        assert_eq!(parsed("1h0m1s"), Ok(3_601_000_000_000));
        assert_eq!(parsed("-1.5h"), Ok(-5_400_000_000_000));
        assert_eq!(parsed("+.5s5.m"), Ok(300_500_000_000));
        assert_eq!(parsed("1\u{b5}s2\u{3bc}s3us"), Ok(6_000));
        assert_eq!(
            parsed("0.3333333333333333333h"),
            Ok(1_200_000_000_000),
            "beyond 19 digits the rest is dropped"
        );
        assert_eq!(parsed("0"), Ok(0));
    }

    #[test]
    fn errors_read_as_go_writes_them() {
        let error = |text: &str| parsed(text).unwrap_err();
        assert_eq!(error(""), "time: invalid duration \"\"");
        assert_eq!(error("-"), "time: invalid duration \"-\"");
        assert_eq!(error(".s"), "time: invalid duration \".s\"");
        assert_eq!(error("3"), "time: missing unit in duration \"3\"");
        assert_eq!(error("1d"), "time: unknown unit \"d\" in duration \"1d\"");
        assert_eq!(
            error("1\u{e9}\"\n"),
            "time: unknown unit \"\\xc3\\xa9\\\"\\x0a\" in duration \"1\\xc3\\xa9\\\"\\x0a\""
        );
    }

    #[test]
    fn the_range_is_that_of_64_bits() {
        assert_eq!(parsed("9223372036854775807ns"), Ok(i64::MAX));
        assert_eq!(parsed("-9223372036854775808ns"), Ok(i64::MIN));
        assert!(parsed("9223372036854775808ns").is_err());
        assert!(parsed("-9223372036854775809ns").is_err());
        assert!(parsed("9223372036854ms775us808ns").is_err());
        assert!(parsed("2562048h").is_err());
    }

    #[test]
    fn printing_drops_only_leading_and_trailing_zero_units() {
        let printed = |nanos| Duration::from_nanos(nanos).to_string();
        assert_eq!(printed(0), "0s");
        assert_eq!(printed(999), "999ns");
        assert_eq!(printed(1_100), "1.1\u{b5}s");
        assert_eq!(printed(2_200_000), "2.2ms");
        assert_eq!(printed(3_300_000_000), "3.3s");
        assert_eq!(printed(300_000_000_000), "5m0s");
        assert_eq!(printed(3_600_000_000_000), "1h0m0s");
        assert_eq!(printed(-90_000_000_001), "-1m30.000000001s");
        assert_eq!(printed(i64::MIN), "-2562047h47m16.854775808s");
    }
}
