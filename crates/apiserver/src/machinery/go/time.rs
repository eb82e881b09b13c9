//! Times as Go reads them from JSON.
//!
//! Matches Go's time/format.go, `Parse`, for the two layouts that API objects have.

use k8s_openapi::jiff::{civil::DateTime, fmt::strtime, tz::Offset};
use plimsoll_core::problem::quoted;

/// The layout of `metav1.Time`.
const SECONDS: &str = "2006-01-02T15:04:05Z07:00";
/// The layout of `metav1.MicroTime`.
const MICROS: &str = "2006-01-02T15:04:05.000000Z07:00";

/// How much of a second a time has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Precision {
    /// None; fractions are read and dropped.
    Seconds,
    /// Exactly six digits.
    Micros,
}

/// Reads a time and prints it as the API does, in UTC.
pub(crate) fn normalize(text: &str, precision: Precision) -> Result<String, String> {
    let layout = match precision {
        Precision::Seconds => SECONDS,
        Precision::Micros => MICROS,
    };
    let parser = Parser {
        whole: text,
        rest: text,
        layout,
    };
    let time = parser.parse(precision)?;
    let format = match precision {
        Precision::Seconds => "%Y-%m-%dT%H:%M:%SZ",
        Precision::Micros => "%Y-%m-%dT%H:%M:%S.%6fZ",
    };
    strtime::format(format, time).map_err(|error| error.to_string())
}

struct Parser<'a> {
    whole: &'a str,
    rest: &'a str,
    layout: &'static str,
}

impl<'a> Parser<'a> {
    fn parse(mut self, precision: Precision) -> Result<DateTime, String> {
        let year = self.digits("2006", 4, 4)?;
        self.literal("-")?;
        let month = self.digits("01", 2, 2)?;
        self.in_range(month, 1..=12, "month")?;
        self.literal("-")?;
        let day = self.digits("02", 2, 2)?;
        self.literal("T")?;
        let hour = self.digits("15", 1, 2)?;
        self.in_range(hour, 0..=23, "hour")?;
        self.literal(":")?;
        let minute = self.digits("04", 2, 2)?;
        self.in_range(minute, 0..=59, "minute")?;
        self.literal(":")?;
        let second = self.digits("05", 2, 2)?;
        self.in_range(second, 0..=59, "second")?;
        let nanos = match precision {
            Precision::Seconds => self.optional_fraction(),
            Precision::Micros => self.fraction(".000000")?,
        };
        let offset = self.offset()?;
        if !self.rest.is_empty() {
            let (whole, rest) = (quoted(self.whole), quoted(self.rest));
            return Err(format!("parsing time {whole}: extra text: {rest}"));
        }
        let date = DateTime::new(
            i16::try_from(year).unwrap_or(i16::MAX),
            small(month),
            small(day),
            small(hour),
            small(minute),
            small(second),
            nanos,
        );
        let date = date.map_err(|_| self.out_of_range("day"))?;
        let instant = offset
            .to_timestamp(date)
            .map_err(|_| self.out_of_range("year"))?;
        Ok(Offset::UTC.to_datetime(instant))
    }

    fn cannot_parse(&self, at: &str, element: &str) -> String {
        format!(
            "parsing time {} as {}: cannot parse {} as {}",
            quoted(self.whole),
            quoted(self.layout),
            quoted(at),
            quoted(element)
        )
    }

    fn out_of_range(&self, what: &str) -> String {
        format!("parsing time {}: {what} out of range", quoted(self.whole))
    }

    fn in_range(
        &self,
        number: u32,
        range: std::ops::RangeInclusive<u32>,
        what: &str,
    ) -> Result<(), String> {
        if range.contains(&number) {
            Ok(())
        } else {
            Err(self.out_of_range(what))
        }
    }

    fn literal(&mut self, literal: &str) -> Result<(), String> {
        match self.rest.strip_prefix(literal) {
            Some(rest) => self.rest = rest,
            None => return Err(self.cannot_parse(self.rest, literal)),
        }
        Ok(())
    }

