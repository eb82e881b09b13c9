//! How a pod ends: at once, or with its grace.

use plimsoll_core::eviction::{Cause, Engine, Eviction, ThresholdId};
use plimsoll_core::threshold::StarvedResource;

/// Whether the pod is killed at once, from the shell's own thread.
///
/// A process that takes memory, or forks, goes on doing so in its grace, and the node may not have
/// that long. Behind a hard line there is no time to give; behind a soft one as much as the
/// measured rate leaves. `gives_grace_always` is what upstream does.
pub(super) fn is_at_once(eviction: &Eviction, gives_grace_always: bool) -> bool {
    let Cause::Starvation(starvation) = eviction.cause else {
        return false;
    };
    let can_be_outrun = can_be_outrun(starvation.resource);
    can_be_outrun && !gives_grace_always && (!starvation.is_soft || eviction.is_grace_outrun())
}

/// Whether pods that die with their grace have to be killed now: a hard line is crossed.
pub(super) fn is_grace_over(engine: &Engine, due: &[ThresholdId]) -> bool {
    due.iter().any(|id| {
        let threshold = engine.threshold(*id);
        threshold.is_hard() && can_be_outrun(threshold.signal.resource())
    })
}

fn can_be_outrun(resource: StarvedResource) -> bool {
    matches!(resource, StarvedResource::Memory | StarvedResource::Pids)
}
