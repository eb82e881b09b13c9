//! When to ask, and what the answers amount to.

use std::time::Duration;

use k8s_openapi::api::core::v1::Probe;
use plimsoll_core::object::timestamp::Timestamp;

use super::Kind;
use crate::pods::plan::Verdict;

/// The numbers of a probe, with the API's defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Numbers {
    pub(super) delay: Duration,
    pub(super) period: Duration,
    pub(super) timeout: Duration,
    success_threshold: u32,
    failure_threshold: u32,
}

impl Numbers {
    pub(super) fn of(probe: &Probe) -> Numbers {
        let number = |value: Option<i32>, default: u32| {
            let value = value.and_then(|value| u32::try_from(value).ok());
            value.filter(|value| *value > 0).unwrap_or(default)
        };
        let secs =
            |value: Option<i32>, default: u32| Duration::from_secs(number(value, default).into());
        Numbers {
            delay: secs(probe.initial_delay_seconds, 0),
            period: secs(probe.period_seconds, 10),
            timeout: secs(probe.timeout_seconds, 1),
            success_threshold: number(probe.success_threshold, 1),
            failure_threshold: number(probe.failure_threshold, 3),
        }
    }
}

/// What a tracker has to know of its container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// Its runtime id.
    pub(super) id: String,
    /// When it was started, by the clock that is never set. Counts when the container is first seen.
    pub(super) started_at: Timestamp,
    /// Whether it has started.
    pub(super) is_started: bool,
}

/// One probe of one container.
#[derive(Clone, Debug)]
pub(super) struct Tracker {
    kind: Kind,
    numbers: Numbers,
    /// The container it looks at.
    id: Option<String>,
    /// When to ask next.
    due: Option<Timestamp>,
    /// The last answer, and how often in a row it came.
    last: Option<Verdict>,
    run: u32,
    /// Whether probes pause until there is another container.
    is_on_hold: bool,
    is_asking: bool,
}

impl Tracker {
    pub(super) fn new(kind: Kind, numbers: Numbers) -> Tracker {
        Tracker {
            kind,
            numbers,
            id: None,
            due: None,
            last: None,
            run: 0,
            is_on_hold: false,
            is_asking: false,
        }
    }

    /// When to ask about the container next; `None` while there is nothing to ask.
    ///
    /// `spread` in 0..1 delays the first question to a container that has been running for longer
    /// than a period, so that after a restart of the agent not all containers are probed at once.
    pub(super) fn due(
        &mut self,
        target: Option<&Target>,
        now: Timestamp,
        spread: f64,
    ) -> Option<Timestamp> {
        let Some(target) = target else {
            self.due = None;
            return None;
        };
        if self.id.as_ref() != Some(&target.id) {
            self.id = Some(target.id.clone());
            self.is_on_hold = false;
            self.run = 0;
            self.last = None;
            self.due = None;
        }
        // The startup probe runs until it has a result, the others from then on.
        let is_wanted = target.is_started != (self.kind == Kind::Startup);
        if self.is_on_hold || self.is_asking || !is_wanted {
            if !is_wanted {
                self.due = None;
            }
            return None;
        }
        let due = match self.due {
            Some(due) => due,
            None => self.first(target, now, spread),
        };
        self.due = Some(due);
        self.due
    }

    /// Readiness is probed as soon as possible, the others give the container a period.
    fn first(&self, target: &Target, now: Timestamp, spread: f64) -> Timestamp {
        let Numbers { delay, period, .. } = self.numbers;
        let wait = match self.kind {
            Kind::Readiness => delay,
            Kind::Startup | Kind::Liveness => delay.max(period),
        };
        let due = target.started_at.saturating_add(wait);
        if now.saturating_since(target.started_at) > period.max(delay) {
            return now.saturating_add(period.mul_f64(spread));
        }
        due.max(now)
    }

    /// Notes that the question is being asked.
    pub(super) fn asking(&mut self, now: Timestamp) {
        self.is_asking = true;
        self.due = Some(now.saturating_add(self.numbers.period));
    }

