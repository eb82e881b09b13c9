//! How far each threshold is, and when it will be reached at the present rate.

use crate::object::timestamp::Timestamp;
use crate::threshold::{Duration, Operator, Signal, Threshold};

use super::decision::ThresholdId;
use super::observation::{Reading, Readings};

/// How many measurements of a signal are kept.
pub(super) const SAMPLES: usize = 8;

/// One measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sample {
    pub(super) time: Timestamp,
    pub(super) available: i64,
    pub(super) capacity: i64,
}

/// The latest measurements of one signal, oldest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Trend {
    samples: [Sample; SAMPLES],
    len: usize,
}

impl Trend {
    pub(super) fn samples(&self) -> &[Sample] {
        &self.samples[..self.len]
    }

    /// Adds a measurement; one that is not newer than the last says nothing and is dropped.
    pub(super) fn push(&mut self, sample: Sample) {
        if self
            .samples()
            .last()
            .is_some_and(|last| sample.time <= last.time)
        {
            return;
        }
        if self.len == SAMPLES {
            self.samples.rotate_left(1);
            self.len -= 1;
        }
        self.samples[self.len] = sample;
        self.len += 1;
    }

    /// By how much what is left changes per second: the slope of the least-squares line,
    ///   sum((t - mean t) * (a - mean a)) / sum((t - mean t)^2)
    /// 100 MiB, 90 MiB, 80 MiB at one second intervals are -10 MiB/s. `None` below two samples.
    pub(super) fn change_per_second(&self) -> Option<f64> {
        let [first, _, ..] = self.samples() else {
            return None;
        };
        let points = self.samples().iter().map(|sample| {
            let seconds = (sample.time - first.time).as_secs_f64();
            (
                seconds,
                float(sample.available.wrapping_sub(first.available)),
            )
        });
        let count = float(i64::try_from(self.len).unwrap_or(i64::MAX));
        let (sum_t, sum_a) = points
            .clone()
            .fold((0.0, 0.0), |(t, a), p| (t + p.0, a + p.1));
        let (mean_t, mean_a) = (sum_t / count, sum_a / count);
        let (covariance, variance) = points.fold((0.0, 0.0), |(c, v), (t, a)| {
            (
                c + (t - mean_t) * (a - mean_a),
                v + (t - mean_t) * (t - mean_t),
            )
        });
        Some(covariance / variance)
    }
}

/// The latest measurements of all signals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Trends([Trend; Signal::ALL.len()]);

impl Trends {
    pub(super) fn of(&self, signal: Signal) -> &Trend {
        &self.0[signal as usize]
    }

    pub(super) fn of_mut(&mut self, signal: Signal) -> &mut Trend {
        &mut self.0[signal as usize]
    }

    /// Notes the readings; those of unknown time count as of `now`.
    pub(super) fn note(&mut self, now: Timestamp, readings: &Readings) {
        for signal in Signal::ALL {
            if let Some(reading) = readings.get(signal) {
                self.of_mut(signal).push(Sample {
                    time: reading.time.unwrap_or(now),
                    available: reading.available,
                    capacity: reading.capacity,
                });
            }
        }
    }

    /// In how long the first of the lines that are not met will be.
    pub(super) fn soonest_crossing(&self, lines: &[Threshold]) -> Option<Duration> {
        let crossing = |threshold: &Threshold| {
            let latest = self.of(threshold.signal).samples().last()?;
            let reading = Reading {
                available: latest.available,
                capacity: latest.capacity,
                time: Some(latest.time),
            };
            let distance = distance(threshold, &reading);
            let lost_in = self.time_to_lose(threshold.signal, distance);
            lost_in.filter(|_| distance >= 0 && threshold.operator != Operator::Never)
        };
        lines.iter().filter_map(crossing).min()
    }

    /// In how long the signal will have lost `amount` at the present rate.
    pub(super) fn time_to_lose(&self, signal: Signal, amount: i64) -> Option<Duration> {
        let change = self.of(signal).change_per_second()?;
        (change < 0.0).then(|| seconds(float(amount.max(0)) / -change))
    }
}

/// Where a threshold stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Forecast {
    /// The threshold.
    pub threshold: ThresholdId,
    /// Its signal.
    pub signal: Signal,
    /// What is left.
    pub available: i64,
    /// Where the line is on this node.
    pub line: i64,
    /// How much may still go until the threshold is met; negative by how much it is missed.
    pub distance: i64,
    /// By how much what is left changes per second; `None` with fewer than two measurements.
    pub change_per_second: Option<f64>,
    /// When the line is reached at that rate, counted from the last measurement; zero where it
    /// is met, `None` where the signal does not fall.
    pub reached_in: Option<Duration>,
}

/// The forecast for a threshold whose signal was observed.
pub(super) fn forecast(
    id: ThresholdId,
    threshold: &Threshold,
    reading: &Reading,
    trends: &Trends,
) -> Forecast {
    let distance = distance(threshold, reading);
    let reached_in = if distance < 0 {
        Some(Duration::ZERO)
    } else {
        trends.time_to_lose(threshold.signal, distance)
    };
    Forecast {
        threshold: id,
        signal: threshold.signal,
        available: reading.available,
        line: line(threshold, reading),
        distance,
        change_per_second: trends.of(threshold.signal).change_per_second(),
        reached_in,
    }
}

fn line(threshold: &Threshold, reading: &Reading) -> i64 {
    let capacity = reading.capacity_quantity(threshold.signal);
    threshold.value.at_capacity(&capacity).value()
}

fn distance(threshold: &Threshold, reading: &Reading) -> i64 {
    reading.available.saturating_sub(line(threshold, reading))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "an estimate needs no last digits"
)]
fn float(number: i64) -> f64 {
    number as f64
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "float to integer casts saturate"
)]
fn seconds(seconds: f64) -> Duration {
    Duration::from_nanos((seconds * 1e9) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: i64 = 1 << 20;

    fn falling(from_mib: i64, mib_per_second: i64, count: i64) -> Trends {
        let mut trends = Trends::default();
        for second in 0..count {
            trends.of_mut(Signal::MemoryAvailable).push(Sample {
                time: Timestamp::from_secs(second),
                available: (from_mib - second * mib_per_second) * MIB,
                ..Sample::default()
            });
        }
        trends
    }

    #[test]
    fn a_steady_fall_is_measured_exactly() {
        let trends = falling(100, 10, 3);
        let trend = trends.of(Signal::MemoryAvailable);
        assert_eq!(trend.change_per_second(), Some(-10.0 * 1_048_576.0));
        let left = trends.time_to_lose(Signal::MemoryAvailable, 80 * MIB);
        assert_eq!(left, Some(Duration::from_secs(8)));
    }

    #[test]
    fn only_the_latest_measurements_count_and_repeats_do_not() {
        let mut trends = falling(1000, 100, 4);
        for second in 4..12 {
            let sample = Sample {
                time: Timestamp::from_secs(second),
                available: 600 * MIB,
                ..Sample::default()
            };
            let trend = trends.of_mut(Signal::MemoryAvailable);
            trend.push(sample);
            trend.push(sample);
        }
        let trend = trends.of(Signal::MemoryAvailable);
        assert_eq!(trend.samples().len(), SAMPLES);
        assert_eq!(trend.change_per_second(), Some(0.0));
        assert_eq!(trends.time_to_lose(Signal::MemoryAvailable, MIB), None);
    }

    #[test]
    fn one_measurement_gives_no_rate() {
        let trends = falling(100, 10, 1);
        assert_eq!(trends.time_to_lose(Signal::MemoryAvailable, MIB), None);
    }
}
