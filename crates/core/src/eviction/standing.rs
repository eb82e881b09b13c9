//! How near the memory thresholds are, and how soon to look again.

use std::time::Duration;

use crate::threshold::{Signal, StarvedResource};

use super::engine::Engine;
use super::observation::{Observation, Readings};

/// As fast as a process is expected to take memory, in bytes per second, if nothing faster was
/// measured: about what one core writes on a slow machine.
const EXPECTED_RATE: f64 = (1_u64 << 30) as f64;
/// A measured rate may double before the next look.
const CAUTION: f64 = 2.0;
/// Looks before a threshold is reached at the expected rate.
const LOOKS_AHEAD: f64 = 4.0;
/// A look costs some 50 µs: 0.3 % of a core.
const SHORTEST: Duration = Duration::from_millis(15);
/// Upstream's `evictionMonitoringPeriod`.
const LONGEST: Duration = Duration::from_secs(10);
/// While a threshold is met and no killed pod is waited for.
const MET: Duration = Duration::from_secs(1);

/// The memory thresholds of a node, in bytes. Worked out once, because a look must not cost more
/// than a few comparisons.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct MemoryThresholds {
    /// Of which capacities they were worked out.
    capacities: [Option<i64>; 2],
    all: Vec<MemoryThreshold>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MemoryThreshold {
    signal: Signal,
    at: i64,
    is_hard: bool,
}

/// Where the memory stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Standing {
    /// How much may still go until the next threshold is reached; `None` if none is ahead.
    pub(super) ahead: Option<i64>,
    /// Whether a threshold is met.
    pub(super) is_met: bool,
    /// Whether a hard one is.
    pub(super) is_hard_met: bool,
}

impl MemoryThresholds {
    /// Whether they must be computed again for these readings.
    pub(super) fn is_outdated(&self, readings: &Readings) -> bool {
        self.capacities != capacities(readings)
    }

    pub(super) fn new(
        engine: &Engine,
        observation: &Observation,
        readings: &Readings,
    ) -> MemoryThresholds {
        let forecasts = engine.forecast(observation).into_iter();
        let memory = forecasts.filter(|found| found.signal.resource() == StarvedResource::Memory);
        let all = memory.map(|found| MemoryThreshold {
            signal: found.signal,
            at: found.line,
            is_hard: engine.threshold(found.threshold).is_hard(),
        });
        MemoryThresholds {
            capacities: capacities(readings),
            all: all.collect(),
        }
    }

    /// Where the memory stands.
    pub(super) fn standing(&self, readings: &Readings) -> Standing {
        let mut standing = Standing::default();
        for threshold in &self.all {
            let Some(reading) = readings.get(threshold.signal) else {
                continue;
            };
            let distance = reading.available.saturating_sub(threshold.at);
            if distance < 0 {
                standing.is_met = true;
                standing.is_hard_met |= threshold.is_hard;
            } else {
                let ahead = standing.ahead.map_or(distance, |ahead| ahead.min(distance));
                standing.ahead = Some(ahead);
            }
        }
        standing
    }

    /// The highest threshold on a signal: the first that is reached.
    pub(super) fn first(&self, signal: Signal) -> Option<i64> {
        let of_signal = self.all.iter().filter(|one| one.signal == signal);
        of_signal.map(|one| one.at).max()
    }
}

fn capacities(readings: &Readings) -> [Option<i64>; 2] {
    let signals = [Signal::MemoryAvailable, Signal::AllocatableMemoryAvailable];
    signals.map(|signal| readings.get(signal).map(|found| found.capacity))
}

/// How soon to look again. `rate` is what was measured last, in bytes per second; `is_dying` says
/// whether a pod that was killed still holds memory.
pub(super) fn pace(standing: &Standing, is_dying: bool, rate: f64) -> Duration {
    if is_dying {
        return SHORTEST;
    }
    let ahead = standing
        .ahead
        .map_or(LONGEST, |ahead| until_looked(ahead, rate));
    if standing.is_met {
        return ahead.min(MET);
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
    fn the_nearer_a_threshold_the_sooner_the_next_look() {
        for (mebibytes, rate, expected) in [
            (1 << 20, 0.0, LONGEST),
            (4096, 0.0, Duration::from_secs(1)),
            (400, 0.0, Duration::from_micros(97_656)),
            (10, 0.0, SHORTEST),
            (0, 0.0, SHORTEST),
            // Twice as fast as expected, and that may double.
            (4096, 2.0 * EXPECTED_RATE, Duration::from_millis(250)),
        ] {
            let found = pace(&ahead(mebibytes), false, rate);
            let difference = found.as_secs_f64() - expected.as_secs_f64();
            assert!(difference.abs() < 1e-5, "{mebibytes} MiB: {found:?}");
        }
    }

    #[test]
    fn looks_continue_beyond_a_threshold_and_are_faster_after_a_kill() {
        let met = Standing {
            is_met: true,
            is_hard_met: true,
            ahead: None,
        };
        assert_eq!(pace(&met, false, 0.0), MET);
        assert_eq!(pace(&met, true, 0.0), SHORTEST);
        // A soft threshold is met and the hard one is near.
        let between = Standing {
            ahead: Some(MIB),
            is_hard_met: false,
            ..met
        };
        assert_eq!(pace(&between, false, 0.0), SHORTEST);
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
