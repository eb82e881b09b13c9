//! How far the thresholds are, for people.
//!
//! Looks follow each other within milliseconds when a threshold is near, and decisions go by the rate
//! of the last of them: a process that takes memory in gulps seems to rest in between. People ask
//! how long it will last, and are shown the rate of the last seconds.

use std::time::Duration;

use crate::object::timestamp::Timestamp;

use super::engine::Engine;
use super::forecast::Trends;
use super::observation::Observation;
use super::record::distances::LinesRecord;

/// How far looks are apart that the rate is measured by.
const MEASURED_EVERY: Duration = Duration::from_secs(1);
/// How often it is shown how far the thresholds are.
const SHOWN_EVERY: Duration = Duration::from_millis(200);

/// The trends of seconds. No decision depends on them.
#[derive(Clone, Debug, Default)]
pub(super) struct Outlook {
    trends: Trends,
    measured_at: Option<Timestamp>,
    shown_at: Option<Timestamp>,
}

impl Engine {
    /// Takes note of a look; what is to be shown, if it is time for that.
    pub fn outlook(&mut self, now: Timestamp, observation: &Observation) -> Option<LinesRecord> {
        let is_due = |last: Option<Timestamp>, every: Duration| {
            last.is_none_or(|last| now.saturating_since(last) >= every)
        };
        let readings = observation.readings(self.settings.memory_source);
        let outlook = &mut self.outlook;
        if is_due(outlook.measured_at, MEASURED_EVERY) {
            outlook.measured_at = Some(now);
            outlook.trends.note(now, &readings);
        }
        if !is_due(outlook.shown_at, SHOWN_EVERY) {
            return None;
        }
        outlook.shown_at = Some(now);
        let forecasts = self.forecast_by(&self.outlook.trends, &readings);
        Some(LinesRecord::new(self, now, &readings, forecasts))
    }
}

#[cfg(test)]
mod tests {
    use super::super::observation::MemoryObservation;
    use super::*;
    use crate::config::Profile;
    use crate::resources::Bytes;
    use crate::testing::eviction_settings;

    #[test]
    fn bursts_are_averaged_to_a_rate() {
        let hard = [("memory.available", "100Mi")];
        let settings = eviction_settings(Profile::Kubernetes136, &hard, &[]);
        let mut engine = Engine::new(settings);
        let mut shown = None;
        // 5 MiB in every second, all at once, and a look every 50 milliseconds.
        for look in 0..200_i64 {
            let now = Timestamp::from_nanos(look * 50_000_000);
            let available = Bytes((1000 - look / 20 * 5) << 20);
            let observation = Observation {
                memory: Some(MemoryObservation {
                    available,
                    time: Some(now),
                    ..MemoryObservation::default()
                }),
                ..Observation::default()
            };
            shown = engine.outlook(now, &observation).or(shown);
        }
        let line = &shown.unwrap().items[0];
        assert_eq!(line.change_per_second, Some(-5.0 * 1_048_576.0));
        // 955 MiB are left, and 855 until the threshold.
        assert_eq!(line.reached_in_nanos, Some(171_000_000_000));
    }
}
