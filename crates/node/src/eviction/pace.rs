//! How soon to look again.

use std::time::Duration;

use super::lines::Standing;

/// As fast as a process is expected to take memory, in bytes per second, if nothing faster was
/// measured.
const EXPECTED_RATE: f64 = (1_u64 << 30) as f64;
/// A measured rate may double before the next look.
const CAUTION: f64 = 2.0;
/// Looks before a line is reached at the expected rate.
const LOOKS_AHEAD: f64 = 4.0;
const SHORTEST: Duration = Duration::from_millis(15);
const LONGEST: Duration = Duration::from_secs(10);
/// While a line is crossed and nobody is dying.
const CROSSED: Duration = Duration::from_secs(1);

/// How soon to look again. `rate` is what was measured last, in bytes per second.
pub(super) fn pause(standing: &Standing, is_dying: bool, rate: f64) -> Duration {
    if is_dying {
        return SHORTEST;
    }
    let ahead = standing
        .ahead
        .map_or(LONGEST, |ahead| until_looked(ahead, rate));
    if standing.is_met {
        return ahead.min(CROSSED);
    }
    ahead
}

fn until_looked(ahead: i64, rate: f64) -> Duration {
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    let ahead = ahead.max(0) as f64;
    let seconds = ahead / EXPECTED_RATE.max(rate * CAUTION) / LOOKS_AHEAD;
    Duration::from_secs_f64(seconds.clamp(SHORTEST.as_secs_f64(), LONGEST.as_secs_f64()))
}

/// Measures how fast memory goes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rate {
    last: Option<(i64, i64)>,
    /// Bytes per second; never below zero.
    pub(super) falling: f64,
}

impl Rate {
    /// Takes what is left at a time in nanoseconds.
    pub(super) fn note(&mut self, nanos: i64, available: i64) {
        if let Some((before, had)) = self.last.filter(|(before, _)| nanos > *before) {
            #[expect(clippy::cast_precision_loss, reason = "an estimate")]
            let (lost, seconds) = ((had - available) as f64, (nanos - before) as f64 / 1e9);
            self.falling = (lost / seconds).max(0.0);
        }
        self.last = Some((nanos, available));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: i64 = 1 << 20;

    fn ahead(mebibytes: i64) -> Standing {
        Standing {
            ahead: Some(mebibytes * MIB),
            ..Standing::default()
        }
    }

    #[test]
    fn the_nearer_a_line_the_sooner_the_next_look() {
        for (mebibytes, rate, expected) in [
            (1 << 20, 0.0, LONGEST),
            (4096, 0.0, Duration::from_secs(1)),
            (400, 0.0, Duration::from_micros(97_656)),
            (10, 0.0, SHORTEST),
            (0, 0.0, SHORTEST),
            // Twice as fast as expected, and that may double.
            (4096, 2.0 * EXPECTED_RATE, Duration::from_millis(250)),
        ] {
            let found = pause(&ahead(mebibytes), false, rate);
            let difference = found.as_secs_f64() - expected.as_secs_f64();
            assert!(difference.abs() < 1e-5, "{mebibytes} MiB: {found:?}");
        }
    }

    #[test]
    fn behind_a_line_it_goes_on_and_faster_while_somebody_dies() {
        let crossed = Standing {
            is_met: true,
            is_hard_met: true,
            ahead: None,
        };
        assert_eq!(pause(&crossed, false, 0.0), CROSSED);
        assert_eq!(pause(&crossed, true, 0.0), SHORTEST);
        // A soft line is crossed and the hard one is near.
        let between = Standing {
            ahead: Some(MIB),
            is_hard_met: false,
            ..crossed
        };
        assert_eq!(pause(&between, false, 0.0), SHORTEST);
    }

    #[test]
    fn only_a_fall_is_a_rate() {
        let mut rate = Rate::default();
        rate.note(0, 100 * MIB);
        assert!(rate.falling.abs() < 1.0);
        rate.note(500_000_000, 50 * MIB);
        #[expect(clippy::cast_precision_loss, reason = "a small number")]
        let hundred = (100 * MIB) as f64;
        assert!((rate.falling - hundred).abs() < 1.0);
        rate.note(600_000_000, 80 * MIB);
        assert!(rate.falling.abs() < 1.0);
    }
}
