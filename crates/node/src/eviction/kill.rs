//! Killing pods at once.

use std::os::fd::AsRawFd;
use std::sync::Arc;

use plimsoll_core::eviction::{Action, Decision, Eviction, KillOutcome};
use plimsoll_runtime::cgroup::{Error, KillHandle};
use rustix::process::{PidfdFlags, pidfd_open};

use super::gauge::Reading;
use super::target::{Target, Targets};

/// What came of an action, by its number. An error is [`KillOutcome::Failed`].
pub(super) type Outcomes = Vec<(usize, Result<KillOutcome, Error>)>;

/// Kills the pods of a decision that have no grace period, unless the kernel's OOM killer has killed
/// in them since the engine observed them, and records the outcome. This is the path on which
/// a node without memory must not wait: nothing here allocates, takes a lock, or starts a
/// process, if there is room in `outcomes`.
pub(super) fn kill_pods(
    decision: &Decision,
    targets: &mut Targets,
    reading: &mut Reading,
    outcomes: &mut Outcomes,
) {
    for (index, action) in decision.actions.iter().enumerate() {
        let outcome = match action {
            Action::Evict(eviction) => match targets.get_mut(&eviction.uid) {
                Some(target) => evict(eviction, target, reading),
                None => Ok(KillOutcome::Graceful),
            },
            Action::Kill(uid) => match targets.get_mut(uid) {
                Some(target) => target.kill().map(|()| KillOutcome::Killed),
                None => continue,
            },
            _ => continue,
        };
        outcomes.push((index, outcome));
    }
}

fn evict(
    eviction: &Arc<Eviction>,
    target: &mut Target,
    reading: &mut Reading,
) -> Result<KillOutcome, Error> {
    if target.was_oom_killed(reading) {
        return Ok(KillOutcome::OomKilled);
    }
    if !eviction.is_immediate {
        return Ok(KillOutcome::Graceful);
    }
    target.give_notice(eviction);
    target.kill().map(|()| KillOutcome::Killed)
}

/// Takes the memory of what was killed.
///
/// A killed process gives its memory back when it is its turn to run, and a pod that requests no
/// cpu may wait long for that on a busy node. The kernel can reclaim the memory here and
/// now (`process_mrelease`, since 5.15), as its own OOM killer does. It takes nothing from a process
/// that is not dying, so that a number that was given to another meanwhile does no harm.
///
/// That is work, done on the calling thread: a tenth of a second and more for a large process on a
/// slow machine. What the API has to know is sent before; what makes others busy, the end of
/// the pod and its events, comes after.
pub(super) fn release(kill_handle: &KillHandle) {
    // What cannot be found gives its memory back by itself.
    let _ = kill_handle.each_pid(&mut |pid| {
        if let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) {
            release_memory(&process);
        }
    });
}

/// The result is ignored: the process is dying.
#[expect(unsafe_code, reason = "no safe crate has this system call")]
fn release_memory(process: &impl AsRawFd) {
    // SAFETY: takes a descriptor that is open and a number; writes no memory of this process.
    let _ = unsafe { libc::syscall(libc::SYS_process_mrelease, process.as_raw_fd(), 0_u32) };
}
