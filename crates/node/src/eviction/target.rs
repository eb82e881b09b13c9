//! The open files that killing a pod takes, prepared before they are needed.

use std::collections::BTreeMap;
use std::sync::Arc;

use plimsoll_core::eviction::Eviction;
use plimsoll_core::object::identity::PodUid;
use plimsoll_runtime::cgroup::{Error, KillHandle};

use super::gauge::{OomKills, Reading};
use super::kill::release;
use crate::pods::KillNotice;

/// By pod.
pub(super) type Targets = BTreeMap<PodUid, Target>;

/// A pod that may be evicted.
#[derive(Debug)]
pub(super) struct Target {
    kill_handle: KillHandle,
    notice: Option<Arc<KillNotice>>,
    oom_kills: OomKills,
    /// How many processes the kernel had killed at the last look.
    killed_before: Option<u64>,
}

impl Target {
    pub(super) fn new(
        kill_handle: KillHandle,
        oom_kills: OomKills,
        notice: impl FnOnce() -> Option<Arc<KillNotice>>,
    ) -> Target {
        Target {
            kill_handle,
            notice: notice(),
            oom_kills,
            killed_before: None,
        }
    }

    /// Takes over what was known of the same pod before it changed.
    pub(super) fn succeed(&mut self, before: &Target) {
        self.killed_before = before.killed_before;
    }

    /// Does what can be done beforehand.
    pub(super) fn get_ready(&mut self, reading: &mut Reading) {
        self.kill_handle.open();
        // What was killed before the pod was known is not news.
        if self.killed_before.is_none() {
            self.was_oom_killed(reading);
        }
    }

    /// Whether the kernel's OOM killer killed in it since the last time this was asked.
    pub(super) fn was_oom_killed(&mut self, reading: &mut Reading) -> bool {
        let killed = self.oom_kills.read(reading);
        let before = self.killed_before.replace(killed);
        before.is_some_and(|before| killed > before)
    }

    /// Lets the pod's worker know why its processes are killed, before they are.
    pub(super) fn give_notice(&self, eviction: &Arc<Eviction>) {
        if let Some(notice) = &self.notice {
            notice.give(eviction);
        }
    }

    /// Kills everything in it.
    pub(super) fn kill(&mut self) -> Result<(), Error> {
        self.kill_handle.kill()
    }

    /// Takes the memory of what was killed in it.
    pub(super) fn release(&self) {
        release(&self.kill_handle);
    }
}
