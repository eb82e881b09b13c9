//! What it takes to end a pod, at hand before it is needed.

use std::collections::BTreeMap;
use std::sync::Arc;

use plimsoll_core::object::identity::PodUid;

use super::gauge::{OomKills, Reading};
use super::strike::release;
use crate::cgroup::{Blade, Error};
use crate::pods::Sign;

/// By pod.
pub(super) type Targets = BTreeMap<PodUid, Target>;

/// A pod that may have to go.
#[derive(Debug)]
pub(super) struct Target {
    blade: Blade,
    sign: Option<Arc<Sign>>,
    oom_kills: OomKills,
    /// How many processes the kernel had killed at the last look.
    killed_before: Option<u64>,
}

impl Target {
    pub(super) fn new(
        blade: Blade,
        oom_kills: OomKills,
        sign: impl FnOnce() -> Option<Arc<Sign>>,
    ) -> Target {
        Target {
            blade,
            sign: sign(),
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
        self.blade.draw();
        // What the kernel killed before the pod was known is not news.
        if self.killed_before.is_none() {
            self.was_oom_killed(reading);
        }
    }

    /// Whether the kernel killed somebody in it since the last time this was asked.
    pub(super) fn was_oom_killed(&mut self, reading: &mut Reading) -> bool {
        let killed = self.oom_kills.read(reading);
        let before = self.killed_before.replace(killed);
        before.is_some_and(|before| killed > before)
    }

    /// Kills everything in it, with a sign to whoever sees it dead: the reason follows.
    pub(super) fn strike_with_sign(&mut self) -> Result<(), Error> {
        if let Some(sign) = &self.sign {
            sign.give();
        }
        self.strike()
    }

    /// Kills everything in it.
    pub(super) fn strike(&mut self) -> Result<(), Error> {
        self.blade.strike()
    }

    /// Takes the memory of what was killed in it.
    pub(super) fn release(&self) {
        release(&self.blade);
    }
}
