//! What the shell asks of the rest of the agent.

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
use crate::pods::KillNotice;
use crate::pods::reports::Report;

/// The rest of the agent, as the shell sees it. Every call is made on the shell's thread and has
/// to return at once.
pub trait Surroundings: Debug + Send + Sync {
    /// What is known of all pods; `None` as long as some of them are not known, as when the agent has
    /// just been started: of those that are, the worst may be far better than one that is not.
    fn pods(&self) -> Option<Vec<Report>>;
    /// The latest full measurement, disks and all; `None` before the first.
    fn survey(&self) -> Option<Arc<Survey>>;
    /// The notice that the pod's worker is given before its processes are killed; `None` if it has no
    /// worker. Asked for while there is time.
    fn kill_notice(&self, uid: &PodUid) -> Option<Arc<KillNotice>>;
    /// Has the worker of a pod end it, with the grace period of the eviction unless its processes are
    /// killed already, and its status say why.
    fn terminate(&self, eviction: &Arc<Eviction>);
    /// Has the event and the metrics of an eviction recorded, which was decided at that time by
    /// figures of these ages.
    fn record_eviction(
        &self,
        eviction: &Eviction,
        at: Timestamp,
        stats_ages: &[(Signal, Duration)],
    );
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