    /// Between `least` and `most` digits.
    fn digits(&mut self, element: &str, least: usize, most: usize) -> Result<u32, String> {
        let count = self
            .rest
            .bytes()
            .take(most)
            .take_while(u8::is_ascii_digit)
            .count();
        if count < least {
            return Err(self.cannot_parse(self.rest, element));
        }
        let (digits, rest) = self.rest.split_at(count);
        self.rest = rest;
        Ok(digits.parse().unwrap_or_default())
    }

    /// A point or comma and digits, as many as there are.
    fn optional_fraction(&mut self) -> i32 {
        let Some(behind) = self.rest.strip_prefix(['.', ',']) else {
            return 0;
        };
        let count = behind.bytes().take_while(u8::is_ascii_digit).count();
        if count == 0 {
            return 0;
        }
        self.rest = &behind[count..];
        nanos(&behind[..count])
    }

    /// A point or comma and exactly six digits.
    fn fraction(&mut self, element: &str) -> Result<i32, String> {
        let behind = self.rest.strip_prefix(['.', ',']);
        let digits = behind.and_then(|behind| behind.get(..6));
        match digits.filter(|digits| digits.bytes().all(|b| b.is_ascii_digit())) {
            Some(digits) => {
                self.rest = &self.rest[7..];
                Ok(nanos(digits))
            }
            None => Err(self.cannot_parse(self.rest, element)),
        }
    }

    /// `Z` or `±hh:mm`.
    fn offset(&mut self) -> Result<Offset, String> {
        const ELEMENT: &str = "Z07:00";
        if let Some(rest) = self.rest.strip_prefix('Z') {
            self.rest = rest;
            return Ok(Offset::UTC);
        }
        let wrong = self.cannot_parse(self.rest, ELEMENT);
        let text = self.rest.get(..6).ok_or_else(|| wrong.clone())?;
        let number = |text: &str| -> Option<i32> {
            let is_digits = text.bytes().all(|b| b.is_ascii_digit());
            is_digits.then(|| text.parse().ok())?
        };
        let sign = match text.as_bytes()[0] {
            b'+' => 1,
            b'-' => -1,
            _ => return Err(wrong),
        };
        let (Some(hours), true, Some(minutes)) =
            (number(&text[1..3]), &text[3..4] == ":", number(&text[4..6]))
        else {
            return Err(wrong);
        };
        if hours > 24 || minutes > 60 {
            let what = if hours > 24 {
                "time zone offset hour"
            } else {
                "time zone offset minute"
            };
            return Err(self.out_of_range(what));
        }
        self.rest = &self.rest[6..];
        Offset::from_seconds(sign * (hours * 3600 + minutes * 60)).map_err(|_| wrong)
    }
}

/// The first nine digits as billionths.
fn nanos(digits: &str) -> i32 {
    let padded = format!("{digits:0<9}");
    padded[..9].parse().unwrap_or_default()
}

fn small(number: u32) -> i8 {
    i8::try_from(number).unwrap_or(i8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_printed_in_utc() {
        let seconds = |text| normalize(text, Precision::Seconds).unwrap();
        assert_eq!(
            seconds("2026-01-01T01:00:00.999+01:00"),
            "2026-01-01T00:00:00Z"
        );
        assert_eq!(seconds("2026-01-01T5:00:00Z"), "2026-01-01T05:00:00Z");
        let micros = normalize("2026-01-01T00:00:00.000120Z", Precision::Micros).unwrap();
        assert_eq!(micros, "2026-01-01T00:00:00.000120Z");
    }

    #[test]
    fn errors_match_go() {
        let error = |text| normalize(text, Precision::Seconds).unwrap_err();
        assert_eq!(
            error("today"),
            "parsing time \"today\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"today\" as \"2006\""
        );
        assert_eq!(
            error("2026-13-01T00:00:00Z"),
            "parsing time \"2026-13-01T00:00:00Z\": month out of range"
        );
        assert_eq!(
            error("2026-02-30T00:00:00Z"),
            "parsing time \"2026-02-30T00:00:00Z\": day out of range"
        );
        assert_eq!(
            error("2026-01-01T00:00:00Zx"),
            "parsing time \"2026-01-01T00:00:00Zx\": extra text: \"x\""
        );
        assert_eq!(
            normalize("2026-01-01T00:00:00Z", Precision::Micros).unwrap_err(),
            "parsing time \"2026-01-01T00:00:00Z\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"Z\" as \".000000\""
        );
    }
}
