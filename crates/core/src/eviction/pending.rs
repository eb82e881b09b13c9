//! Pods that are being evicted, until nothing is left of them.
//!
//! Choosing the next pod before the last one is gone evicts too many. Upstream waits up to 30 s
//! for the clean-up and does nothing else meanwhile. Here passes continue and keep conditions
//! current, but no pod is chosen while an evicted one still holds on.

use crate::object::identity::PodUid;
use crate::object::timestamp::Timestamp;
use crate::threshold::{Duration, StarvedResource};

use super::candidate::ActivePod;
use super::decision::{Action, Decision, KillOutcome, Verdict, can_be_outrun};
use super::engine::Engine;

/// How often to look while waiting.
pub(super) const POLL: Duration = Duration::from_secs(1);
/// How long after the last pod has released its memory the figures may lag behind: the kernel
/// uncharges dead processes in batches, and a look takes 15 ms at least.
const SETTLING: Duration = Duration::from_millis(50);
/// How long a kill by the kernel's OOM killer is given to free memory, once per shortage. A process
/// of 1 GiB is gone within 300 ms on a slow machine, and the node has not run dry before: the
/// kernel killed because the limit of a cgroup was hit.
pub(super) const OOM_KILL_WAIT: Duration = Duration::from_millis(500);

/// What is left of a pod that is being evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remains {
    /// It holds memory.
    Memory,
    /// It holds no memory; volumes or cgroups may be there.
    NoMemory,
    /// Nothing: the node has cleaned it up.
    Nothing,
}

/// An eviction that an earlier agent decided, and whose pod may still be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarlierEviction {
    /// The pod.
    pub uid: PodUid,
    /// When it was decided.
    pub at: Timestamp,
    /// How long the pod was given to end, in seconds.
    pub grace_period_seconds: i64,
    /// Whether its processes were sent SIGKILL.
    pub is_killed: bool,
}

/// The pods that are being evicted, and until when to wait for them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PendingEvictions {
    pub(super) pods: Vec<PendingEviction>,
    /// From when on the next pod is chosen even if they are still there.
    pub(super) until: Timestamp,
    /// When one of them was last found to be gone.
    pub(super) gone_at: Timestamp,
    /// Until when memory that was released may still be counted.
    pub(super) settles_at: Timestamp,
}

/// A pod that is being evicted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PendingEviction {
    pub(super) uid: PodUid,
    /// Whether the pod had memory when it was chosen. Only then does having none tell anything.
    pub(super) had_memory: bool,
    /// Whether it has held memory ever since.
    pub(super) holds_memory: bool,
    /// Whether its worker ends it.
    pub(super) is_terminating: bool,
    /// Whether its processes were sent SIGKILL.
    pub(super) is_killed: bool,
}

impl PendingEvictions {
    fn add(&mut self, now: Timestamp, uid: PodUid, grace_period_seconds: i64, had_memory: bool) {
        self.until = now + patience(grace_period_seconds);
        self.pods.push(PendingEviction {
            uid,
            had_memory,
            holds_memory: true,
            is_terminating: false,
            is_killed: false,
        });
    }

    fn resume(&mut self, earlier: EarlierEviction) {
        let until = earlier.at + patience(earlier.grace_period_seconds);
        self.until = self.until.max(until);
        self.pods.push(PendingEviction {
            uid: earlier.uid,
            had_memory: true,
            holds_memory: true,
            is_terminating: true,
            is_killed: earlier.is_killed,
        });
    }

    /// Takes what is left of each of them.
    fn track(&mut self, now: Timestamp, mut remains: impl FnMut(&PodUid) -> Remains) {
        let (count, was_held) = (self.pods.len(), self.hold_memory());
        let is_over = now >= self.until;
        self.pods.retain_mut(|pod| {
            let left = remains(&pod.uid);
            pod.holds_memory &= left == Remains::Memory && !is_over;
            left != Remains::Nothing
        });
        if self.pods.len() < count {
            self.gone_at = now;
        }
        if was_held && !self.hold_memory() {
            self.settles_at = now + SETTLING;
        }
    }

    /// Whether one of them still holds memory.
    pub(super) fn hold_memory(&self) -> bool {
        self.pods.iter().any(|pod| pod.holds_memory)
    }

    /// Whether one of them still holds memory that was killed.
    pub(super) fn hold_memory_though_killed(&self) -> bool {
        self.pods
            .iter()
            .any(|pod| pod.holds_memory && pod.is_killed)
    }

