//! Pods that are evicted, recreated and evicted again.
//!
//! A workload that does not fit is evicted, its owner makes another pod at once, and that one is
//! evicted too, as fast as nodes can pull images. Container restarts have a back-off; this is the
//! same for re-creation: the first replacement comes at once, later ones after a wait that
//! doubles. It is computed from the evicted pods that are kept as a record, so a restart of the
//! controller forgets nothing.

use std::time::Duration;

use crate::object::timestamp::Timestamp;

use super::retention::EvictedPod;

/// How long the owner of evicted pods waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The wait before the second replacement; it doubles with every further one.
    pub first: Duration,
    /// The longest wait. Zero switches the back-off off.
    pub longest: Duration,
    /// After so long without an eviction the count restarts.
    pub reset: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            first: Duration::from_secs(10),
            longest: Duration::from_secs(300),
            reset: Duration::from_secs(600),
        }
    }
}

/// Until when the owner of these evicted pods should wait before it makes another; nothing if it
/// need not wait.
///
/// Pods that are evicted together are one setback. It takes a pod that was made after an eviction
/// and is evicted itself for the next one.
pub fn wait_until(settings: Settings, evicted: &[EvictedPod], now: Timestamp) -> Option<Timestamp> {
    let mut in_order: Vec<&EvictedPod> = evicted.iter().collect();
    in_order.sort_by_key(|pod| (pod.evicted, pod.created));
    let mut setbacks: u32 = 0;
    let mut last: Option<Timestamp> = None;
    for pod in in_order {
        match last {
            Some(last) if pod.evicted.saturating_since(last) >= settings.reset => setbacks = 1,
            Some(last) if pod.created < last => {}
            _ => setbacks = setbacks.saturating_add(1),
        }
        last = Some(pod.evicted);
    }
    let last = last.filter(|last| now.saturating_since(*last) < settings.reset)?;
    let doublings = setbacks.checked_sub(2)?;
    let factor = 2_u32.checked_pow(doublings);
    let wait = factor.and_then(|factor| settings.first.checked_mul(factor));
    let wait = wait.map_or(settings.longest, |wait| wait.min(settings.longest));
    Some(last.saturating_add(wait)).filter(|until| *until > now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::identity::{PodRef, PodUid};

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_secs(secs)
    }

    fn pods(times: &[(i64, i64)]) -> Vec<EvictedPod> {
        let pods = times.iter().map(|&(created, evicted)| EvictedPod {
            pod: PodRef::default(),
            uid: PodUid::default(),
            owner: String::new(),
            created: at(created),
            evicted: at(evicted),
        });
        pods.collect()
    }

    fn wait(times: &[(i64, i64)], now: i64) -> Option<i64> {
        let until = wait_until(Settings::default(), &pods(times), at(now))?;
        Some(until.as_nanos() / 1_000_000_000)
    }

    #[test]
    fn the_wait_doubles_with_every_replacement_that_is_evicted() {
        let mut history = vec![(0, 100)];
        assert_eq!(wait(&history, 100), None, "the first comes at once");
        let mut last = 100;
        for expected in [10, 20, 40, 80, 160, 300, 300] {
            history.push((last, last + 60));
            last += 60;
            assert_eq!(wait(&history, last), Some(last + expected));
            assert_eq!(wait(&history, last + expected), None);
        }
    }

    #[test]
    fn pods_evicted_together_count_as_one_eviction() {
        let together = [(0, 100), (0, 101), (0, 102), (0, 160)];
        assert_eq!(wait(&together, 160), None);
        let then_replacements = [(0, 100), (0, 101), (110, 200), (110, 201)];
        assert_eq!(wait(&then_replacements, 201), Some(211));
    }

    #[test]
    fn quiet_time_resets_the_count() {
        let quiet = [(0, 100), (100, 200), (200, 800)];
        assert_eq!(wait(&quiet, 800), None);
        assert_eq!(wait(&[(0, 100), (100, 200)], 800), None);
        assert_eq!(wait(&[], 0), None);
    }

    #[test]
    fn zero_longest_wait_disables_waiting() {
        let settings = Settings {
            longest: Duration::ZERO,
            ..Settings::default()
        };
        let history = pods(&[(0, 100), (100, 160), (160, 200)]);
        assert_eq!(wait_until(settings, &history, at(200)), None);
    }
}
