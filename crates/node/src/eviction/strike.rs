//! How a pod ends: at once, or with its grace.

use std::os::fd::AsRawFd;

use plimsoll_core::eviction::{Action, Cause, Decision, Engine, Eviction, ThresholdId};
use plimsoll_core::threshold::StarvedResource;
use rustix::process::{PidfdFlags, pidfd_open};

use super::gauge::Reading;
use super::target::Targets;
use crate::cgroup::{Blade, Error};

/// What came of an eviction at once.
#[derive(Debug)]
pub(super) enum Struck {
    /// All its processes were sent to death.
    Killed,
    /// They could not be.
    Failed(Error),
    /// The kernel had killed somebody in it, for want of memory, and nothing was done.
    KernelFirst,
}

/// Kills the pods of a decision that have to go at once, and notes down what came of it by the number
/// of the action. This is the path on which a node without memory must not wait: nothing here asks
/// for any, takes a lock, or starts a process, if there is room in `done`.
pub(super) fn strike_at_once(
    decision: &Decision,
    targets: &mut Targets,
    reading: &mut Reading,
    gives_grace_always: bool,
    done: &mut Vec<(usize, Struck)>,
) {
    for (index, action) in decision.actions.iter().enumerate() {
        let Action::Evict(eviction) = action else {
            continue;
        };
        let Some(target) = targets.get_mut(&eviction.uid) else {
            continue;
        };
        if target.was_oom_killed(reading) {
            done.push((index, Struck::KernelFirst));
        } else if is_at_once(eviction, gives_grace_always) {
            let struck = match target.strike_with_sign() {
                Ok(()) => Struck::Killed,
                Err(error) => Struck::Failed(error),
            };
            done.push((index, struck));
        }
    }
}

/// Takes the memory of what was killed.
///
/// A killed process gives its memory back when it is its turn to run, and a pod that asked for no
/// cpu may wait long for that on a busy node. The kernel can be asked to take the memory here and
/// now (`process_mrelease`, since 5.15), as its own OOM killer does. It takes nothing from a process
/// that is not dying, so that a number that was given to another meanwhile does no harm.
///
/// That is work, done on the thread that asks: a tenth of a second and more for a large process on a
/// slow machine. What the API has to know is on its way before; what makes others busy, the end of
/// the pod and its events, comes after.
pub(super) fn release(blade: &Blade) {
    // What cannot be found gives its memory back by itself.
    let _ = blade.each_pid(&mut |pid| {
        if let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) {
            release_memory(&process);
        }
    });
}

/// Whatever comes of it: the process is dying.
#[expect(unsafe_code, reason = "no safe crate has this system call")]
fn release_memory(process: &impl AsRawFd) {
    // SAFETY: takes a descriptor that is open and a number; writes no memory of this process.
    let _ = unsafe { libc::syscall(libc::SYS_process_mrelease, process.as_raw_fd(), 0_u32) };
}

/// Whether the pod is killed at once, from the shell's own thread.
///
/// A process that takes memory, or forks, goes on doing so in its grace, and the node may not have
/// that long. Behind a hard line there is no time to give; behind a soft one as much as the
/// measured rate leaves. `gives_grace_always` is what upstream does.
fn is_at_once(eviction: &Eviction, gives_grace_always: bool) -> bool {
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
