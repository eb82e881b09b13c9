//! Records of the engine's state.

use serde::{Deserialize, Serialize};

use crate::object::identity::PodUid;
use crate::object::node::NodeCondition;
use crate::object::timestamp::Timestamp;
use crate::resources::Bytes;
use crate::threshold::{Duration, Signal};

use super::super::decision::ThresholdId;
use super::super::forecast::{Sample, Trends};
use super::super::pending::{PendingEviction, PendingEvictions};
use super::super::shortfall::{BackOff, MemoryEviction};
use super::super::state::State;
use super::ReplayError;
use super::settings::{parse_signal, unknown};

/// What the engine remembered. Times are nanoseconds since 1970; thresholds are places in the
/// list of [`super::super::Engine::thresholds`].
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StateRecord {
    has_passed: bool,
    /// Since when each threshold is met.
    first_observed: Vec<(usize, i64)>,
    due: Vec<usize>,
    /// When each condition was last seen.
    last_sighted: Vec<(String, i64)>,
    reported: Vec<String>,
    /// The measuring time of each signal in the last pass.
    last_times: Vec<(String, Option<i64>)>,
    stalled_since: Option<i64>,
    last_stall_time: Option<i64>,
    #[serde(default)]
    evictions: PendingRecord,
    /// What earlier releases wrote instead.
    #[serde(default, skip_serializing)]
    hold: Option<HoldRecord>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    oom_wait_until: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    evicted_for_memory: Option<MemoryEvictionRecord>,
    /// How long the last back-off is, and when it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    back_off: Option<(i64, i64)>,
    trends: Vec<TrendRecord>,
}

/// Pods that were being evicted.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct PendingRecord {
    pods: Vec<PendingPodRecord>,
    until: i64,
    gone_at: i64,
    settles_at: i64,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct PendingPodRecord {
    uid: String,
    had_memory: bool,
    holds_memory: bool,
    is_terminating: bool,
    is_killed: bool,
}

/// Pods that were being evicted, by earlier releases.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct HoldRecord {
    /// Uid, and whether the pod had memory when it was chosen.
    victims: Vec<(String, bool)>,
    until: i64,
}

/// The last eviction for want of memory.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
struct MemoryEvictionRecord {
    at: i64,
    signal: String,
    /// What would have been left without any pod that may be evicted.
    reach: Option<i64>,
}

/// The recent past of a signal.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
struct TrendRecord {
    signal: String,
    /// Time, what was left, and capacity.
    samples: Vec<(i64, i64, i64)>,
}

impl StateRecord {
    pub(in super::super) fn of(state: &State) -> StateRecord {
        let nanos = |time: Option<Timestamp>| time.map(Timestamp::as_nanos);
        let first_observed = state.first_observed.iter();
        let last_sighted = state.last_sighted.iter();
        let last_times = state.last_times.iter();
        StateRecord {
            has_passed: state.has_passed,
            first_observed: first_observed
                .map(|(id, since)| (id.0, since.as_nanos()))
                .collect(),
            due: state.due.iter().map(|id| id.0).collect(),
            last_sighted: last_sighted
                .map(|(condition, at)| (condition.to_string(), at.as_nanos()))
                .collect(),
            reported: state.conditions.iter().map(ToString::to_string).collect(),
            last_times: last_times
                .map(|(signal, time)| (signal.to_string(), nanos(*time)))
                .collect(),
            stalled_since: nanos(state.stalled_since),
            last_stall_time: nanos(state.last_stall_time),
            evictions: PendingRecord::of(&state.evictions),
            hold: None,
            oom_wait_until: nanos(state.oom_wait_until),
            evicted_for_memory: state.evicted_for_memory.map(MemoryEvictionRecord::of),
            back_off: state
                .back_off
                .map(|back_off| (back_off.delay.as_nanos(), back_off.until.as_nanos())),
            trends: Signal::ALL
                .into_iter()
                .map(|signal| TrendRecord::of(signal, &state.trends))
                .filter(|trend| !trend.samples.is_empty())
                .collect(),
        }
    }

    /// Since when a threshold was met.
    pub(super) fn met_since(&self, threshold: usize) -> Option<Timestamp> {
        let mut observed = self.first_observed.iter();
        let found = observed.find(|(place, _)| *place == threshold)?;
        Some(Timestamp::from_nanos(found.1))
    }

    /// The last measurement of a signal: when, and what was left.
    pub(super) fn last_sample(&self, signal: Signal) -> Option<(Timestamp, i64)> {
        let mut trends = self.trends.iter();
        let trend = trends.find(|trend| trend.signal == signal.to_string())?;
        let (time, available, _) = trend.samples.last()?;
        Some((Timestamp::from_nanos(*time), *available))
    }

