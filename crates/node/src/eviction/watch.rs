//! One look after the other, and what follows from it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_core::eviction::record::{Recorder, earlier_evictions};
use plimsoll_core::eviction::{Engine, Input, News, Next, Observation, Ready};
use plimsoll_core::object::identity::PodUid;
use plimsoll_core::object::timestamp::Timestamp;
use plimsoll_runtime::cgroup::Cgroups;

use super::alarm::Alarms;
use super::carry_out::Execution;
use super::gauge::{Gauge, Look, Reading};
use super::kill::Outcomes;
use super::roster::Roster;
use super::settings::{Settings, Waking};
use super::shell::Shared;
use super::surroundings::{Surroundings, Survey};
use crate::pods::Clock;
use crate::stats;

/// Upstream's `evictionMonitoringPeriod`.
const POLL: Duration = Duration::from_secs(10);
/// How long the list of pods holds while nothing presses.
const ROSTER_LIFE: Duration = Duration::from_secs(1);
/// More than a decision evicts at once.
const KILLS: usize = 64;

/// The thread's own state.
#[derive(Debug)]
pub(super) struct Watch {
    settings: Settings,
    cgroups: Cgroups,
    surroundings: Arc<dyn Surroundings>,
    shared: Arc<Shared>,
    clock: Clock,
    engine: Engine,
    recorder: Recorder,
    gauge: Gauge,
    reading: Reading,
    /// The latest one.
    look: Look,
    alarms: Alarms,
    roster: Roster,
    /// Whether all pods were known at the last listing.
    are_pods_known: bool,
    listed_at: Timestamp,
    survey: Option<Arc<Survey>>,
    /// What came of kills. There is room beforehand.
    outcomes: Outcomes,
}

impl Watch {
    pub(super) fn new(
        settings: Settings,
        cgroups: Cgroups,
        surroundings: Arc<dyn Surroundings>,
        shared: Arc<Shared>,
    ) -> Watch {
        let layout = cgroups.layout();
        let kubepods = cgroups.path(&cgroups.kubepods());
        let earlier = shared.decisions().all();
        let mut engine = Engine::new(settings.engine.clone());
        let mut shortfalls = earlier.iter().rev();
        let shortfall = shortfalls.find_map(|record| record.decision.shortfall.as_ref());
        if let Some((shortfall, until)) = shortfall.and_then(|found| Some((found, found.until?))) {
            engine.resume_back_off(shortfall.back_off(), until);
        }
        engine.resume(earlier_evictions(earlier.iter().map(AsRef::as_ref)));
        Watch {
            engine,
            recorder: Recorder::new(1),
            gauge: Gauge::new(&settings, layout, &kubepods),
            reading: Reading::new(stats::Settings::affordable_files() / 2),
            look: Look::default(),
            alarms: match settings.waking {
                Waking::Events => Alarms::new(&settings, layout, &kubepods),
                Waking::PollOnly => Alarms::default(),
            },
            roster: Roster::default(),
            are_pods_known: false,
            listed_at: Timestamp::default(),
            survey: None,
            outcomes: Vec::with_capacity(KILLS),
            clock: Clock::advancing(),
            settings,
            cgroups,
            surroundings,
            shared,
        }
    }

    /// Watches until asked to stop.
    pub(super) fn run(&mut self) {
        if let Some(warning) = self.engine.warning() {
            tracing::warn!(warning, "eviction thresholds");
        }
        while !self.shared.is_stopping() {
            *self.shared.looked_at() = Instant::now();
            let now = self.clock.now();
            let next = match self.settings.waking {
                Waking::Events => self.turn(now),
                Waking::PollOnly => {
                    self.turn(now);
                    POLL
                }
            };
            let bell = self.shared.bell();
            self.alarms.wait(bell, next);
        }
    }

    /// Looks once and does what is to be done; returns how soon to look again.
    fn turn(&mut self, now: Timestamp) -> Duration {
        // Asked first: the survey that is taken then is one of after the reclaim.
        let is_reclaimed = self.shared.take_reclaimed();
        let news = News {
            is_reclaimed,
            is_measured: self.take_survey(),
        };
        let Some(look) = self.gauge.read(now, &mut self.reading) else {
            if self.engine.look(now, news, None) == Next::NotObserved {
                self.step(now, Input::NotObserved);
            }
            return self.engine.pause(now);
        };
        let observation = self.observation(&look);
        let next = self.engine.look(now, news, Some(&observation));
        self.alarms.aim(&look, &self.engine);
        match next {
            Next::Nothing => self.publish(now, &observation),
            Next::NotObserved => self.step(now, Input::NotObserved),
            Next::Reclaimed => {
                let observation = Some(&observation);
                self.step(now, Input::Reclaimed { observation });
            }
            Next::Pass { lists_anew } => self.pass(now, observation, lists_anew),
        }
        self.engine.pause(self.clock.now())
    }

