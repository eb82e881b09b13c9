//! Limits of concurrent requests, and fairness among users.
//!
//! Reads and writes have separate seats, as in upstream. Some of each are reserved for nodes and
//! the control plane, the others are for all other users, and within both no user has more than a
//! share. Administrators and components of this process are exempt: they have to get through when
//! no other request does. A request that finds no seat waits a little, and is then rejected with a
//! 429 and a `Retry-After` header. Large bodies, lists that are costly to build, and watches have
//! seats of their own.
//!
//! Upstream's API Priority and Fairness is the model: levels, flows, queues. There is nothing to
//! configure here but the number of seats.
//!
//! Reading order: this file (what a request needs), `shares` (scheduling), `queue_set` (waiting).

mod queue_set;
mod shares;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

pub(crate) use queue_set::{QueueSet, QueueSetCounters, Seat};
use shares::Size;

use super::metrics::FlowControl;
use crate::auth::identity::{MASTERS, NODES, User};
use crate::status::Status;

/// Requests that may wait per seat; more are rejected at once.
const QUEUED_PER_SEAT: usize = 8;

/// This part of the seats for reads or writes is reserved for nodes and the control plane.
const SYSTEM_PERCENT: usize = 40;

/// Large bodies that are received or processed at once.
const BODIES: usize = 64;

/// Long lists that are sent at once: a client that reads slowly keeps their objects in memory.
const LONG_RESPONSES: usize = 256;

/// Watches and streams of one user, and of all users.
const LONG_RUNNING_EACH: usize = 2_000;
const LONG_RUNNING: usize = 50_000;

/// What a request takes a seat for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestKind {
    /// A read.
    Read,
    /// A write.
    Write,
    /// Sending a large body.
    Body,
    /// Building a list that is costly.
    List,
    /// Receiving a long list.
    Response,
    /// A watch, or a stream.
    LongRunning,
}

impl RequestKind {
    const ALL: [RequestKind; 6] = [
        RequestKind::Read,
        RequestKind::Write,
        RequestKind::Body,
        RequestKind::List,
        RequestKind::Response,
        RequestKind::LongRunning,
    ];

    /// The label value in metrics.
    fn as_str(self) -> &'static str {
        match self {
            RequestKind::Read => "readOnly",
            RequestKind::Write => "mutating",
            RequestKind::Body => "body",
            RequestKind::List => "list",
            RequestKind::Response => "answer",
            RequestKind::LongRunning => "longRunning",
        }
    }

    /// The number of seats of a level, out of `total` for all levels.
    fn size(self, level: Level, total: usize) -> Size {
        let seats = match level {
            Level::Exempt => 0,
            Level::System => (total * SYSTEM_PERCENT / 100).max(1),
            Level::Workload => (total - total * SYSTEM_PERCENT / 100).max(1),
        };
        let waiting = match self {
            RequestKind::LongRunning => 0,
            _ => seats.saturating_mul(QUEUED_PER_SEAT),
        };
        let each = match (self, level) {
            (RequestKind::LongRunning, _) => LONG_RUNNING_EACH,
            (_, Level::System) => seats * 3 / 4,
            (_, _) => seats / 2,
        };
        Size {
            seats,
            each: each.clamp(1, seats.max(1)),
            waiting,
            waiting_each: waiting.div_ceil(4),
        }
    }
}

/// The priority level of a user, as in upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// Unlimited: administrators, and components of this process.
    Exempt,
    /// Components that keep the cluster running: nodes, controllers, schedulers.
    System,
    /// All other users.
    Workload,
}

impl Level {
    const LIMITED: [Level; 2] = [Level::System, Level::Workload];

    /// The label value in metrics, as upstream names its priority levels.
    fn as_str(self) -> &'static str {
        match self {
            Level::Exempt => "exempt",
            Level::System => "system",
            Level::Workload => "global-default",
        }
    }

    /// The level of a user.
    ///
    /// Matches v1.36 apiserver/pkg/apis/flowcontrol/bootstrap/default.go in the level of each user.
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

/// All seats.
#[derive(Debug)]
pub(crate) struct Limits {
    queue_sets: Vec<(RequestKind, Level, Arc<QueueSet>)>,
    exempt_reads: Arc<AtomicUsize>,
    exempt_writes: Arc<AtomicUsize>,
}

