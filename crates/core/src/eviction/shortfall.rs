//! Whether evicting pods can bring memory back, and the back-off where it cannot.
//!
//! Memory that system daemons, the kernel or the agent itself hold does not come back however many
//! pods are evicted. Upstream still evicts one pod after the other, and those that take their
//! places. Here one pod is evicted, as upstream does in one pass, and then none for the time of a
//! back-off, as long as all pods together hold less than what is short. Conditions are not
//! affected.
//!
//! Upstream looks every ten seconds, and so it evicts one pod in ten seconds at most. Passes follow
//! each other faster here. Within that time another pod is evicted only if evicting pods keeps the
//! node above its threshold for as long: not where memory is taken outside of pods faster than
//! they can give it back.
//!
//! Only for memory: what evicting a pod gives back of a disk or of process ids is not known well
//! enough (its image becomes unused, and counts are seconds old).

use crate::object::timestamp::Timestamp;
use crate::resources::Bytes;
use crate::threshold::{Duration, Signal, StarvedResource};

use super::candidate::ActivePod;
use super::decision::{Starvation, Trigger};
use super::engine::Engine;
use super::observation::Readings;
use super::signal_source::MemorySource;

/// The first back-off: as long as upstream's conditions last by default, so that pods that come when
/// a condition ends are not evicted more often than it changes.
const FIRST: Duration = Duration::from_secs(5 * 60);
/// How long the release of an evicted pod's memory may take before the eviction counts as no
/// help: upstream's `evictionMonitoringPeriod`.
const SETTLING: Duration = Duration::from_secs(10);
/// The longest back-off: an hour. Not longer, because figures may be wrong, and a pod that holds
/// memory which its cgroup is not charged with must be evicted in the end.
const LONGEST: Duration = Duration::from_secs(60 * 60);

/// What evicting every pod that may be evicted falls short of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortfall {
    /// What is short.
    pub signal: Signal,
    /// Where the threshold is on this node.
    pub threshold: Bytes,
    /// What is left.
    pub available: Bytes,
    /// How many pods may be evicted.
    pub pods: usize,
    /// What they hold together.
    pub evictable: Bytes,
    /// What other pods hold: critical ones, and those that have ended.
    pub exempt: Bytes,
    /// How long the back-off is.
    pub back_off: Duration,
    /// When it ends.
    pub until: Timestamp,
    /// Whether it begins with this decision.
    pub is_new: bool,
}

/// What pods hold of the memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) pods: usize,
    pub(super) evictable: Bytes,
    pub(super) exempt: Bytes,
}

impl Held {
    /// Of those pods; `None` if one of them was not measured.
    pub(super) fn by<'a>(pods: impl Iterator<Item = &'a ActivePod<'a>>) -> Option<Held> {
        let mut held = Held::default();
        for pod in pods {
            let used = pod.usage?.memory?.working_set?;
            if pod.candidate.is_exempt {
                held.exempt += used;
            } else {
                held.pods += 1;
                held.evictable += used;
            }
        }
        Some(held)
    }
}

/// A back-off that has begun.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct BackOff {
    pub(super) delay: Duration,
    pub(super) until: Timestamp,
}

/// The last eviction for want of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MemoryEviction {
    pub(super) at: Timestamp,
    /// For which signal.
    pub(super) signal: Signal,
    /// What would have been left without any pod that may be evicted; `None` if not known.
    pub(super) reach: Option<Bytes>,
}

impl BackOff {
    /// The next one: twice as long, unless the last was over for long.
    fn next(last: Option<BackOff>, now: Timestamp) -> BackOff {
        let last = last.filter(|last| now < last.until + LONGEST);
        let doubled = |last: BackOff| Duration::from_nanos(last.delay.as_nanos().saturating_mul(2));
        let delay = last.map_or(FIRST, |last| doubled(last).clamp(FIRST, LONGEST));
        BackOff {
            delay,
            until: now + delay,
        }
    }
}

