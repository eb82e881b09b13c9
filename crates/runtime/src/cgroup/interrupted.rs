//! Finishes kills that an agent had begun when it was killed itself.
//!
//! On cgroup v1 a pod's cgroup is frozen while its processes are signalled. An agent that ends in that
//! moment leaves it frozen: nothing in it runs, and no signal can end its processes.
//!
//! Only cgroups that agents have frozen are touched. Only agents freeze the cgroups of pods:
//! software that pauses, checkpoints or changes a container (containerd, runc, CRIU) freezes
//! that of the container, below. That one stays as it is, and so does a pod that is frozen because
//! of a cgroup above it. The embedded runtime freezes its containers too, but only to remove them,
//! which is tried again. Where the kernel kills with one write (`cgroup.kill`, cgroup v2) agents
//! freeze nothing, so that a pod there was frozen by other software, for example
//! `systemctl freeze`.
//!
//! A process that was signalled already cannot be saved, and the rest of its pod is of no use: the
//! agent finishes that kill. If no process was, the agent thaws the pod and decides again, by the
//! present state of the node, whether to evict it.

use std::collections::BTreeSet;
use std::fs;

use plimsoll_core::object::identity::PodUid;
use rustix::process::{Pid, Signal};

use super::error::Error;
use super::kill::KillHandle;
use super::tree::Cgroups;

impl Cgroups {
    /// Finishes or undoes kills by an earlier agent that left pods frozen; returns the killed pods.
    pub fn finish_kills(&self) -> Result<BTreeSet<PodUid>, Error> {
        let mut killed = BTreeSet::new();
        for (uid, name) in self.found_pods()? {
            let mut kill_handle = self.kill_handle(&self.path(&name));
            if !kill_handle.is_left_frozen() {
                continue;
            }
            if !is_any_kill_pending(&kill_handle)? {
                tracing::info!(pod = %uid, "thawed pod left frozen by an interrupted kill");
                kill_handle.thaw();
                continue;
            }
            tracing::info!(pod = %uid, "finishing interrupted kill of pod");
            if let Err(error) = kill_handle.kill() {
                tracing::warn!(pod = %uid, %error, "failed to kill remaining processes of pod");
            }
            killed.insert(uid);
        }
        Ok(killed)
    }
}

/// Whether a process in the cgroup dies as soon as it is thawed.
fn is_any_kill_pending(kill_handle: &KillHandle) -> Result<bool, Error> {
    let mut is_pending = false;
    kill_handle.each_pid(&mut |pid| is_pending |= is_kill_pending(pid))?;
    Ok(is_pending)
}

fn is_kill_pending(pid: Pid) -> bool {
    let status = format!("/proc/{}/status", pid.as_raw_nonzero());
    // One that cannot be read is gone.
    fs::read_to_string(status).is_ok_and(|status| has_pending_kill(&status))
}

/// By the text of `/proc/<pid>/status`: signals to the thread, and to the process.
fn has_pending_kill(status: &str) -> bool {
    let bit = 1_u64 << (Signal::KILL.as_raw() - 1);
    let pending = status.lines().filter_map(|line| {
        let (name, mask) = line.split_once(':')?;
        let is_pending = matches!(name, "SigPnd" | "ShdPnd");
        is_pending.then(|| u64::from_str_radix(mask.trim(), 16))
    });
    pending.flatten().any(|mask| mask & bit != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kill_is_pending_for_a_thread_or_for_the_process() {
        let status = |thread: &str, process: &str| {
            format!("Name:\tsh\nSigPnd:\t{thread}\nShdPnd:\t{process}\nSigBlk:\t0000000000000100\n")
        };
        let (none, kill, term) = ("0000000000000000", "0000000000000100", "0000000000004000");
        for (thread, process, expected) in [
            (none, none, false),
            (none, term, false),
            (kill, none, true),
            (none, kill, true),
        ] {
            let text = status(thread, process);
            assert_eq!(has_pending_kill(&text), expected, "{text}");
        }
    }
}
