//! How much is done at once, and for whom.
//!
//! Reads and writes have separate places, as upstream's. Of each sort some are kept for nodes and
//! the control plane, the others are for everybody else, and within both no user has more than a
//! share. Administrators and parts of this process are not limited: they have to get through when
//! nobody else does. A request that finds no place waits a little, and is then refused with a 429
//! that says when to come back. Large bodies, lists that are costly to build, and watches have
//! places of their own.
//!
//! Upstream's API Priority and Fairness is the model: levels, flows, queues. There is nothing to
//! configure here but the number of places.
//!
//! Reading order: this file (what a request needs), `shares` (who is next), `lane` (the waiting).

mod lane;
mod shares;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

pub(crate) use lane::{Lane, LaneCounters, Place};
use shares::Size;

use super::metrics::FlowControl;
use crate::auth::identity::{MASTERS, NODES, User};
use crate::status::Status;

/// Requests that may wait for each place; beyond that they are refused at once.
const QUEUE_PER_PLACE: usize = 8;

/// Of the places for reads or writes, this part is kept for nodes and the control plane.
const SYSTEM_PERCENT: usize = 40;

/// Bodies beyond what is read unseen that are read, or worked on, at once.
const BODIES: usize = 64;

/// Long lists that are sent at once: a client that reads slowly keeps their objects in memory.
const ANSWERS: usize = 256;

/// Watches and streams of one user, and of all users.
const LONG_RUNNING_EACH: usize = 2_000;
const LONG_RUNNING: usize = 50_000;

/// What a request needs a place for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// To read.
    Read,
    /// To write.
    Write,
    /// To send a large body.
    Body,
    /// To have a list built that is costly.
    List,
    /// To be sent a long list.
    Answer,
    /// To watch, or to keep a connection.
    LongRunning,
}

impl Need {
    const ALL: [Need; 6] = [
        Need::Read,
        Need::Write,
        Need::Body,
        Need::List,
        Need::Answer,
        Need::LongRunning,
    ];

    /// The word in metrics.
    fn as_str(self) -> &'static str {
        match self {
            Need::Read => "readOnly",
            Need::Write => "mutating",
            Need::Body => "body",
            Need::List => "list",
            Need::Answer => "answer",
            Need::LongRunning => "longRunning",
        }
    }

    /// How many places there are for a level, of `total` for all.
    fn size(self, level: Level, total: usize) -> Size {
        let places = match level {
            Level::Exempt => 0,
            Level::System => (total * SYSTEM_PERCENT / 100).max(1),
            Level::Workload => (total - total * SYSTEM_PERCENT / 100).max(1),
        };
        let waiting = match self {
            Need::LongRunning => 0,
            _ => places.saturating_mul(QUEUE_PER_PLACE),
        };
        let each = match (self, level) {
            (Need::LongRunning, _) => LONG_RUNNING_EACH,
            (_, Level::System) => places * 3 / 4,
            (_, _) => places / 2,
        };
        Size {
            places,
            each: each.clamp(1, places.max(1)),
            waiting,
            waiting_each: waiting.div_ceil(4),
        }
    }
}

/// Which places a user may have, as upstream's priority levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// As many as needed: administrators, and parts of this process.
    Exempt,
    /// Those that keep the cluster going: nodes, controllers, schedulers.
    System,
    /// Everybody else.
    Workload,
}

impl Level {
    const LIMITED: [Level; 2] = [Level::System, Level::Workload];

    /// The name in metrics, as of upstream's priority levels.
    fn as_str(self) -> &'static str {
        match self {
            Level::Exempt => "exempt",
            Level::System => "system",
            Level::Workload => "global-default",
        }
    }

    /// The level of a user.
    ///
    /// Matches v1.36 apiserver/pkg/apis/flowcontrol/bootstrap/default.go in which users are which.
    pub(crate) fn of(user: &User) -> Level {
        const CONTROL_PLANE: [&str; 2] =
            ["system:kube-controller-manager", "system:kube-scheduler"];
        if user.is_in(MASTERS) {
            Level::Exempt
        } else if user.is_in(NODES)
            || user.is_in("system:serviceaccounts:kube-system")
            || CONTROL_PLANE.contains(&user.name.as_str())
        {
            Level::System
        } else {
            Level::Workload
        }
    }
}

/// All places.
#[derive(Debug)]
pub(crate) struct Limits {
    lanes: Vec<(Need, Level, Arc<Lane>)>,
    exempt_reads: Arc<AtomicUsize>,
    exempt_writes: Arc<AtomicUsize>,
}