/// What a request holds until its response.
#[derive(Debug)]
pub(crate) enum Permit {
    /// A seat.
    Seat { _seat: Seat },
    /// Exempt, but counted.
    Counted(Arc<AtomicUsize>),
    /// Exempt.
    Unlimited,
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Permit::Counted(count) = self {
            count.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Limits {
    /// Limits for this many concurrent reads and writes.
    pub(crate) fn new(max_reads: usize, max_writes: usize, metrics: &FlowControl) -> Limits {
        let mut queue_sets = Vec::new();
        for kind in RequestKind::ALL {
            let total = match kind {
                RequestKind::Read => max_reads,
                RequestKind::Write => max_writes,
                RequestKind::Body => BODIES,
                RequestKind::List => cores(),
                RequestKind::Response => LONG_RESPONSES,
                RequestKind::LongRunning => LONG_RUNNING,
            };
            for level in Level::LIMITED {
                let counters = metrics.counters(level.as_str(), kind.as_str());
                let queue_set = QueueSet::new(kind.size(level, total), counters);
                queue_sets.push((kind, level, queue_set));
            }
        }
        Limits {
            queue_sets,
            exempt_reads: Arc::default(),
            exempt_writes: Arc::default(),
        }
    }

    /// Takes a seat for a request, released when dropped; or returns the 429.
    pub(crate) async fn enter(
        &self,
        kind: RequestKind,
        level: Level,
        user: &User,
    ) -> Result<Permit, Status> {
        let mut queue_sets = self.queue_sets.iter();
        match queue_sets.find(|(of, at, _)| (*of, *at) == (kind, level)) {
            Some((_, _, queue_set)) => {
                let seat = queue_set.enter(&user.name).await?;
                Ok(Permit::Seat { _seat: seat })
            }
            None => {
                let count = match kind {
                    RequestKind::Read => &self.exempt_reads,
                    RequestKind::Write => &self.exempt_writes,
                    _ => return Ok(Permit::Unlimited),
                };
                count.fetch_add(1, Ordering::Relaxed);
                Ok(Permit::Counted(Arc::clone(count)))
            }
        }
    }

    /// Requests in flight: reads and writes.
    pub(crate) fn in_flight(&self) -> (usize, usize) {
        let of = |kind: RequestKind| {
            let queue_sets = self.queue_sets.iter().filter(|(of, _, _)| *of == kind);
            queue_sets
                .map(|(_, _, queue_set)| queue_set.load().0)
                .sum::<usize>()
        };
        (
            of(RequestKind::Read) + self.exempt_reads.load(Ordering::Relaxed),
            of(RequestKind::Write) + self.exempt_writes.load(Ordering::Relaxed),
        )
    }

    /// Every queue set with its level and request kind, as metrics name them.
    pub(crate) fn queue_sets(
        &self,
    ) -> impl Iterator<Item = (&'static str, &'static str, &QueueSet)> {
        let queue_sets = self.queue_sets.iter();
        queue_sets.map(|(kind, level, queue_set)| (level.as_str(), kind.as_str(), &**queue_set))
    }
}

/// Costly lists that are built at once: one per core, so that other requests get CPU time too.
fn cores() -> usize {
    std::thread::available_parallelism().map_or(2, |cores| cores.get().max(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(reads: usize, writes: usize) -> Limits {
        Limits::new(reads, writes, &FlowControl::default())
    }

    async fn enter(limits: &Limits, kind: RequestKind, user: &User) -> Result<Permit, Status> {
        limits.enter(kind, Level::of(user), user).await
    }

    #[tokio::test(start_paused = true)]
    async fn request_that_times_out_in_the_queue_gets_retry_after() {
        let (limits, user) = (limits(1, 1), User::new("a", &[]));
        let seat = enter(&limits, RequestKind::Read, &user).await.unwrap();
        let refused = enter(&limits, RequestKind::Read, &user).await.unwrap_err();
        assert_eq!(refused.code, 429);
        assert_eq!(refused.retry_after(), Some(1));
        assert!(enter(&limits, RequestKind::Write, &user).await.is_ok());
        assert_eq!(limits.in_flight(), (1, 0));
        drop(seat);
        assert!(enter(&limits, RequestKind::Read, &user).await.is_ok());
        assert_eq!(limits.in_flight(), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn one_user_leaves_seats_for_others_nodes_and_administrators() {
        let limits = limits(10, 10);
        let greedy = User::new("greedy", &[]);
        let mut permits = Vec::new();
        while let Ok(seat) = enter(&limits, RequestKind::Write, &greedy).await {
            permits.push(seat);
        }
        assert_eq!(permits.len(), 3);
        let node = User::new("system:node:n", &[NODES]);
        let admin = User::new("admin", &[MASTERS]);
        for other in [User::new("b", &[]), node, admin] {
            permits.push(enter(&limits, RequestKind::Write, &other).await.unwrap());
        }
        assert_eq!(limits.in_flight(), (0, 6));
    }

    #[tokio::test(start_paused = true)]
    async fn released_seat_is_given_to_a_waiting_request() {
        let (limits, user) = (limits(1, 1), User::new("a", &[]));
        let seat = enter(&limits, RequestKind::Read, &user).await.unwrap();
        let waiting = enter(&limits, RequestKind::Read, &user);
        let freed = async {
            tokio::task::yield_now().await;
            drop(seat);
        };
        let (waited, ()) = tokio::join!(waiting, freed);
        assert!(waited.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn watches_are_counted_per_user_and_do_not_queue() {
        let (limits, user) = (limits(1, 1), User::new("a", &[]));
        let mut permits = Vec::new();
        for _ in 0..LONG_RUNNING_EACH {
            permits.push(
                enter(&limits, RequestKind::LongRunning, &user)
                    .await
                    .unwrap(),
            );
        }
        let before = tokio::time::Instant::now();
        assert!(
            enter(&limits, RequestKind::LongRunning, &user)
                .await
                .is_err()
        );
        assert_eq!(before.elapsed(), std::time::Duration::ZERO);
    }
}
