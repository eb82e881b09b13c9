//! Times as Go reads and writes them (RFC 3339).

use k8s_openapi::jiff::Timestamp;

use super::print::quote;

/// The layout Go's errors quote.
const SECONDS: &str = "2006-01-02T15:04:05Z07:00";
const MICROSECONDS: &str = "2006-01-02T15:04:05.000000Z07:00";

/// Whole seconds in UTC, as `metav1.Time` is written after reading `text`.
pub(crate) fn normalize_seconds(text: &str) -> Result<String, String> {
    let time = parse(text, SECONDS)?;
    Ok(time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

/// Microseconds in UTC, as `metav1.MicroTime` is written after reading `text`.
pub(crate) fn normalize_microseconds(text: &str) -> Result<String, String> {
    let time = parse(text, MICROSECONDS)?;
    Ok(time.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string())
}

fn parse(text: &str, layout: &str) -> Result<Timestamp, String> {
    let refuse =
        |what: String| format!("parsing time {} as {}: {what}", quote(text), quote(layout));
    let mut rest = text;
    for element in [
        "2006", "-", "01", "-", "02", "T", "15", ":", "04", ":", "05",
    ] {
        let wanted = || {
            refuse(format!(
                "cannot parse {} as {}",
                quote(rest),
                quote(element)
            ))
        };
        rest = match element.len() {
            1 => rest.strip_prefix(element).ok_or_else(wanted)?,
            digits => strip_digits(rest, digits).ok_or_else(wanted)?,
        };
    }
    if let Some(fraction) = rest.strip_prefix(['.', ',']) {
        let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
        if digits > 0 {
            rest = &fraction[digits..];
        }
    }
    let zone_is_whole = rest == "Z"
        || rest.strip_prefix(['+', '-']).is_some_and(|zone| {
            let hours = strip_digits(zone, 2).and_then(|zone| zone.strip_prefix(':'));
            hours.and_then(|minutes| strip_digits(minutes, 2)) == Some("")
        });
    if !zone_is_whole {
        return Err(match rest.strip_prefix('Z') {
            Some(extra) => format!("parsing time {}: extra text: {}", quote(text), quote(extra)),
            None => refuse(format!("cannot parse {} as \"Z07:00\"", quote(rest))),
        });
    }
    let plain = text.replace(',', ".");
    plain.parse().map_err(|_| out_of_range(text))
}

fn strip_digits(text: &str, count: usize) -> Option<&str> {
    let (digits, rest) = text.split_at_checked(count)?;
    digits.bytes().all(|b| b.is_ascii_digit()).then_some(rest)
}

/// The first part that no date or clock has. Digits were checked before.
fn out_of_range(text: &str) -> String {
    let number = |range: std::ops::Range<usize>| text[range].parse::<u32>().unwrap_or(0);
    let part = if !(1..=12).contains(&number(5..7)) {
        "month"
    } else if number(11..13) > 23 {
        "hour"
    } else if number(14..16) > 59 {
        "minute"
    } else if number(17..19) > 59 {
        "second"
    } else {
        "day"
    };
    format!("parsing time {}: {part} out of range", quote(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_utc() {
        assert_eq!(
            normalize_seconds("2026-01-02T03:04:05.9+01:00").as_deref(),
            Ok("2026-01-02T02:04:05Z")
        );
        assert_eq!(
            normalize_microseconds("2026-01-02T03:04:05Z").as_deref(),
            Ok("2026-01-02T03:04:05.000000Z")
        );
    }

    #[test]
    fn what_is_no_time_is_told_in_go_s_words() {
        for (text, want) in [
            (
                "yesterday",
                r#"parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006""#,
            ),
            (
                "2026-01-02T03:04:05",
                r#"parsing time "2026-01-02T03:04:05" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "Z07:00""#,
            ),
            (
                "2026-13-02T03:04:05Z",
                r#"parsing time "2026-13-02T03:04:05Z": month out of range"#,
            ),
            (
                "2026-02-30T03:04:05Z",
                r#"parsing time "2026-02-30T03:04:05Z": day out of range"#,
            ),
        ] {
            assert_eq!(normalize_seconds(text), Err(want.to_owned()));
        }
    }
}
