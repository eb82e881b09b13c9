//! `sleep`.

use std::io::Write;
use std::time::Duration;

use crate::outcome::{Failure, Outcome, shown};

pub(crate) fn run(args: &[Vec<u8>], _: &mut dyn Write) -> Outcome {
    if args.is_empty() {
        return Err(Failure::usage("give a duration"));
    }
    let mut total = Duration::ZERO;
    for arg in args {
        let duration = duration(arg).ok_or_else(|| {
            let arg = shown(arg);
            Failure::usage(format!(
                "{arg}: not a duration such as 0.5, 90s, 5m, 2h, 1d or infinity"
            ))
        })?;
        total = total.saturating_add(duration);
    }
    // The standard library sleeps on after signals, and in steps if the kernel cannot count so far.
    std::thread::sleep(total);
    Ok(0)
}

fn duration(text: &[u8]) -> Option<Duration> {
    let text = std::str::from_utf8(text).ok()?;
    if matches!(text, "infinity" | "inf") {
        return Some(Duration::MAX);
    }
    let (number, factor) = match text.as_bytes().last()? {
        b's' => (text.strip_suffix('s')?, 1.0),
        b'm' => (text.strip_suffix('m')?, 60.0),
        b'h' => (text.strip_suffix('h')?, 3600.0),
        b'd' => (text.strip_suffix('d')?, 86_400.0),
        _ => (text, 1.0),
    };
    // Only the usual forms: no exponents, no `NaN`.
    if !number
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.')
    {
        return None;
    }
    let seconds = number.parse::<f64>().ok()? * factor;
    Some(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_fractions_and_units() {
        for (text, expected) in [
            ("0.25", Some(Duration::from_millis(250))),
            (".5m", Some(Duration::from_secs(30))),
            ("2h", Some(Duration::from_secs(7200))),
            ("infinity", Some(Duration::MAX)),
            ("99999999999999999999d", Some(Duration::MAX)),
            ("", None),
            ("s", None),
            ("-1", None),
            ("1e3", None),
            ("nan", None),
            ("1.2.3", None),
        ] {
            assert_eq!(duration(text.as_bytes()), expected, "{text}");
        }
    }
}
