//! How far the lines are, for people.
//!
//! The watch looks every few milliseconds when a line is near, and its engine goes by the rate of
//! the last of these looks: who takes memory in gulps seems to rest between them. People ask how
//! long it will last, so that they are told the rate of the last seconds.

use std::time::Duration;

use plimsoll_core::eviction::record::lines::LinesRecord;
use plimsoll_core::eviction::{Engine, Input, Observation, Settings};
use plimsoll_core::object::timestamp::Timestamp;

/// How far looks are apart that the rate is measured by.
const MEASURED_EVERY: Duration = Duration::from_secs(1);
/// How often it is shown how far the lines are.
const SHOWN_EVERY: Duration = Duration::from_millis(200);

/// An engine that remembers seconds, and decides nothing.
#[derive(Debug)]
pub(super) struct Outlook {
    engine: Engine,
    measured_at: Option<Timestamp>,
    shown_at: Option<Timestamp>,
}

impl Outlook {
    pub(super) fn new(settings: Settings) -> Outlook {
        Outlook {
            engine: Engine::new(settings),
            measured_at: None,
            shown_at: None,
        }
    }

    /// Takes note of a look; what is to be shown, if it is time for that.
    pub(super) fn note(
        &mut self,
        now: Timestamp,
        observation: &Observation,
    ) -> Option<LinesRecord> {
        let is_due = |last: Option<Timestamp>, every: Duration| {
            last.is_none_or(|last| now.saturating_since(last) >= every)
        };
        if is_due(self.measured_at, MEASURED_EVERY) {
            self.measured_at = Some(now);
            let pods = &[];
            self.engine.step(now, Input::Observed { observation, pods });
        }
        if !is_due(self.shown_at, SHOWN_EVERY) {
            return None;
        }
        self.shown_at = Some(now);
        Some(LinesRecord::of(&self.engine, now, observation))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::config::read_kubelet_configuration;
    use plimsoll_core::eviction::MemoryObservation;
    use plimsoll_core::resources::Bytes;
    use plimsoll_core::threshold::DiskLayout;

    #[test]
    fn gulps_are_seen_as_the_rate_that_they_come_to() {
        let config = "kind: KubeletConfiguration\napiVersion: kubelet.config.k8s.io/v1beta1\n\
                      evictionHard: { memory.available: 100Mi }\n";
        let profile = plimsoll_core::config::Profile::default();
        let config = read_kubelet_configuration(config.as_bytes(), profile).config;
        let settings = Settings::new(&config, DiskLayout::Single).unwrap();
        let mut outlook = Outlook::new(settings);
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
            shown = outlook.note(now, &observation).or(shown);
        }
        let line = &shown.unwrap().items[0];
        assert_eq!(line.change_per_second, Some(-5.0 * 1_048_576.0));
        // 955 MiB are left, and 855 until the line.
        assert_eq!(line.reached_in_nanos, Some(171_000_000_000));
    }
}
