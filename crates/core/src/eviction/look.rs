//! What to do after a look at the memory, before a pass.
//!
//! A look costs microseconds, a pass lists and measures pods. [`Engine::look`] says whether one is
//! due, [`Engine::ready`], once the pods are listed, whether it would use figures that lag
//! behind, and [`Engine::pause`] how soon to look again.

use std::time::Duration;

use crate::object::identity::PodUid;
use crate::object::timestamp::Timestamp;
use crate::threshold::Signal;

use super::engine::Engine;
use super::observation::Observation;
use super::pending::Remains;
use super::standing::{MemoryThresholds, Rate, Standing, pace};

/// A threshold so near that every look is a pass, from which the engine learns the rate.
const NEAR: Duration = Duration::from_millis(100);
/// How long a reclaim may take.
const RECLAIM: Duration = Duration::from_secs(120);
/// For how long figures of disks from before an evicted pod was gone are not acted upon: as long as
/// the node takes to measure everything, which it does every ten seconds.
const MEASUREMENT: Duration = Duration::from_secs(10);
/// How long to wait when the memory cannot be read.
const NOT_OBSERVED: Duration = Duration::from_secs(1);
/// Not more often, whatever is due.
const SHORTEST_PAUSE: Duration = Duration::from_millis(5);

/// What has happened since the last look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct News {
    /// Whether everything was measured, disks too.
    pub is_measured: bool,
    /// Whether the node has freed what it could.
    pub is_reclaimed: bool,
}

/// What a look calls for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing.
    Nothing,
    /// [`super::Input::NotObserved`].
    NotObserved,
    /// [`super::Input::Reclaimed`] with the observation of this look.
    Reclaimed,
    /// A pass: list the pods, then ask [`Engine::ready`].
    Pass {
        /// Whether the list has to be of this moment.
        lists_anew: bool,
    },
}

/// Whether a pass can begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    /// No: what evicted pods held may not show in the figures yet.
    Wait,
    /// Yes.
    Observe,
    /// Yes, once the memory of every pod was measured, and that of the node again: what came back
    /// meanwhile counts.
    Measure,
}

/// What the engine remembers from look to look. No decision depends on it.
#[derive(Clone, Debug, Default)]
pub(super) struct Looks {
    thresholds: MemoryThresholds,
    standing: Standing,
    rate: Rate,
    is_blind: bool,
    pub(super) next_step: Timestamp,
}

impl Engine {
    /// Takes a look at the memory, `None` if it cannot be read, and says what follows from it.
    pub fn look(&mut self, now: Timestamp, news: News, observation: Option<&Observation>) -> Next {
        let is_reclaimed = news.is_reclaimed && self.reclaiming.is_some();
        self.looks.is_blind = observation.is_none();
        let Some(observation) = observation else {
            if is_reclaimed {
                self.reclaiming = None;
            }
            return match now >= self.looks.next_step {
                true => Next::NotObserved,
                false => Next::Nothing,
            };
        };
        if let Some(memory) = &observation.memory {
            let rate = &mut self.looks.rate;
            rate.note(now.as_nanos(), memory.available.0);
        }
        self.take_standing(observation);
        if is_reclaimed {
            return Next::Reclaimed;
        }
        let standing = self.looks.standing;
        if !standing.is_met {
            self.state.oom_wait_until = None;
        }
        let is_held = self.state.evictions.hold_memory();
        let is_due = news.is_measured
            || now >= self.looks.next_step
            || standing.is_met
            || self.pace() <= NEAR;
        if (!is_due && !is_held) || self.waits_for_reclaim(now) {
            return Next::Nothing;
        }
        Next::Pass {
            lists_anew: standing.is_met || news.is_measured || is_held,
        }
    }

    /// Whether a pass can begin: `remains` says what is left of a pod that is being evicted.
    pub fn ready(
        &mut self,
        now: Timestamp,
        observation: &Observation,
        remains: impl FnMut(&PodUid) -> Remains,
    ) -> Ready {
        self.track(now, remains);
        let evictions = &self.state.evictions;
        if evictions.hold_memory() {
            // No pod is chosen, but conditions stay current.
            return Ready::Observe;
        }
        if now < evictions.settles_at {
            return Ready::Wait;
        }
        match self.looks.standing.is_met {
            true => Ready::Measure,
            false if self.is_measured_before_the_last_was_gone(now, observation) => Ready::Wait,
            false => Ready::Observe,
        }
    }

    /// Takes a second look at the memory in the same pass.
    pub fn look_again(&mut self, observation: &Observation) {
        self.take_standing(observation);
    }

    /// How soon to look again.
    pub fn pause(&self, now: Timestamp) -> Duration {
        if self.looks.is_blind {
            return NOT_OBSERVED;
        }
        let pace = self.pace();
        let next_step = self.looks.next_step.saturating_since(now);
        let settles = self.state.evictions.settles_at;
        let waits = [Some(settles), self.state.oom_wait_until];
        let waits = waits.into_iter().flatten().filter(|until| *until > now);
        let waits = waits.map(|until| until.saturating_since(now));
        // What was due and could not be done is tried again soon, not at once.
        let next_step = if next_step.is_zero() {
            pace.max(settles.saturating_since(now))
        } else {
            next_step
        };
        let soonest = waits.chain([pace, next_step]).min().unwrap_or(pace);
        soonest.max(SHORTEST_PAUSE)
    }

    /// What is left of a memory signal when its first threshold is met.
    pub fn first_memory_threshold(&self, signal: Signal) -> Option<i64> {
        self.looks.thresholds.first(signal)
    }

    fn take_standing(&mut self, observation: &Observation) {
        let readings = observation.readings(self.settings.memory_source);
        if self.looks.thresholds.is_outdated(&readings) {
            self.looks.thresholds = MemoryThresholds::new(self, observation, &readings);
        }
        self.looks.standing = self.looks.thresholds.standing(&readings);
    }

    fn pace(&self) -> Duration {
        // Pods with a grace period take their time.
        let is_dying = self.state.evictions.hold_memory_though_killed();
        let looks = &self.looks;
        pace(&looks.standing, is_dying, looks.rate.falling)
    }

    /// While the node frees what it can, only a hard memory threshold is worth giving that up.
    fn waits_for_reclaim(&mut self, now: Timestamp) -> bool {
        let Some(reclaiming) = &self.reclaiming else {
            return false;
        };
        let is_over = now.saturating_since(reclaiming.since) >= RECLAIM;
        if is_over || self.looks.standing.is_hard_met {
            self.reclaiming = None;
        }
        self.reclaiming.is_some()
    }

    /// Figures of disks from before an evicted pod was gone do not show what it left: no other pod
    /// is evicted for them.
    fn is_measured_before_the_last_was_gone(
        &self,
        now: Timestamp,
        observation: &Observation,
    ) -> bool {
        let gone_at = self.state.evictions.gone_at;
        let measured_at = observation.node_fs.and_then(|fs| fs.time);
        measured_at.is_some_and(|measured_at| measured_at <= gone_at)
            && now.saturating_since(gone_at) < MEASUREMENT
    }
}