    /// Whether one of them still holds some of the resource and the wait is not over.
    pub(super) fn is_waiting(
        &self,
        now: Timestamp,
        resource: StarvedResource,
        pods: &[ActivePod<'_>],
    ) -> bool {
        let holds_on = |pending: &PendingEviction| !has_released(pending, resource, pods);
        now < self.until && self.pods.iter().any(holds_on)
    }

    /// Whether the pod is being evicted already; evicting it again frees nothing.
    pub(super) fn contains(&self, uid: &PodUid) -> bool {
        self.pods.iter().any(|pod| pod.uid == *uid)
    }
}

/// Memory and process ids are back when nothing runs any more; what a pod has on disk is back
/// only when it is gone altogether, which may be much later.
fn has_released(
    pending: &PendingEviction,
    resource: StarvedResource,
    pods: &[ActivePod<'_>],
) -> bool {
    let Some(pod) = find(&pending.uid, pods) else {
        return true;
    };
    match resource {
        StarvedResource::Memory | StarvedResource::Pids => {
            let working_set = pod.usage.map(|usage| usage.working_set().0);
            pending.had_memory && working_set.unwrap_or_default() == 0
        }
        StarvedResource::EphemeralStorage | StarvedResource::Inodes => false,
    }
}

fn find<'a, 'p>(uid: &PodUid, pods: &'a [ActivePod<'p>]) -> Option<&'a ActivePod<'p>> {
    pods.iter().find(|pod| pod.candidate.uid == *uid)
}

/// What is left of a pod, by what was observed.
pub(super) fn remains(uid: &PodUid, pods: &[ActivePod<'_>]) -> Remains {
    match find(uid, pods) {
        None => Remains::Nothing,
        Some(pod) if pod.usage.is_some_and(|usage| usage.working_set().0 > 0) => Remains::Memory,
        Some(_) => Remains::NoMemory,
    }
}

/// How long to wait for a pod: as long as upstream's kill may block, max(10 s, 1.5 * grace), and
/// 30 s for the clean-up.
fn patience(grace_period_seconds: i64) -> Duration {
    let kill_seconds = (grace_period_seconds.saturating_mul(3) / 2).max(10);
    Duration::from_secs(kill_seconds.saturating_add(30))
}

impl Engine {
    /// Goes on with evictions of an earlier agent: pods that are still there are waited for as if
    /// this engine had chosen them, and not chosen again.
    pub fn resume(&mut self, earlier: Vec<EarlierEviction>) {
        self.earlier = earlier;
    }

    pub(super) fn track(&mut self, now: Timestamp, mut remains: impl FnMut(&PodUid) -> Remains) {
        if !self.earlier.is_empty() {
            let all = std::mem::take(&mut self.earlier);
            for earlier in all {
                match remains(&earlier.uid) {
                    Remains::Nothing => self.earlier.push(earlier),
                    _ => self.state.evictions.resume(earlier),
                }
            }
        }
        self.state.evictions.track(now, remains);
    }

    pub(super) fn add_pending(
        &mut self,
        now: Timestamp,
        uid: PodUid,
        grace_period_seconds: i64,
        had_memory: bool,
    ) {
        let evictions = &mut self.state.evictions;
        evictions.add(now, uid, grace_period_seconds, had_memory);
    }

    /// Takes what came of a kill. A pod in which the kernel was quicker is not evicted: it may be
    /// chosen again, once its memory had time to come back.
    pub(super) fn take_outcome(
        &mut self,
        now: Timestamp,
        uid: &PodUid,
        outcome: KillOutcome,
    ) -> Decision {
        let evictions = &mut self.state.evictions;
        let mut actions = Vec::new();
        if outcome == KillOutcome::OomKilled {
            evictions.pods.retain(|pod| pod.uid != *uid);
            evictions.settles_at = now + OOM_KILL_WAIT;
        } else if let Some(pod) = evictions.pods.iter_mut().find(|pod| pod.uid == *uid) {
            pod.is_killed |= outcome == KillOutcome::Killed;
            if !pod.is_terminating {
                pod.is_terminating = true;
                actions.push(Action::Terminate(uid.clone()));
            }
        }
        self.decide(now, Verdict::OutcomeNoted, actions)
    }

    /// Whether what the kernel's OOM killer has killed is given time to free memory.
    pub(super) fn waits_for_oom_kill(&mut self, now: Timestamp, is_oom_killed: bool) -> bool {
        if is_oom_killed && self.state.oom_wait_until.is_none() {
            self.state.oom_wait_until = Some(now + OOM_KILL_WAIT);
        }
        self.state.oom_wait_until.is_some_and(|until| now < until)
    }

    /// Kills the first `count` pods that are being evicted and have a grace period left, if a hard
    /// threshold is due: the node does not have that long.
    pub(super) fn end_grace_periods(&self, count: usize, decision: &mut Decision) {
        let is_hard = decision.due.iter().any(|id| {
            let threshold = self.threshold(*id);
            threshold.is_hard() && can_be_outrun(threshold.signal.resource())
        });
        if self.settings.always_give_grace || !is_hard {
            return;
        }
        let earlier = self.state.evictions.pods.iter().take(count);
        let graceful = earlier.filter(|pod| pod.holds_memory && !pod.is_killed);
        let kills = graceful.map(|pod| Action::Kill(pod.uid.clone()));
        decision.actions.extend(kills);
    }
}
