//! Whether a node is short of something, for callers that do not decide what follows.

use crate::threshold::Signal;

use super::observation::{Observation, Readings};
use super::settings::{Lines, Settings};
use super::signal_source::MemorySource;
use super::state::{Reclaim, is_met};

/// The thresholds of a node. Keeps no state between calls.
#[derive(Clone, Debug)]
pub struct Shortages {
    lines: Lines,
    memory_source: MemorySource,
}

impl Shortages {
    /// By the thresholds of these settings.
    pub fn new(settings: &Settings) -> Shortages {
        Shortages {
            lines: Lines::new(settings),
            memory_source: settings.memory_source,
        }
    }

    /// Whether a pod may be evicted for one of these signals: a threshold on it is met, or would be
    /// if its minimum reclaim were not freed.
    pub fn is_short(&self, observation: &Observation, of: impl Fn(Signal) -> bool) -> bool {
        let readings = observation.readings(self.memory_source);
        is_short(&self.lines, &readings, of)
    }
}

pub(super) fn is_short(lines: &Lines, readings: &Readings, of: impl Fn(Signal) -> bool) -> bool {
    let mut lines = lines.all().iter().filter(|line| of(line.signal));
    lines.any(|threshold| is_met(threshold, readings, Reclaim::Included))
}
