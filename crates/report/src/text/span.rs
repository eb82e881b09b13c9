//! Human-readable durations.

/// The duration in its two largest units: `4m 10s`, `2h 5m`, `3d`; `more than a month` beyond that.
pub fn span(seconds: f64) -> String {
    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    if (0.0..0.1).contains(&seconds) {
        return "less than 0.1s".to_owned();
    }
    if seconds < 10.0 {
        return format!("{:.1}s", seconds.max(0.0));
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is not negative, and casts saturate"
    )]
    let whole = seconds as u64;
    let two = |large: u64, name: &str, small: u64, small_name: &str| {
        let (first, rest) = (whole / large, whole % large / small);
        match rest {
            0 => format!("{first}{name}"),
            rest => format!("{first}{name} {rest}{small_name}"),
        }
    };
    match whole {
        0..MINUTE => format!("{whole}s"),
        MINUTE..HOUR => two(MINUTE, "m", 1, "s"),
        HOUR..DAY => two(HOUR, "h", MINUTE, "m"),
        _ if whole > 30 * DAY => "more than a month".to_owned(),
        _ => two(DAY, "d", HOUR, "h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_their_two_largest_units() {
        let cases = [
            (-1.0, "0.0s"),
            (0.05, "less than 0.1s"),
            (0.25, "0.2s"),
            (12.9, "12s"),
            (250.0, "4m 10s"),
            (7200.0, "2h"),
            (7500.0, "2h 5m"),
            (90_000.0, "1d 1h"),
            (1e9, "more than a month"),
        ];
        for (seconds, text) in cases {
            assert_eq!(span(seconds), text);
        }
    }
}
