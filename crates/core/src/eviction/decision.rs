//! What the engine answers.

use std::collections::BTreeSet;
use std::sync::Arc;

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
    /// Whether it says what another decision said less than ten seconds before: that no pod may be
    /// evicted. It is neither announced nor recorded again.
    pub is_repeated: bool,
    /// How old the numbers were that led to a ranking, for
    /// `kubelet_eviction_stats_age_seconds`.
    pub stats_ages: Vec<(Signal, Duration)>,
    /// The latest time for the next call of the engine. It may be called at any moment.
    pub next_step_by: Timestamp,
}

impl Decision {
    /// Whether it does something, or begins a back-off.
    pub fn is_news(&self) -> bool {
        let begins = |shortfall: &Shortfall| shortfall.is_new;
        !self.actions.is_empty() || self.shortfall.as_ref().is_some_and(begins)
    }

    /// Whether it ends a pass that is worth a record. A reclaim that was enough leaves nothing to
    /// do, and is worth one.
    pub fn is_recorded(&self) -> bool {
        match self.verdict {
            Verdict::Reclaiming(_) => false,
            Verdict::Relieved(_) => true,
            _ => self.is_news() && !self.is_repeated,
        }
    }

    /// The pods to evict.
    pub fn evictions(&self) -> impl Iterator<Item = &Eviction> {
        self.actions.iter().filter_map(|action| match action {
            Action::Evict(eviction) => Some(&**eviction),
            _ => None,
        })
    }

    /// Pods that are being evicted and whose grace period ends now.
    pub fn kills(&self) -> impl Iterator<Item = &PodUid> {
        self.actions.iter().filter_map(|action| match action {
            Action::Kill(uid) => Some(uid),
            _ => None,
        })
    }

    /// Whether the worker of that pod has to end it.
    pub fn terminates(&self, uid: &PodUid) -> bool {
        let is_meant = |action: &Action| matches!(action, Action::Terminate(of) if of == uid);
        self.actions.iter().any(is_meant)
    }

    /// What the node must free before the next observation.
    pub fn reclaims(&self) -> impl Iterator<Item = NodeReclaim> {
        self.actions.iter().filter_map(|action| match action {
            Action::Reclaim(reclaim) => Some(*reclaim),
            _ => None,
        })
    }

    /// The announcements to make.
    pub fn announcements(&self) -> impl Iterator<Item = &str> {
        let actions = self.actions.iter().filter(|_| !self.is_repeated);
        actions.filter_map(|action| match action {
            Action::Announce(message) => Some(message.as_str()),
            _ => None,
        })
    }
}

/// What a node does about a decision, in the order of [`Phase::ORDER`]: first what brings memory
/// back, then what keeps pods away, then what explains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Pods that have no grace period are killed ([`Action::Evict`], [`Action::Kill`]). Nothing on
    /// the way there allocates memory or waits for a lock.
    Kill,
    /// The conditions are reported, so that no other pod comes to the node.
    Conditions,
    /// The engine takes the outcomes ([`super::Input::Outcome`]). Workers report pods that were
    /// killed as evicted ([`Action::Terminate`]), and their memory is taken from them.
    Outcomes,
    /// The record is written. Should the agent not live to see the end of the pods, the next one
    /// knows why they end.
    Record,
    /// Workers end pods that have a grace period ([`Action::Terminate`]).
    Terminate,
    /// Events are recorded.
    Events,
    /// The node begins to free what it can ([`Action::Reclaim`]).
    Reclaim,
}

impl Phase {
    /// All of them, first to last.
    pub const ORDER: [Phase; 7] = [
        Phase::Kill,
        Phase::Conditions,
        Phase::Outcomes,
        Phase::Record,
        Phase::Terminate,
        Phase::Events,
        Phase::Reclaim,
    ];
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// A warning event on the node with reason `EvictionThresholdMet` and this message.
    Announce(String),
    /// Free something. When all reclaims of the decision are done, the engine expects
    /// [`super::Input::Reclaimed`] with a fresh observation.
    Reclaim(NodeReclaim),
    /// Evict a pod: kill it now if it is [`Eviction::is_immediate`]. The engine expects
    /// [`super::Input::Outcome`] with the outcome.
    Evict(Arc<Eviction>),
    /// Kill a pod that is being evicted: its grace period is over. The outcome is wanted as well.
    Kill(PodUid),
    /// Have the worker of a pod that is evicted end it, with its grace period, and say why in its
    /// status.
    Terminate(PodUid),
}

/// What came of killing a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KillOutcome {
    /// All its processes were sent SIGKILL.
    Killed,
    /// It has a grace period; its worker ends it.
    Graceful,
    /// SIGKILL could not be sent; its worker ends it.
    Failed,
    /// The kernel's OOM killer was quicker, and nothing was done.
    OomKilled,
}

impl KillOutcome {
    const ALL: [KillOutcome; 4] = [
        KillOutcome::Killed,
        KillOutcome::Graceful,
        KillOutcome::Failed,
        KillOutcome::OomKilled,
    ];

    /// Its name in records.
    pub fn as_str(self) -> &'static str {
        match self {
            KillOutcome::Killed => "killed",
            KillOutcome::Graceful => "graceful",
            KillOutcome::Failed => "failed",
            KillOutcome::OomKilled => "oomKilled",
        }
    }

    /// The outcome of that name.
    pub fn from_name(name: &str) -> Option<KillOutcome> {
        let mut all = KillOutcome::ALL.into_iter();
        all.find(|outcome| outcome.as_str() == name)
    }
}

/// Why the engine did what it did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// There is nothing to watch: no thresholds, and disk limits of pods are not enforced.
    NothingToWatch,
    /// The node could not be observed; everything stays as it is.
    NotObserved,
    /// A reclaim was reported that was not requested, or whose pass was abandoned.
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
    /// The kernel's OOM killer has just killed in a pod, and its memory may come back.
    WaitingForOomKill,
    /// The outcome of a kill was recorded.
    OutcomeNoted,
    /// The node frees what it can, then looks again.
    Reclaiming(Starvation),
    /// That was enough.
    Relieved(Starvation),
    /// A pod must be evicted.
    Evicting(Starvation),
    /// A pod should be evicted, but there is none, or none that may be.
    NoPodToEvict(Starvation),
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
    /// Whether it is killed at once instead: a pod that takes memory, or forks, continues that in
    /// its grace period, and the node may not have that long. Beyond a hard threshold there is no
    /// time to give; beyond a soft one as much as the measured rate leaves.
    pub is_immediate: bool,
    /// Why.
    pub cause: Cause,
    /// The message of its status and of its event.
    pub message: String,
    /// Annotations of the event.
    pub annotations: Annotations,
    /// In how long the starved signal reaches zero at the current rate; `None` if it does
    /// not fall or that is not known.
    pub exhausted_in: Option<Duration>,
}

/// Whether processes can use up a resource faster than a grace period ends.
pub(super) fn can_be_outrun(resource: StarvedResource) -> bool {
    matches!(resource, StarvedResource::Memory | StarvedResource::Pids)
}

impl Eviction {
    /// Whether the cause and the rate leave no time for a grace period.
    pub(super) fn leaves_no_time(&self) -> bool {
        match self.cause {
            Cause::Starvation(starvation) => {
                let is_outrun = !starvation.is_soft || self.is_grace_outrun();
                can_be_outrun(starvation.resource) && is_outrun
            }
            Cause::LocalLimit(_) => false,
        }
    }

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