    fn pass(&mut self, now: Timestamp, mut observation: Observation, lists_anew: bool) {
        self.list_pods(now, lists_anew);
        if !self.are_pods_known {
            // No pod is compared with pods that are not known: nothing is decided yet.
            return self.publish(now, &observation);
        }
        let (roster, reading, cgroups) = (&mut self.roster, &mut self.reading, &self.cgroups);
        let remains = |uid: &PodUid| roster.remains(uid, reading, cgroups);
        match self.engine.ready(now, &observation, remains) {
            Ready::Wait => return self.publish(now, &observation),
            Ready::Observe => {}
            Ready::Measure => {
                let is_oom_killed = self.roster.measure(&mut self.reading, &self.cgroups);
                let now = self.clock.now();
                if let Some(fresh) = self.gauge.read(now, &mut self.reading) {
                    observation = self.observation(&fresh);
                    self.engine.look_again(&observation);
                }
                observation.is_oom_killed = is_oom_killed;
            }
        }
        let now = self.clock.now();
        self.observe(now, &observation);
        self.publish(now, &observation);
    }

    /// Takes the latest full measurement; returns whether it is a new one.
    fn take_survey(&mut self) -> bool {
        let latest = self.surroundings.survey();
        let is_new = match (&latest, &self.survey) {
            (Some(latest), Some(known)) => !Arc::ptr_eq(latest, known),
            (latest, _) => latest.is_some(),
        };
        if is_new {
            self.survey = latest;
        }
        is_new
    }

    /// The memory as it is, everything else as it was measured last: figures that are not new are
    /// not acted upon, but a grace period that runs continues.
    fn observation(&mut self, look: &Look) -> Observation {
        self.look = *look;
        let survey = self.survey.as_ref();
        let measured = survey.map(|survey| survey.observation.clone());
        let measured = measured.unwrap_or_default();
        Observation {
            memory: Some(look.machine),
            pods_memory: look.pods,
            ..measured
        }
    }

    fn list_pods(&mut self, now: Timestamp, lists_anew: bool) {
        let is_old = now.saturating_since(self.listed_at) >= ROSTER_LIFE;
        if self.are_pods_known && !lists_anew && !is_old {
            return;
        }
        let Some(reports) = self.surroundings.pods() else {
            self.are_pods_known = false;
            return;
        };
        self.are_pods_known = true;
        self.listed_at = now;
        let profile = self.settings.engine.profile;
        let reading = &mut self.reading;
        let surroundings = &self.surroundings;
        let notice = |uid: &PodUid| surroundings.kill_notice(uid);
        self.roster
            .update(reports, &self.cgroups, profile, reading, notice);
        if let Some(survey) = &self.survey {
            self.roster.take_usages(&survey.usages);
        }
    }

    fn observe(&mut self, now: Timestamp, observation: &Observation) {
        let (pods, targets) = self.roster.active();
        let input = Input::Observed {
            observation,
            pods: &pods,
        };
        let mut execution = Execution {
            engine: &mut self.engine,
            recorder: &mut self.recorder,
            targets,
            reading: &mut self.reading,
            outcomes: &mut self.outcomes,
            shared: &self.shared,
            surroundings: &*self.surroundings,
            settings: &self.settings,
            layout: self.cgroups.layout(),
            look: &self.look,
        };
        execution.run(now, input);
    }

    fn step(&mut self, now: Timestamp, input: Input<'_>) {
        let mut execution = Execution {
            engine: &mut self.engine,
            recorder: &mut self.recorder,
            targets: self.roster.targets(),
            reading: &mut self.reading,
            outcomes: &mut self.outcomes,
            shared: &self.shared,
            surroundings: &*self.surroundings,
            settings: &self.settings,
            layout: self.cgroups.layout(),
            look: &self.look,
        };
        execution.run(now, input);
    }

    /// Shows how far the thresholds are.
    fn publish(&mut self, now: Timestamp, observation: &Observation) {
        if let Some(lines) = self.engine.outlook(now, observation) {
            *self.shared.standing() = lines;
        }
    }
}
