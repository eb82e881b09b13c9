//! Whom the shell talks to.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Arc;

use plimsoll_core::eviction::usage::PodUsage;
use plimsoll_core::eviction::{Eviction, NodeReclaim, Observation};
use plimsoll_core::object::identity::PodUid;
use plimsoll_core::object::node::NodeCondition;
use plimsoll_core::object::timestamp::Timestamp;
use plimsoll_core::threshold::{Duration, Signal};

use super::shell::Ticket;
use crate::pods::Sign;
use crate::pods::reports::Report;
use crate::pods::status::Forced;

/// The rest of the agent, as the shell sees it. Every call is made on the shell's thread and has
/// to return at once.
pub trait Surroundings: Debug + Send + Sync {
    /// What is known of all pods; `None` as long as some of them are not known, as when the agent has
    /// just been started: of those that are, the worst may be far better than one that is not.
    fn pods(&self) -> Option<Vec<Report>>;
    /// The latest full measurement, disks and all; `None` before the first.
    fn survey(&self) -> Option<Arc<Survey>>;
    /// What is to be given the moment before the processes of a pod are killed, so that whoever sees
    /// them dead waits for the reason; `None` if nobody does. Asked for while there is time.
    fn sign(&self, uid: &PodUid) -> Option<Arc<Sign>>;
    /// Takes why the processes of a pod were killed, after the sign was given.
    fn struck(&self, uid: &PodUid, forced: &Forced);
    /// Has a pod end and its status say why. One that was struck is dead already.
    fn evict(&self, condemned: Condemned);
    /// Has the node's status written: its conditions have changed.
    fn conditions_changed(&self, conditions: &BTreeSet<NodeCondition>);
    /// Has a warning about the node written.
    fn warn(&self, reason: &'static str, message: String);
    /// Has the node free what it can. The ticket is to be dropped when that is done and there is a
    /// survey of what the node looks like then.
    fn reclaim(&self, wanted: Vec<NodeReclaim>, ticket: Ticket);
}

/// A full measurement.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// Of the node.
    pub observation: Observation,
    /// Of its pods.
    pub usages: BTreeMap<PodUid, PodUsage>,
}

impl Survey {
    /// When its disks were measured.
    pub(super) fn taken_at(&self) -> Timestamp {
        let time = self.observation.node_fs.and_then(|fs| fs.time);
        time.unwrap_or_default()
    }
}

/// A pod that has to go.
#[derive(Clone, Debug)]
pub struct Condemned {
    /// What was decided.
    pub eviction: Eviction,
    /// When, by the record of the decision.
    pub at: Timestamp,
    /// What its status says.
    pub forced: Forced,
    /// Whether all its processes were killed already.
    pub is_struck: bool,
    /// How old the figures were that led to it, by signal.
    pub stats_ages: Vec<(Signal, Duration)>,
}

impl Condemned {
    pub(super) fn new(
        at: Timestamp,
        eviction: Eviction,
        stats_ages: Vec<(Signal, Duration)>,
    ) -> Condemned {
        let failure = eviction.failure();
        let forced = Forced {
            reason: failure.reason.to_owned(),
            message: failure.message.to_owned(),
            is_disruption: failure.is_disruption,
            ..Forced::default()
        };
        Condemned {
            forced,
            eviction,
            at,
            is_struck: false,
            stats_ages,
        }
    }
}
