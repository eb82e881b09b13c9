//! What the engine answers.

use std::collections::BTreeSet;

use crate::object::identity::{PodRef, PodUid};
use crate::object::node::NodeCondition;
use crate::object::pod::status::Failure;
use crate::object::timestamp::Timestamp;
use crate::threshold::{Duration, Signal, StarvedResource};

use super::local_storage::LocalLimit;
use super::message::Annotations;
use super::reclaim::NodeReclaim;
use super::shortfall::Shortfall;

/// One of the engine's thresholds; see [`super::Engine::threshold`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ThresholdId(pub(super) usize);

impl ThresholdId {
    /// Its place among the engine's thresholds.
    pub fn index(self) -> usize {
        self.0
    }
}

/// What to do and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// The pressure conditions that the node reports from here on.
    pub conditions: BTreeSet<NodeCondition>,
    /// Thresholds that are met, or were met and are not resolved, whatever their grace.
    pub observed: Vec<ThresholdId>,
    /// Those among them past their grace.
    pub due: Vec<ThresholdId>,
    /// Why these actions and no others.
    pub verdict: Verdict,
    /// What to do, in order.
    pub actions: Vec<Action>,
    /// What evicting all pods falls short of, where it could not help.
    pub shortfall: Option<Shortfall>,
    /// How old the numbers were that led to a ranking, for
    /// `kubelet_eviction_stats_age_seconds`.
    pub stats_ages: Vec<(Signal, Duration)>,
    /// When the engine wants to be called again at the latest. It may be called at any moment.
    pub next_step_by: Timestamp,
}

impl Decision {
    /// Whether it is worth a record: it does something, or begins a back-off.
    pub fn is_news(&self) -> bool {
        let begins = |shortfall: &Shortfall| shortfall.is_new;
        !self.actions.is_empty() || self.shortfall.as_ref().is_some_and(begins)
    }

    /// The pods to evict.
    pub fn evictions(&self) -> impl Iterator<Item = &Eviction> {
        self.actions.iter().filter_map(|action| match action {
            Action::Evict(eviction) => Some(&**eviction),
            Action::Announce(_) | Action::Reclaim(_) => None,
        })
    }

    /// What the node is to free before the engine is told what it looks like then.
    pub fn reclaims(&self) -> impl Iterator<Item = NodeReclaim> {
        self.actions.iter().filter_map(|action| match action {
            Action::Reclaim(reclaim) => Some(*reclaim),
            Action::Announce(_) | Action::Evict(_) => None,
        })
    }
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// A warning event on the node with reason `EvictionThresholdMet` and this message.
    Announce(String),
    /// Free something. When all reclaims of the decision are done, the engine wants
    /// [`super::Input::Reclaimed`] with a fresh observation.
    Reclaim(NodeReclaim),
    /// Kill a pod.
    Evict(Box<Eviction>),
}

/// Why the engine did what it did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// There is nothing to watch: no thresholds, and pods are not held to their disk limits.
    NothingToWatch,
    /// The node could not be observed; everything stays as it is.
    NotObserved,
    /// A reclaim was reported that nobody asked for, or whose pass was abandoned.
    NoPassUnderWay,
    /// No threshold is met.
    NotStarved,
    /// Thresholds are met, none of them long enough.
    WithinGrace,
    /// Thresholds are due, but their numbers were acted upon before.
    StaleStats,
    /// Pods outgrew their own disk limits; thresholds wait for the next pass.
    LocalLimits,
    /// Pods are being killed and still hold what they are killed for.
    WaitingFor(Vec<PodUid>),
    /// The node frees what it can, then looks again.
    Reclaiming(Starvation),
    /// That was enough.
    Relieved(Starvation),
    /// A pod has to go.
    Evicting(Starvation),
    /// A pod would have to go, but there is none, or none that may be evicted.
    NobodyToEvict(Starvation),
    /// Evicting pods could not help, and one was evicted not long ago.
    BackingOff(Starvation),
}

/// What the pass is about: one threshold among those that are due, or stalls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Starvation {
    /// What was crossed.
    pub trigger: Trigger,
    /// What is short.
    pub resource: StarvedResource,
    /// Whether pods get the grace of a soft eviction.
    pub is_soft: bool,
}

/// What was crossed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// A threshold on a signal.
    Threshold(ThresholdId, Signal),
    /// The limit for stalls.
    MemoryStall,
}

impl Trigger {
    /// The signal whose ranking and reclaims hold.
    pub fn signal(self) -> Signal {
        match self {
            Trigger::Threshold(_, signal) => signal,
            Trigger::MemoryStall => Signal::MemoryAvailable,
        }
    }
}

/// Why a pod is evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The node is short of something.
    Starvation(Starvation),
    /// The pod outgrew a limit of its own.
    LocalLimit(LocalLimit),
}

impl Cause {
    /// The `eviction_signal` label of `kubelet_evictions`.
    pub fn metric_label(self) -> &'static str {
        match self {
            Cause::Starvation(starvation) => match starvation.trigger {
                Trigger::Threshold(_, signal) => signal.as_str(),
                Trigger::MemoryStall => "memory.stall",
            },
            Cause::LocalLimit(limit) => limit.as_str(),
        }
    }
}

/// A pod to kill.
#[derive(Clone, Debug, PartialEq)]
pub struct Eviction {
    /// The pod.
    pub pod_ref: PodRef,
    /// Its unique id.
    pub uid: PodUid,
    /// The generation of the pod the decision was made on.
    pub generation: i64,
    /// How long it gets to end, in seconds.
    pub grace_period_seconds: i64,
    /// Why.
    pub cause: Cause,
    /// The message of its status and of its event.
    pub message: String,
    /// Annotations of the event.
    pub annotations: Annotations,
    /// In how long the starved signal reaches zero if it goes on like this; `None` if it does
    /// not fall or that is not known.
    pub exhausted_in: Option<Duration>,
}

impl Eviction {
    /// Whether the node would run dry before the grace period is over. A hard kill is then the
    /// only one that comes in time.
    pub fn is_grace_outrun(&self) -> bool {
        let grace = Duration::from_secs(self.grace_period_seconds);
        self.exhausted_in.is_some_and(|left| left < grace)
    }

    /// What to write into the pod's status.
    pub fn failure(&self) -> Failure<'_> {
        Failure {
            reason: crate::admission::node_admit::REASON,
            message: &self.message,
            is_disruption: matches!(self.cause, Cause::Starvation(_)),
            generation: self.generation,
        }
    }
}
