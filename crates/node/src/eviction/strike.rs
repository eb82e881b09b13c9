//! How a pod ends: at once, or with its grace.

use std::os::fd::AsRawFd;

use plimsoll_core::cgroup::CgroupPath;
use plimsoll_core::eviction::{Cause, Engine, Eviction, ThresholdId};
use plimsoll_core::threshold::StarvedResource;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::cgroup::{Cgroups, Error};

/// Kills everything in a cgroup and takes its memory away at once.
///
/// A killed process gives its memory back when it is its turn to run, and a pod that asked for no
/// cpu may wait long for that on a busy node. The kernel can be asked to take the memory here and
/// now (`process_mrelease`, since 5.15), as its own OOM killer does. It takes nothing from a process
/// that is not dying, so that a number that was given to another meanwhile does no harm, and the
/// kill need not wait for anything.
pub(super) fn kill(cgroups: &Cgroups, cgroup: &CgroupPath) -> Result<(), Error> {
    cgroups.kill(cgroup)?;
    let pids = cgroups.pids(cgroup).unwrap_or_default();
    for pid in pids.into_iter().filter_map(Pid::from_raw) {
        if let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) {
            release_memory(&process);
        }
    }
    Ok(())
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
