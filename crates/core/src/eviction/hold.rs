//! Waiting for killed pods to give back what they held.
//!
//! Choosing the next victim before the last one is gone evicts too many. Upstream waits up to
//! 30 s for the clean-up and does nothing else meanwhile. Here passes go on and keep conditions
//! current, but no pod is chosen while a victim still holds on.

use crate::object::identity::PodUid;
use crate::object::timestamp::Timestamp;
use crate::threshold::{Duration, StarvedResource};

use super::candidate::ActivePod;

/// How often to look while waiting.
pub(super) const POLL: Duration = Duration::from_secs(1);

/// Pods that are being killed, and until when to wait for them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Hold {
    /// The pods.
    pub(super) victims: Vec<Victim>,
    /// From when on the next pod is chosen even if they are still there.
    pub(super) until: Timestamp,
}

/// A pod that is being killed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Victim {
    pub(super) uid: PodUid,
    /// Whether the pod had memory when it was chosen. Only then does having none tell anything.
    pub(super) had_memory: bool,
}

impl Hold {
    /// Forgets the victims that are no longer active.
    pub(super) fn prune(&mut self, pods: &[ActivePod<'_>]) {
        self.victims.retain(|victim| find(victim, pods).is_some());
    }

    /// Whether a victim still holds some of the resource and the wait is not over.
    pub(super) fn is_waiting(
        &self,
        now: Timestamp,
        resource: StarvedResource,
        pods: &[ActivePod<'_>],
    ) -> bool {
        let holds_on = |victim: &Victim| !has_let_go(victim, resource, pods);
        now < self.until && self.victims.iter().any(holds_on)
    }

    /// Whether the pod is being killed already; killing it again frees nothing.
    pub(super) fn contains(&self, uid: &PodUid) -> bool {
        self.victims.iter().any(|victim| victim.uid == *uid)
    }
}

/// Memory and process ids are back when nothing runs any more; what a pod has on disk is back
/// only when it is gone altogether, which may be much later.
fn has_let_go(victim: &Victim, resource: StarvedResource, pods: &[ActivePod<'_>]) -> bool {
    let Some(pod) = find(victim, pods) else {
        return true;
    };
    match resource {
        StarvedResource::Memory | StarvedResource::Pids => {
            let working_set = pod.usage.map(|usage| usage.working_set().0);
            victim.had_memory && working_set.unwrap_or_default() == 0
        }
        StarvedResource::EphemeralStorage | StarvedResource::Inodes => false,
    }
}

fn find<'a, 'p>(victim: &Victim, pods: &'a [ActivePod<'p>]) -> Option<&'a ActivePod<'p>> {
    pods.iter().find(|pod| pod.candidate.uid == victim.uid)
}

/// How long to wait for a pod: as long as upstream's kill may block, max(10 s, 1.5 * grace), and
/// 30 s for the clean-up.
pub(super) fn patience(grace_period_seconds: i64) -> Duration {
    let kill_seconds = (grace_period_seconds.saturating_mul(3) / 2).max(10);
    Duration::from_secs(kill_seconds.saturating_add(30))
}
