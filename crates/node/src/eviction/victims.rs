//! Pods that were evicted, until nothing of them is left: what they hold comes back, and nobody else
//! is chosen for it meanwhile.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_core::eviction::Engine;
use plimsoll_core::eviction::record::Record;
use plimsoll_core::object::identity::PodUid;
use plimsoll_core::object::timestamp::Timestamp;

use super::gauge::Reading;
use super::roster::Roster;
use crate::cgroup::Cgroups;

/// How long after the last victim has let go the memory may take to show in the figures.
const SETTLING: Duration = Duration::from_millis(50);
/// For how long a victim is worth looking at after its grace.
const PATIENCE: Duration = Duration::from_secs(60);

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Victims {
    dying: Vec<Dying>,
    /// Whom an earlier agent has evicted and who was not seen here yet.
    resumed: Vec<Resumed>,
    /// Pods of which something is left, on disk perhaps.
    leaving: Vec<PodUid>,
    left_at: Timestamp,
    settles: Timestamp,
}

/// A pod that holds memory.
#[derive(Debug)]
struct Dying {
    uid: PodUid,
    /// How long it is waited for.
    until: Timestamp,
    is_struck: bool,
}

/// One of an earlier agent's.
#[derive(Debug)]
struct Resumed {
    uid: PodUid,
    at: Timestamp,
    grace_period_seconds: i64,
    is_struck: bool,
}

impl Victims {
    /// Those of an earlier agent that its records tell of.
    pub(super) fn of_earlier(records: &[Arc<Record>]) -> Victims {
        let evictions = records.iter().flat_map(|record| {
            record.carried_out().map(|eviction| Resumed {
                uid: PodUid::new(&eviction.uid),
                at: record.at.unwrap_or_default(),
                grace_period_seconds: eviction.grace_period_seconds,
                is_struck: record.is_struck(&eviction.uid),
            })
        });
        Victims {
            resumed: evictions.collect(),
            ..Victims::default()
        }
    }

    /// Waits for a pod that was evicted then.
    pub(super) fn add(&mut self, since: Timestamp, uid: PodUid, grace: i64, is_struck: bool) {
        let grace = u64::try_from(grace).unwrap_or_default();
        let patience = PATIENCE.saturating_add(Duration::from_secs(grace));
        self.leaving.push(uid.clone());
        self.dying.push(Dying {
            uid,
            until: since.saturating_add(patience),
            is_struck,
        });
    }

    /// Takes who is there now: those of an earlier agent that are still here are waited for as if
    /// this one had chosen them, and those of whom nothing is left are gone.
    pub(super) fn take_roster(&mut self, now: Timestamp, engine: &mut Engine, roster: &Roster) {
        let all = std::mem::take(&mut self.resumed);
        for victim in all {
            if roster.contains(&victim.uid) {
                let grace = victim.grace_period_seconds;
                engine.resume(&victim.uid, victim.at, grace);
                self.add(victim.at, victim.uid, grace, victim.is_struck);
            } else {
                self.resumed.push(victim);
            }
        }
        let count = self.leaving.len();
        self.leaving.retain(|uid| roster.contains(uid));
        if self.leaving.len() < count {
            self.left_at = now;
        }
    }

    /// Forgets those who hold no memory any more; answers whether somebody does.
    pub(super) fn is_any_dying(
        &mut self,
        now: Timestamp,
        roster: &mut Roster,
        reading: &mut Reading,
        cgroups: &Cgroups,
    ) -> bool {
        if self.dying.is_empty() {
            return false;
        }
        self.dying
            .retain(|dying| now < dying.until && roster.holds_memory(&dying.uid, reading, cgroups));
        if self.dying.is_empty() {
            self.settles = now.saturating_add(SETTLING);
        }
        !self.dying.is_empty()
    }

    /// A hard line is crossed: those who die with their grace have none left.
    pub(super) fn strike(&mut self, roster: &mut Roster) {
        for dying in self.dying.iter_mut().filter(|dying| !dying.is_struck) {
            let Some(target) = roster.targets().get_mut(&dying.uid) else {
                continue;
            };
            tracing::info!(pod = %dying.uid, "a hard line is crossed: its grace is over");
            match target.strike() {
                Ok(()) => dying.is_struck = true,
                Err(error) => {
                    tracing::warn!(pod = %dying.uid, %error, "cannot kill the pod at once")
                }
            }
            target.release();
        }
    }

    /// Whether nobody was dying at the last look.
    pub(super) fn is_empty(&self) -> bool {
        self.dying.is_empty()
    }

    /// Whether somebody is dying who was given no grace.
    pub(super) fn is_any_struck(&self) -> bool {
        self.dying.iter().any(|dying| dying.is_struck)
    }

    /// Whether that pod is dying and was given no grace.
    pub(super) fn is_struck(&self, uid: &str) -> bool {
        let mut dying = self.dying.iter();
        dying.any(|dying| dying.is_struck && dying.uid.as_str() == uid)
    }

    /// Expects memory to come back until then.
    pub(super) fn settle_until(&mut self, until: Timestamp) {
        self.settles = until;
    }

    /// Until when the last victim's memory may still come.
    pub(super) fn settles(&self) -> Timestamp {
        self.settles
    }

    /// When the last of them was seen to be gone.
    pub(super) fn left_at(&self) -> Timestamp {
        self.left_at
    }
}