    pub(super) fn to_state(&self, thresholds: usize) -> Result<State, ReplayError> {
        let id = |index: usize| {
            let id = (index < thresholds).then_some(ThresholdId(index));
            id.ok_or(ReplayError::NoSuchThreshold { index })
        };
        let first_observed = self.first_observed.iter();
        let last_sighted = self.last_sighted.iter();
        let last_times = self.last_times.iter();
        let mut trends = Trends::default();
        for record in &self.trends {
            record.replay_into(&mut trends)?;
        }
        Ok(State {
            has_passed: self.has_passed,
            first_observed: first_observed
                .map(|(index, since)| Ok((id(*index)?, Timestamp::from_nanos(*since))))
                .collect::<Result<_, ReplayError>>()?,
            due: self
                .due
                .iter()
                .map(|index| id(*index))
                .collect::<Result<_, _>>()?,
            last_sighted: last_sighted
                .map(|(name, at)| Ok((condition(name)?, Timestamp::from_nanos(*at))))
                .collect::<Result<_, ReplayError>>()?,
            conditions: self
                .reported
                .iter()
                .map(|name| condition(name))
                .collect::<Result<_, _>>()?,
            last_times: last_times
                .map(|(name, time)| Ok((parse_signal(name)?, time.map(Timestamp::from_nanos))))
                .collect::<Result<_, ReplayError>>()?,
            stalled_since: self.stalled_since.map(Timestamp::from_nanos),
            last_stall_time: self.last_stall_time.map(Timestamp::from_nanos),
            evictions: match &self.hold {
                Some(hold) => hold.to_evictions(),
                None => self.evictions.to_evictions(),
            },
            oom_wait_until: self.oom_wait_until.map(Timestamp::from_nanos),
            evicted_for_memory: self
                .evicted_for_memory
                .as_ref()
                .map(MemoryEvictionRecord::to_eviction)
                .transpose()?,
            back_off: self.back_off.map(|(delay, until)| BackOff {
                delay: Duration::from_nanos(delay),
                until: Timestamp::from_nanos(until),
            }),
            trends,
        })
    }
}

fn condition(name: &str) -> Result<NodeCondition, ReplayError> {
    NodeCondition::from_name(name).ok_or_else(|| unknown("before.lastSighted", name))
}

impl PendingRecord {
    fn of(evictions: &PendingEvictions) -> PendingRecord {
        PendingRecord {
            pods: evictions.pods.iter().map(PendingPodRecord::of).collect(),
            until: evictions.until.as_nanos(),
            gone_at: evictions.gone_at.as_nanos(),
            settles_at: evictions.settles_at.as_nanos(),
        }
    }

    fn to_evictions(&self) -> PendingEvictions {
        let pods = self.pods.iter().map(PendingPodRecord::to_pending);
        PendingEvictions {
            pods: pods.collect(),
            until: Timestamp::from_nanos(self.until),
            gone_at: Timestamp::from_nanos(self.gone_at),
            settles_at: Timestamp::from_nanos(self.settles_at),
        }
    }
}

impl PendingPodRecord {
    fn of(pod: &PendingEviction) -> PendingPodRecord {
        PendingPodRecord {
            uid: pod.uid.to_string(),
            had_memory: pod.had_memory,
            holds_memory: pod.holds_memory,
            is_terminating: pod.is_terminating,
            is_killed: pod.is_killed,
        }
    }

    fn to_pending(&self) -> PendingEviction {
        PendingEviction {
            uid: PodUid::new(&*self.uid),
            had_memory: self.had_memory,
            holds_memory: self.holds_memory,
            is_terminating: self.is_terminating,
            is_killed: self.is_killed,
        }
    }
}

impl HoldRecord {
    /// Whether the pods were killed was not written down; they are taken to be, so that no other
    /// kill follows.
    fn to_evictions(&self) -> PendingEvictions {
        let pod = |(uid, had_memory): &(String, bool)| PendingEviction {
            uid: PodUid::new(&**uid),
            had_memory: *had_memory,
            holds_memory: true,
            is_terminating: true,
            is_killed: true,
        };
        PendingEvictions {
            pods: self.victims.iter().map(pod).collect(),
            until: Timestamp::from_nanos(self.until),
            ..PendingEvictions::default()
        }
    }
}

impl MemoryEvictionRecord {
    fn of(eviction: MemoryEviction) -> MemoryEvictionRecord {
        MemoryEvictionRecord {
            at: eviction.at.as_nanos(),
            signal: eviction.signal.to_string(),
            reach: eviction.reach.map(|reach| reach.0),
        }
    }

    fn to_eviction(&self) -> Result<MemoryEviction, ReplayError> {
        Ok(MemoryEviction {
            at: Timestamp::from_nanos(self.at),
            signal: parse_signal(&self.signal)?,
            reach: self.reach.map(Bytes),
        })
    }
}

impl TrendRecord {
    fn of(signal: Signal, trends: &Trends) -> TrendRecord {
        let samples = trends.of(signal).samples().iter();
        TrendRecord {
            signal: signal.to_string(),
            samples: samples
                .map(|s| (s.time.as_nanos(), s.available, s.capacity))
                .collect(),
        }
    }

    fn replay_into(&self, trends: &mut Trends) -> Result<(), ReplayError> {
        let trend = trends.of_mut(parse_signal(&self.signal)?);
        for (nanos, available, capacity) in &self.samples {
            trend.push(Sample {
                time: Timestamp::from_nanos(*nanos),
                available: *available,
                capacity: *capacity,
            });
        }
        Ok(())
    }
}