impl Engine {
    /// What evicting all pods falls short of, with the back-off under way, or with the next one if
    /// there is none. `None` where evicting pods can help, that is not known, or there are none.
    pub(super) fn shortfall(
        &self,
        now: Timestamp,
        starvation: Starvation,
        readings: &Readings,
        pods: &[ActivePod<'_>],
    ) -> Option<Shortfall> {
        // What a pod has in swap comes back with it, and is not known.
        let is_known = self.settings.memory_source != MemorySource::SwapAware;
        let is_memory = starvation.resource == StarvedResource::Memory;
        let Trigger::Threshold(_, signal) = starvation.trigger else {
            return None;
        };
        if !self.settings.back_off || !is_known || !is_memory {
            return None;
        }
        let held = self.held(pods)?;
        let shortage = self.shortage(starvation.trigger, readings)?;
        let threshold = Bytes(shortage.threshold.value());
        let available = Bytes(shortage.available.value());
        let reach = available + held.evictable;
        let can_help = reach >= threshold && !self.is_outrun(now, signal, reach, threshold);
        if held.pods == 0 || can_help {
            return None;
        }
        let under_way = self.back_off_under_way(now);
        let back_off = under_way.unwrap_or_else(|| BackOff::next(self.state.back_off, now));
        Some(Shortfall {
            signal,
            threshold,
            available,
            pods: held.pods,
            evictable: held.evictable,
            exempt: held.exempt,
            back_off: back_off.delay,
            until: back_off.until,
            is_new: self.state.back_off != Some(back_off)
                && (under_way.is_none() || self.has_settled(now)),
        })
    }

    /// Whether no pod is evicted at the moment for what evicting pods cannot bring back.
    pub(super) fn is_backing_off(&self, now: Timestamp) -> bool {
        self.back_off_under_way(now).is_some()
    }

    /// What pods hold that are not being killed already.
    fn held(&self, pods: &[ActivePod<'_>]) -> Option<Held> {
        let listed = pods.iter().filter(|pod| !self.is_dying(pod.candidate));
        let mut held = Held::by(listed)?;
        let unlisted = self.unlisted?;
        held.pods += unlisted.pods;
        held.evictable += unlisted.evictable;
        held.exempt += unlisted.exempt;
        Some(held)
    }

    /// Takes note of an eviction for want of memory.
    pub(super) fn note_eviction(
        &mut self,
        now: Timestamp,
        starvation: Starvation,
        readings: &Readings,
        pods: &[ActivePod<'_>],
    ) {
        let signal = starvation.trigger.signal();
        if signal.resource() != StarvedResource::Memory {
            return;
        }
        let held = self.held(pods);
        let reach = held.zip(readings.get(signal));
        self.state.evicted_for_memory = Some(MemoryEviction {
            at: now,
            signal,
            reach: reach.map(|(held, reading)| Bytes(reading.available) + held.evictable),
        });
    }

    /// Whether memory is taken outside of pods so fast since the last eviction that evicting all
    /// pods would bring less than upstream's period:
    ///   reach - lost / elapsed * 10 s < threshold
    /// where `reach` is what would be left without pods that may be evicted, which does not change
    /// when a pod takes memory or gives it back, and `lost` is by how much it fell. 60 MiB above
    /// the threshold after a loss of 10 MiB in one second are not enough. Less than a second counts
    /// as one, so that memory that is released a moment late does not count as lost.
    fn is_outrun(&self, now: Timestamp, signal: Signal, reach: Bytes, threshold: Bytes) -> bool {
        let last = self.state.evicted_for_memory;
        let Some(last) = last.filter(|last| last.signal == signal && !self.has_settled(now)) else {
            return false;
        };
        let Some(before) = last.reach else {
            return false;
        };
        let lost = i128::from(before.saturating_sub(reach).0);
        let elapsed = (now - last.at).max(Duration::from_secs(1)).as_nanos();
        let losing = lost * i128::from(SETTLING.as_nanos()) / i128::from(elapsed);
        i128::from(reach.0) - losing < i128::from(threshold.0)
    }

    fn has_settled(&self, now: Timestamp) -> bool {
        let evicted_at = self.state.evicted_for_memory;
        evicted_at.is_none_or(|last| now >= last.at + SETTLING)
    }

    /// The back-off that holds now. A pod that was evicted for memory just before, when evicting
    /// pods could still have helped, is the one: the back-off counts from its eviction.
    fn back_off_under_way(&self, now: Timestamp) -> Option<BackOff> {
        let known = self.state.back_off.filter(|known| now < known.until);
        known.or_else(|| {
            let evicted_at = self.state.evicted_for_memory?.at;
            let is_recent = now < evicted_at + FIRST;
            is_recent.then(|| BackOff::next(self.state.back_off, evicted_at))
        })
    }

    /// Begins the back-off of a shortfall.
    pub(super) fn back_off(&mut self, shortfall: &Shortfall) {
        self.state.back_off = Some(BackOff {
            delay: shortfall.back_off,
            until: shortfall.until,
        });
    }

    /// Resumes a back-off that an earlier engine began.
    pub fn resume_back_off(&mut self, delay: Duration, until: Timestamp) {
        if self.settings.back_off {
            self.state.back_off = Some(BackOff { delay, until });
        }
    }
}
