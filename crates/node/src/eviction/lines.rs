//! How near the memory lines are.

use plimsoll_core::eviction::{Engine, Observation};
use plimsoll_core::threshold::{Signal, StarvedResource};

/// The memory lines of a node, in bytes. Worked out once, because a look must not cost more than
/// a few comparisons.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Lines {
    /// Of which capacities they were worked out.
    capacities: [Option<i64>; 2],
    all: Vec<Line>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Line {
    signal: Signal,
    at: i64,
    is_hard: bool,
}

/// Where the memory stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Standing {
    /// How much may still go until the next line is reached; `None` if none is ahead.
    pub(super) ahead: Option<i64>,
    /// Whether a line is crossed.
    pub(super) is_met: bool,
    /// Whether a hard one is.
    pub(super) is_hard_met: bool,
}

impl Lines {
    /// Where the memory stands.
    pub(super) fn standing(&mut self, engine: &Engine, observation: &Observation) -> Standing {
        let readings = observation.readings(engine.settings().memory_source);
        let signals = [Signal::MemoryAvailable, Signal::AllocatableMemoryAvailable];
        let capacities = signals.map(|signal| readings.get(signal).map(|found| found.capacity));
        if self.capacities != capacities {
            self.capacities = capacities;
            self.all = work_out(engine, observation);
        }
        let mut standing = Standing::default();
        for line in &self.all {
            let Some(reading) = readings.get(line.signal) else {
                continue;
            };
            let distance = reading.available.saturating_sub(line.at);
            if distance < 0 {
                standing.is_met = true;
                standing.is_hard_met |= line.is_hard;
            } else {
                let ahead = standing.ahead.map_or(distance, |ahead| ahead.min(distance));
                standing.ahead = Some(ahead);
            }
        }
        standing
    }

    /// The highest line on a signal: the first that is reached.
    pub(super) fn first(&self, signal: Signal) -> Option<i64> {
        let of_signal = self.all.iter().filter(|line| line.signal == signal);
        of_signal.map(|line| line.at).max()
    }
}

fn work_out(engine: &Engine, observation: &Observation) -> Vec<Line> {
    let forecasts = engine.forecast(observation).into_iter();
    let memory = forecasts.filter(|found| found.signal.resource() == StarvedResource::Memory);
    let line = memory.map(|found| Line {
        signal: found.signal,
        at: found.line,
        is_hard: engine.threshold(found.threshold).is_hard(),
    });
    line.collect()
}
