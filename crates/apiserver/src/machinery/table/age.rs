//! Durations in the format of `kubectl get`.
//!
//! Matches v1.36 `HumanDuration` in apimachinery/pkg/util/duration/duration.go.

use plimsoll_core::object::timestamp::Timestamp;

const SECOND: i64 = 1_000_000_000;

/// The time between two points with two or three significant figures. A start of up to two
/// seconds in the future counts as now, since clocks differ.
pub(super) fn human_duration(from: Timestamp, to: Timestamp) -> String {
    let nanos = to.as_nanos().saturating_sub(from.as_nanos());
    let seconds = nanos / SECOND;
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1..0 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        _ if minutes < 10 => two(minutes, "m", seconds % 60, "s"),
        _ if minutes < 3 * 60 => format!("{minutes}m"),
        _ if hours < 8 => two(hours, "h", minutes % 60, "m"),
        _ if hours < 48 => format!("{hours}h"),
        _ if days < 8 => two(days, "d", hours % 24, "h"),
        _ if days < 2 * 365 => format!("{days}d"),
        _ if days < 8 * 365 => two(days / 365, "y", days % 365, "d"),
        _ => format!("{}y", days / 365),
    }
}

/// The smaller unit is left out when it is zero.
fn two(large: i64, large_unit: &str, small: i64, small_unit: &str) -> String {
    match small {
        0 => format!("{large}{large_unit}"),
        _ => format!("{large}{large_unit}{small}{small_unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_lose_precision_with_age() {
        for (seconds, expected) in [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (599, "9m59s"),
            (600, "10m"),
            (10_799, "179m"),
            (10_800, "3h"),
            (10_860, "3h1m"),
            (28_800, "8h"),
            (172_799, "47h"),
            (172_800, "2d"),
            (176_400, "2d1h"),
            (691_200, "8d"),
            (63_072_000, "2y"),
            (63_158_400, "2y1d"),
            (252_288_000, "8y"),
        ] {
            let now = Timestamp::from_secs(1_000_000_000);
            let then = Timestamp::from_secs(1_000_000_000 - seconds);
            assert_eq!(human_duration(then, now), expected, "{seconds}");
        }
    }
}
