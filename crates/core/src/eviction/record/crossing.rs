//! When the threshold was crossed that led to evictions.

use std::time::Duration;

use crate::object::timestamp::Timestamp;
use crate::threshold::Signal;

use super::super::signal_source::MemorySource;
use super::Record;
use super::decision::LineRecord;

impl Record {
    /// When the first of the lines was crossed for which the decision was made; `None` if that is
    /// not known.
    ///
    /// A line that was met before this pass has the time of the pass that found it met. Otherwise
    /// it is between the last two measurements, at the rate between them:
    ///   crossed = t0 + (t1 - t0) * (a0 - line) / (a0 - a1)
    /// 120 MiB at 0 s and 90 MiB at 0.3 s cross a line of 100 MiB after 0.2 s.
    pub fn crossed_at(&self) -> Option<Timestamp> {
        let starved = self.decision.starved.as_deref()?;
        let signal = Signal::from_name(starved)?;
        let lines = self.decision.lines.iter();
        let due = lines.filter(|line| line.signal == starved && line.is_due);
        due.filter_map(|line| self.line_crossed_at(line, signal))
            .min()
    }

    fn line_crossed_at(&self, line: &LineRecord, signal: Signal) -> Option<Timestamp> {
        if let Some(since) = self.before.met_since(line.threshold) {
            return Some(since);
        }
        let (before, had) = self.before.last_sample(signal)?;
        let source = MemorySource::from_name(&self.settings.memory_source)?;
        let observation = self.observation.observation();
        let reading = observation.readings(source).get(signal)?;
        let (after, has) = (reading.time.or(self.at)?, reading.available);
        if has >= line.line || had < line.line {
            return None;
        }
        let step = after.saturating_since(before).as_nanos();
        let lost = |from: i64, to: i64| u128::from(from.abs_diff(to));
        let nanos = step * lost(had, line.line) / lost(had, has);
        let nanos = u64::try_from(nanos).ok()?;
        Some(before.saturating_add(Duration::from_nanos(nanos)))
    }
}