    /// Takes the answer about a container; `None` for one that says nothing. Returns what the
    /// probe has found, if enough results agree.
    pub(super) fn answered(&mut self, id: &str, verdict: Option<Verdict>) -> Option<Verdict> {
        self.is_asking = false;
        if self.id.as_deref() != Some(id) {
            return None;
        }
        let verdict = verdict?;
        if self.last == Some(verdict) {
            self.run += 1;
        } else {
            self.last = Some(verdict);
            self.run = 1;
        }
        let threshold = match verdict {
            Verdict::Success => self.numbers.success_threshold,
            Verdict::Failure | Verdict::Unknown => self.numbers.failure_threshold,
        };
        if self.run < threshold {
            return None;
        }
        // A failed container will be replaced; a started one need not be probed again.
        let is_final = self.kind == Kind::Startup
            || self.kind == Kind::Liveness && verdict == Verdict::Failure;
        if is_final {
            self.is_on_hold = true;
            self.run = 0;
        }
        Some(verdict)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_secs(secs)
    }

    fn tracker(kind: Kind, probe: serde_json::Value) -> Tracker {
        let probe: Probe = serde_json::from_value(probe).unwrap();
        Tracker::new(kind, Numbers::of(&probe))
    }

    fn target(started_at: i64, is_started: bool) -> Target {
        Target {
            id: "1".to_owned(),
            started_at: at(started_at),
            is_started,
        }
    }

    #[test]
    fn numbers_have_the_defaults_of_the_api() {
        let numbers = Numbers::of(&Probe::default());
        assert_eq!(numbers.delay, Duration::ZERO);
        assert_eq!(numbers.period, Duration::from_secs(10));
        assert_eq!(numbers.timeout, Duration::from_secs(1));
        assert_eq!(
            (numbers.success_threshold, numbers.failure_threshold),
            (1, 3)
        );
    }

    #[test]
    fn first_probe_runs_after_its_initial_delay() {
        for (kind, delay, expected) in [
            (Kind::Readiness, 0, 100),
            (Kind::Readiness, 5, 105),
            (Kind::Liveness, 0, 110),
            (Kind::Liveness, 15, 115),
        ] {
            let mut tracker = tracker(kind, json!({"initialDelaySeconds": delay}));
            let due = tracker.due(Some(&target(100, true)), at(100), 0.5);
            assert_eq!(due, Some(at(expected)), "{kind:?} {delay}");
        }
        let mut startup = tracker(Kind::Startup, json!({"periodSeconds": 2}));
        let due = startup.due(Some(&target(100, false)), at(100), 0.5);
        assert_eq!(due, Some(at(102)));
    }

    #[test]
    fn first_probes_of_older_containers_are_spread() {
        let mut tracker = tracker(Kind::Liveness, json!({}));
        let due = tracker.due(Some(&target(0, true)), at(1000), 0.3);
        assert_eq!(due, Some(at(1003)));
    }

    #[test]
    fn readiness_and_liveness_wait_for_the_startup() {
        for kind in [Kind::Readiness, Kind::Liveness] {
            let mut tracker = tracker(kind, json!({}));
            assert_eq!(tracker.due(Some(&target(0, false)), at(1), 0.0), None);
            assert!(tracker.due(Some(&target(0, true)), at(2), 0.0).is_some());
        }
        let mut startup = tracker(Kind::Startup, json!({}));
        assert_eq!(startup.due(Some(&target(0, true)), at(1), 0.0), None);
    }

    #[test]
    fn consecutive_results_decide() {
        let mut tracker = tracker(
            Kind::Readiness,
            json!({"failureThreshold": 2, "successThreshold": 3}),
        );
        tracker.due(Some(&target(0, true)), at(0), 0.0);
        use Verdict::{Failure, Success};
        for (answer, found) in [
            (Some(Success), None),
            (Some(Success), None),
            (Some(Failure), None),
            (Some(Success), None),
            (None, None),
            (Some(Success), None),
            (Some(Success), Some(Success)),
            (Some(Success), Some(Success)),
            (Some(Failure), None),
            (Some(Failure), Some(Failure)),
        ] {
            assert_eq!(tracker.answered("1", answer), found);
        }
        assert_eq!(
            tracker.answered("2", Some(Success)),
            None,
            "another container"
        );
    }

    #[test]
    fn failed_container_is_not_probed_until_it_is_replaced() {
        let mut tracker = tracker(Kind::Liveness, json!({"failureThreshold": 1}));
        let mut container = target(0, true);
        tracker.due(Some(&container), at(0), 0.0);
        tracker.asking(at(10));
        assert_eq!(tracker.due(Some(&container), at(11), 0.0), None, "asking");
        assert_eq!(
            tracker.answered("1", Some(Verdict::Failure)),
            Some(Verdict::Failure)
        );
        assert_eq!(tracker.due(Some(&container), at(20), 0.0), None);
        container.id = "2".to_owned();
        container.started_at = at(20);
        assert_eq!(tracker.due(Some(&container), at(20), 0.0), Some(at(30)));
    }
}