/// What a request holds while it is answered.
#[derive(Debug)]
pub(crate) enum Held {
    /// One of the places.
    Place { _place: Place },
    /// Nothing but its being counted.
    Counted(Arc<AtomicUsize>),
    /// Nothing at all.
    Nothing,
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Held::Counted(count) = self {
            count.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Limits {
    /// So many reads and writes at once.
    pub(crate) fn new(max_reads: usize, max_writes: usize, metrics: &FlowControl) -> Limits {
        let mut lanes = Vec::new();
        for need in Need::ALL {
            let total = match need {
                Need::Read => max_reads,
                Need::Write => max_writes,
                Need::Body => BODIES,
                Need::List => cores(),
                Need::Answer => ANSWERS,
                Need::LongRunning => LONG_RUNNING,
            };
            for level in Level::LIMITED {
                let counters = metrics.counters(level.as_str(), need.as_str());
                let lane = Lane::new(need.size(level, total), counters);
                lanes.push((need, level, lane));
            }
        }
        Limits {
            lanes,
            exempt_reads: Arc::default(),
            exempt_writes: Arc::default(),
        }
    }

    /// A place for a request, given back when dropped; or the 429.
    pub(crate) async fn enter(
        &self,
        need: Need,
        level: Level,
        user: &User,
    ) -> Result<Held, Status> {
        let mut lanes = self.lanes.iter();
        match lanes.find(|(of, at, _)| (*of, *at) == (need, level)) {
            Some((_, _, lane)) => {
                let place = lane.enter(&user.name).await?;
                Ok(Held::Place { _place: place })
            }
            None => {
                let count = match need {
                    Need::Read => &self.exempt_reads,
                    Need::Write => &self.exempt_writes,
                    _ => return Ok(Held::Nothing),
                };
                count.fetch_add(1, Ordering::Relaxed);
                Ok(Held::Counted(Arc::clone(count)))
            }
        }
    }

    /// Requests in flight: reads, writes.
    pub(crate) fn in_flight(&self) -> (usize, usize) {
        let of = |need: Need| {
            let lanes = self.lanes.iter().filter(|(of, _, _)| *of == need);
            lanes.map(|(_, _, lane)| lane.load().0).sum::<usize>()
        };
        (
            of(Need::Read) + self.exempt_reads.load(Ordering::Relaxed),
            of(Need::Write) + self.exempt_writes.load(Ordering::Relaxed),
        )
    }

    /// Every lane with its level and what it is for, as metrics name them.
    pub(crate) fn lanes(&self) -> impl Iterator<Item = (&'static str, &'static str, &Lane)> {
        let lanes = self.lanes.iter();
        lanes.map(|(need, level, lane)| (level.as_str(), need.as_str(), &**lane))
    }
}

/// Lists that are costly to build, at once: as many as there are cores, so that others get time too.
fn cores() -> usize {
    std::thread::available_parallelism().map_or(2, |cores| cores.get().max(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(reads: usize, writes: usize) -> Limits {
        Limits::new(reads, writes, &FlowControl::default())
    }

    async fn enter(limits: &Limits, need: Need, user: &User) -> Result<Held, Status> {
        limits.enter(need, Level::of(user), user).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_without_a_place_in_time_is_told_when_to_come_back() {
        let (limits, user) = (limits(1, 1), User::new("a", &[]));
        let place = enter(&limits, Need::Read, &user).await.unwrap();
        let refused = enter(&limits, Need::Read, &user).await.unwrap_err();
        assert_eq!(refused.code, 429);
        assert_eq!(refused.retry_after(), Some(1));
        assert!(enter(&limits, Need::Write, &user).await.is_ok());
        assert_eq!(limits.in_flight(), (1, 0));
        drop(place);
        assert!(enter(&limits, Need::Read, &user).await.is_ok());
        assert_eq!(limits.in_flight(), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn one_user_leaves_places_for_others_nodes_and_administrators() {
        let limits = limits(10, 10);
        let greedy = User::new("greedy", &[]);
        let mut held = Vec::new();
        while let Ok(place) = enter(&limits, Need::Write, &greedy).await {
            held.push(place);
        }
        assert_eq!(held.len(), 3);
        let node = User::new("system:node:n", &[NODES]);
        let admin = User::new("admin", &[MASTERS]);
        for other in [User::new("b", &[]), node, admin] {
            held.push(enter(&limits, Need::Write, &other).await.unwrap());
        }
        assert_eq!(limits.in_flight(), (0, 6));
    }

    #[tokio::test(start_paused = true)]
    async fn a_place_goes_to_the_request_that_waits() {
        let (limits, user) = (limits(1, 1), User::new("a", &[]));
        let place = enter(&limits, Need::Read, &user).await.unwrap();
        let waiting = enter(&limits, Need::Read, &user);
        let freed = async {
            tokio::task::yield_now().await;
            drop(place);
        };
        let (waited, ()) = tokio::join!(waiting, freed);
        assert!(waited.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn watches_of_a_user_are_counted_and_do_not_wait() {
        let (limits, user) = (limits(1, 1), User::new("a", &[]));
        let mut held = Vec::new();
        for _ in 0..LONG_RUNNING_EACH {
            held.push(enter(&limits, Need::LongRunning, &user).await.unwrap());
        }
        let before = tokio::time::Instant::now();
        assert!(enter(&limits, Need::LongRunning, &user).await.is_err());
        assert_eq!(before.elapsed(), std::time::Duration::ZERO);
    }
}
