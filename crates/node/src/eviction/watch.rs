//! One look after the other, and what follows from it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_core::eviction::record::{Record, Recorder};
use plimsoll_core::eviction::{
    Action, Decision, Engine, Eviction, Input, NodeReclaim, Observation, Verdict, message,
};
use plimsoll_core::object::identity::PodUid;
use plimsoll_core::object::node::NodeCondition;
use plimsoll_core::object::timestamp::Timestamp;
use plimsoll_core::threshold::{self, Signal};

use super::alarm::Alarms;
use super::consumers::consumers;
use super::gauge::{Gauge, Look, Reading};
use super::lines::{Lines, Standing};
use super::outlook::Outlook;
use super::pace::{Rate, pause};
use super::roster::Roster;
use super::settings::{Settings, Waking};
use super::shell::Shared;
use super::strike::{Struck, is_grace_over, strike_at_once};
use super::surroundings::{Condemned, Surroundings, Survey};
use super::target::Targets;
use super::victims::Victims;
use crate::cgroup::Cgroups;
use crate::pods::Clock;
use crate::stats;

/// Upstream's `evictionMonitoringPeriod`.
const POLL: Duration = Duration::from_secs(10);
/// A line so near that every look is told to the engine, which learns the rate from them.
const NEAR: Duration = Duration::from_millis(100);
/// How long the list of pods holds while nothing presses.
const ROSTER_LIFE: Duration = Duration::from_secs(1);
/// How long the kernel's own kill is given to free memory, once per shortage.
const KERNEL_FIRST: Duration = Duration::from_millis(500);
/// How long a reclaim may take.
const RECLAIM: Duration = Duration::from_secs(120);
/// More than a decision evicts at once.
const STRIKES: usize = 64;
/// How long to wait when the memory cannot be read.
const BLIND: Duration = Duration::from_secs(1);

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
    outlook: Outlook,
    gauge: Gauge,
    reading: Reading,
    /// The latest one.
    look: Look,
    alarms: Alarms,
    lines: Lines,
    rate: Rate,
    roster: Roster,
    /// Whether all pods were known the last time they were asked for.
    are_pods_known: bool,
    listed_at: Timestamp,
    survey: Option<Arc<Survey>>,
    next_step: Timestamp,
    /// What came of evictions at once, by the number of the action. There is room beforehand.
    strikes: Vec<(usize, Struck)>,
    victims: Victims,
    /// Until when it is not said again that nobody may be evicted.
    quiet_until: Timestamp,
    /// When the node began to free what it can.
    reclaims_since: Option<Timestamp>,
    /// Until when the kernel's own kill is waited for in the present shortage.
    kernel_until: Option<Timestamp>,
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
        Watch {
            engine,
            recorder: Recorder::new(1),
            outlook: Outlook::new(settings.engine.clone()),
            gauge: Gauge::new(&settings, layout, &kubepods),
            reading: Reading::new(stats::Settings::affordable_files() / 2),
            look: Look::default(),
            alarms: match settings.waking {
                Waking::Events => Alarms::new(&settings, layout, &kubepods),
                Waking::PollOnly => Alarms::default(),
            },
            lines: Lines::default(),
            rate: Rate::default(),
            roster: Roster::default(),
            are_pods_known: false,
            listed_at: Timestamp::default(),
            survey: None,
            next_step: Timestamp::default(),
            strikes: Vec::with_capacity(STRIKES),
            victims: Victims::of_earlier(&earlier),
            quiet_until: Timestamp::default(),
            reclaims_since: None,
            kernel_until: None,
            clock: Clock::advancing(),
            settings,
            cgroups,
            surroundings,
            shared,
        }
    }

    /// Watches until told to stop.
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

    /// Looks once and does what is to be done; answers how soon to look again.
    fn turn(&mut self, now: Timestamp) -> Duration {
        // Asked first: the survey that is taken then is one of after the reclaim.
        let is_reclaimed = self.reclaims_since.is_some() && self.shared.take_reclaimed();
        if is_reclaimed {
            self.reclaims_since = None;
        }
        let is_surveyed = self.take_survey();
        let Some(mut look) = self.gauge.read(now, &mut self.reading) else {
            if now >= self.next_step {
                self.step(now, Input::NotObserved);
            }
            return BLIND;
        };
        self.rate.note(now.as_nanos(), look.machine.available.0);
        let mut observation = self.observation(&look);
        let mut standing = self.lines.standing(&self.engine, &observation);
        self.alarms.aim(&look, &self.lines);
        if is_reclaimed {
            let input = Input::Reclaimed {
                observation: Some(&observation),
            };
            self.step(now, input);
            return self.rest(now, &standing);
        }
        let pace = self.pace(&standing);
        let is_due = is_surveyed || now >= self.next_step || standing.is_met || pace <= NEAR;
        if !standing.is_met {
            self.kernel_until = None;
        }
        if (!is_due && self.victims.is_empty()) || self.waits_for_reclaim(now, &standing) {
            self.publish(now, &observation);
            return self.rest(now, &standing);
        }
        self.list_pods(
            now,
            standing.is_met || is_surveyed || !self.victims.is_empty(),
        );
        if !self.are_pods_known {
            // Nobody is compared with those who are not known: nothing is decided yet.
            self.publish(now, &observation);
            return self.rest(now, &standing);
        }
        let (roster, reading, cgroups) = (&mut self.roster, &mut self.reading, &self.cgroups);
        if self.victims.is_any_dying(now, roster, reading, cgroups) {
            // The engine waits, but conditions stay current.
            let is_grace_over = self.observe(now, &observation);
            if is_grace_over && !self.settings.gives_grace_always {
                self.victims.strike(&mut self.roster);
            }
            return self.rest(now, &standing);
        }
        if now < self.victims.settles() || (!standing.is_met && self.waits_for_survey(now)) {
            return self.rest(now, &standing);
        }
        if standing.is_met {
            let was_oom_killed = self.roster.measure(&mut self.reading, &self.cgroups);
            // What came back meanwhile counts; and the time is that of this look.
            let at = self.clock.now();
            if let Some(fresh) = self.gauge.read(at, &mut self.reading) {
                look = fresh;
                observation = self.observation(&look);
                standing = self.lines.standing(&self.engine, &observation);
            }
            if self.waits_for_kernel(at, was_oom_killed) {
                return self.rest(at, &standing);
            }
        }
        let now = self.clock.now();
        self.observe(now, &observation);
        self.rest(now, &standing)
    }

    /// Takes the latest full measurement; answers whether it is a new one.
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
    /// not acted upon, but a grace that runs goes on.
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

    fn list_pods(&mut self, now: Timestamp, at_once: bool) {
        let is_old = now.saturating_since(self.listed_at) >= ROSTER_LIFE;
        if self.are_pods_known && !at_once && !is_old {
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
        let sign = |uid: &PodUid| surroundings.sign(uid);
        self.roster
            .update(reports, &self.cgroups, profile, reading, sign);
        self.victims
            .take_roster(now, &mut self.engine, &self.roster);
        if let Some(survey) = &self.survey {
            self.roster.take_usages(&survey.usages);
        }
    }

    /// While the node frees what it can, only a hard memory line is worth giving that up.
    fn waits_for_reclaim(&mut self, now: Timestamp, standing: &Standing) -> bool {
        let Some(since) = self.reclaims_since else {
            return false;
        };
        let is_over = now.saturating_since(since) >= RECLAIM;
        if is_over || standing.is_hard_met {
            self.reclaims_since = None;
        }
        self.reclaims_since.is_some()
    }

    /// Figures of disks from before a victim was gone say nothing of what it left: nobody else has
    /// to go for them.
    fn waits_for_survey(&self, now: Timestamp) -> bool {
        let survey = self.survey.as_ref();
        let left_at = self.victims.left_at();
        let is_older = survey.is_some_and(|survey| survey.taken_at() <= left_at);
        is_older && now.saturating_since(left_at) < POLL
    }

    /// The kernel was first: what it killed gives its memory back, and nobody else has to go for
    /// that. Once per shortage, so that a pod that is killed again and again holds nobody up.
    fn waits_for_kernel(&mut self, now: Timestamp, was_oom_killed: bool) -> bool {
        if was_oom_killed && self.kernel_until.is_none() {
            tracing::info!("the kernel killed for want of memory; waiting for it to come back");
            self.kernel_until = Some(now.saturating_add(KERNEL_FIRST));
        }
        self.kernel_until.is_some_and(|until| now < until)
    }

    /// Tells the engine what was seen and does what it says; answers whether a hard line is
    /// crossed that leaves no time for grace.
    fn observe(&mut self, now: Timestamp, observation: &Observation) -> bool {
        let (active, targets) = self.roster.active();
        let input = Input::Observed {
            observation,
            pods: &active,
        };
        let act = first_things(
            targets,
            &mut self.reading,
            &mut self.strikes,
            self.settings.gives_grace_always,
            &self.shared,
            &*self.surroundings,
        );
        let engine = &mut self.engine;
        let decision = self.recorder.step_acting(engine, now, input, act);
        let is_grace_over = is_grace_over(&self.engine, &decision.due);
        self.carry_out(now, decision);
        self.publish(now, observation);
        is_grace_over
    }

    fn step(&mut self, now: Timestamp, input: Input<'_>) {
        let targets = self.roster.targets();
        let act = first_things(
            targets,
            &mut self.reading,
            &mut self.strikes,
            self.settings.gives_grace_always,
            &self.shared,
            &*self.surroundings,
        );
        let engine = &mut self.engine;
        let decision = self.recorder.step_acting(engine, now, input, act);
        self.carry_out(now, decision);
    }

    /// Who has to go at once was killed, and the API is being told that the node is under pressure:
    /// this is the rest.
    fn carry_out(&mut self, now: Timestamp, decision: Decision) {
        self.next_step = decision.next_step_by;
        let is_concluded = !matches!(decision.verdict, Verdict::Reclaiming(_));
        // A reclaim that was enough leaves nothing to do, and is worth a record.
        let is_relief = matches!(decision.verdict, Verdict::Relieved(_));
        let is_recorded = (is_relief || decision.is_news())
            && is_concluded
            && !self.is_old_news(now, &decision.verdict);
        let mut warnings = Vec::new();
        let (mut condemned, mut spared) = (Vec::new(), Vec::new());
        let mut reclaims: Vec<NodeReclaim> = Vec::new();
        let mut strikes = std::mem::take(&mut self.strikes);
        let mut struck = strikes.drain(..).peekable();
        for (index, action) in decision.actions.into_iter().enumerate() {
            match action {
                Action::Evict(eviction) => {
                    let struck = struck.next_if(|(of, _)| *of == index);
                    let struck = struck.map(|(_, struck)| struck);
                    let uid = eviction.uid.as_str().to_owned();
                    match self.evict(now, *eviction, struck, &decision.stats_ages) {
                        Some(one) => condemned.push(one),
                        None => spared.push(uid),
                    }
                }
                Action::Announce(message) if is_recorded || !is_concluded => {
                    warnings.push((message::THRESHOLD_MET_REASON, message));
                }
                Action::Announce(_) => {}
                Action::Reclaim(reclaim) => reclaims.push(reclaim),
            }
        }
        drop(struck);
        self.strikes = strikes;
        // Written down first: should this agent not live to see their end, the next one knows why.
        if is_recorded && let Some(record) = self.recorder.records().next_back() {
            let mut record = record.clone();
            let shortfall = record.decision.shortfall.as_ref();
            if let Some(shortfall) = shortfall.filter(|shortfall| shortfall.is_new) {
                let layout = self.cgroups.layout();
                let found = consumers(&self.settings, layout, &self.look, &mut self.reading);
                let message = message::backing_off(shortfall, &found);
                tracing::warn!(message, "evicting pods cannot bring memory back");
                warnings.push((message::BACK_OFF_REASON, message));
                record.consumers = Some(found);
            }
            record.struck = Some(self.struck(&record));
            record.spared = Some(spared);
            for condemned in &mut condemned {
                condemned.at = record.at.unwrap_or(now);
            }
            self.shared.decisions().add(record);
        }
        for condemned in condemned {
            self.surroundings.evict(condemned);
        }
        for (reason, message) in warnings {
            self.surroundings.warn(reason, message);
        }
        if !reclaims.is_empty() {
            self.reclaims_since = Some(now);
            self.surroundings.reclaim(reclaims, self.shared.ticket());
        }
    }

    /// Those among the evicted of a record that were killed at once.
    fn struck(&self, record: &Record) -> Vec<String> {
        let evicted = record.decision.evictions.iter();
        let struck = evicted.filter(|evicted| self.victims.is_struck(&evicted.uid));
        struck.map(|evicted| evicted.uid.clone()).collect()
    }

    /// Shows how far the lines are.
    fn publish(&mut self, now: Timestamp, observation: &Observation) {
        if let Some(lines) = self.outlook.note(now, observation) {
            *self.shared.standing() = lines;
        }
    }

    /// That nobody may be evicted is worth saying as often as upstream looks, not at every look.
    fn is_old_news(&mut self, now: Timestamp, verdict: &Verdict) -> bool {
        if !matches!(verdict, Verdict::NobodyToEvict(_)) {
            return false;
        }
        let is_old = now < self.quiet_until;
        if !is_old {
            self.quiet_until = now.saturating_add(POLL);
        }
        is_old
    }

    /// Takes what came of a pod that had no time; answers what is to be told about it, unless the
    /// kernel was first.
    fn evict(
        &mut self,
        now: Timestamp,
        eviction: Eviction,
        struck: Option<Struck>,
        stats_ages: &[(Signal, threshold::Duration)],
    ) -> Option<Condemned> {
        let uid = eviction.uid.clone();
        if matches!(struck, Some(Struck::KernelFirst)) {
            // It says OOMKilled, which is the truth.
            tracing::info!(pod = %eviction.pod_ref, "the kernel was first");
            self.engine.kill_failed(&uid);
            self.victims.settle_until(now.saturating_add(KERNEL_FIRST));
            return None;
        }
        let mut condemned = Condemned::new(now, eviction, stats_ages.to_vec());
        if let Some(struck) = struck {
            self.surroundings.struck(&uid, &condemned.forced);
            condemned.is_struck = matches!(struck, Struck::Killed);
            // Only now: it takes a while, and whoever sees the pod dead is to know why.
            if let Some(target) = self.roster.targets().get(&uid) {
                target.release();
            }
            if let Struck::Failed(error) = struck {
                tracing::warn!(pod = %uid, %error, "cannot kill the pod at once");
            }
        }
        let (eviction, is_struck) = (&condemned.eviction, condemned.is_struck);
        tracing::info!(
            pod = %eviction.pod_ref, is_struck, message = eviction.message, "evicting"
        );
        let grace = eviction.grace_period_seconds;
        self.victims.add(now, uid, grace, is_struck);
        Some(condemned)
    }

    fn pace(&self, standing: &Standing) -> Duration {
        // Those with a grace take their time.
        pause(standing, self.victims.is_any_struck(), self.rate.falling)
    }

    /// How soon to look again.
    fn rest(&self, now: Timestamp, standing: &Standing) -> Duration {
        let pace = self.pace(standing);
        let engine = self.next_step.saturating_since(now);
        let settles = self.victims.settles();
        let waits = [Some(settles), self.kernel_until];
        let waits = waits.into_iter().flatten().filter(|until| *until > now);
        let waits = waits.map(|until| until.saturating_since(now));
        // What was due and could not be done is tried again soon, not at once.
        let engine = if engine.is_zero() {
            pace.max(settles.saturating_since(now))
        } else {
            engine
        };
        let soonest = waits.chain([pace, engine]).min().unwrap_or(pace);
        soonest.max(Duration::from_millis(5))
    }
}

/// What a decision does before anything else, even before it is written down.
fn first_things(
    targets: &mut Targets,
    reading: &mut Reading,
    strikes: &mut Vec<(usize, Struck)>,
    gives_grace_always: bool,
    shared: &Shared,
    surroundings: &dyn Surroundings,
) -> impl FnOnce(&Decision) {
    move |decision| {
        strike_at_once(decision, targets, reading, gives_grace_always, strikes);
        tell_conditions(&decision.conditions, shared, surroundings);
    }
}

/// Has the API told that the node is under pressure, so that nothing else comes to it.
fn tell_conditions(
    now: &BTreeSet<NodeCondition>,
    shared: &Shared,
    surroundings: &dyn Surroundings,
) {
    let is_changed = {
        let mut conditions = shared.conditions();
        let is_changed = *conditions != *now;
        if is_changed {
            conditions.clone_from(now);
        }
        is_changed
    };
    if is_changed {
        surroundings.conditions_changed(now);
    }
}
