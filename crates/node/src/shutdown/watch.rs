//! Waiting for the machine to be switched off, and ending pods then.

use std::time::Duration;

use futures::future::join_all;
use plimsoll_core::error_chain::error_chain;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::logind::Logind;
use super::plan::{Period, group_of, whole};
use crate::pod_fields;
use crate::pods::Pods;
use crate::pods::status::Forced;

const REASON: &str = "Terminated";
const MESSAGE: &str = "Pod was terminated in response to imminent node shutdown.";

/// The signal of failing power.
const SIGPWR: i32 = 30;
/// How long to wait before logind is looked for again.
const RECONNECT: Duration = Duration::from_secs(1);

/// Receives the announcement of a shutdown.
pub trait Announce: Send + Sync {
    /// The machine is about to be switched off, or not after all.
    fn shutting_down(&self, is_shutting_down: bool);
}

/// Watches until `stop` is cancelled. Nothing happens without periods.
pub async fn watch(
    periods: Vec<Period>,
    pods: Pods,
    announce: impl Announce,
    stop: CancellationToken,
) {
    if periods.is_empty() {
        return;
    }
    let Ok(power) = signal(SignalKind::from_raw(SIGPWR)) else {
        return;
    };
    let watch = Watch {
        periods,
        pods,
        announce,
    };
    tokio::select! {
        () = watch.run(power) => {}
        () = stop.cancelled() => {}
    }
}

struct Watch<A> {
    periods: Vec<Period>,
    pods: Pods,
    announce: A,
}

impl<A: Announce> Watch<A> {
    async fn run(&self, mut power: Signal) {
        let mut was_heard = false;
        loop {
            match Logind::open(whole(&self.periods)).await {
                Ok(logind) => {
                    was_heard = true;
                    self.follow(logind, &mut power).await;
                }
                Err(error) if !was_heard => {
                    let error = error_chain(&error);
                    tracing::warn!(
                        error,
                        "logind unavailable; shutdown is detected by SIGPWR only"
                    );
                    while power.recv().await.is_some() {
                        self.end_pods().await;
                    }
                    return;
                }
                Err(error) => tracing::warn!(
                    error = error_chain(&error),
                    "failed to reconnect to logind; retrying"
                ),
            }
            tokio::time::sleep(RECONNECT).await;
        }
    }

    /// Until logind is gone.
    async fn follow(&self, mut logind: Logind<'_>, power: &mut Signal) {
        loop {
            let announced = tokio::select! {
                announced = logind.next() => announced,
                Some(()) = power.recv() => Some(true),
            };
            match announced {
                None => return,
                Some(true) => {
                    self.end_pods().await;
                    logind.release();
                }
                Some(false) => {
                    self.announce.shutting_down(false);
                    if let Err(error) = logind.inhibit().await {
                        tracing::warn!(
                            error = error_chain(&error),
                            "failed to renew shutdown inhibitor lock"
                        );
                        return;
                    }
                }
            }
        }
    }

    /// Ends all pods, group by group. A group that takes longer than it may is not waited for.
    async fn end_pods(&self) {
        self.announce.shutting_down(true);
        let mut groups = vec![Vec::new(); self.periods.len()];
        for pod in self.pods.active() {
            let priority = pod_fields::spec(&pod).and_then(|spec| spec.priority);
            groups[group_of(&self.periods, priority.unwrap_or_default())].push(pod);
        }
        for (period, group) in self.periods.iter().zip(groups) {
            let ends = group.iter().map(|pod| {
                let forced = Forced {
                    reason: REASON.to_owned(),
                    message: MESSAGE.to_owned(),
                    is_disruption: true,
                    condition_message: None,
                    keeps_success: true,
                };
                let own =
                    pod_fields::spec(pod).and_then(|spec| spec.termination_grace_period_seconds);
                let grace = own.map_or(period.grace_secs, |own| own.min(period.grace_secs));
                self.pods
                    .kill(pod_fields::uid(pod), Some(grace), Some(forced))
            });
            let longest = Duration::from_secs(u64::try_from(period.grace_secs).unwrap_or_default());
            if tokio::time::timeout(longest, join_all(ends)).await.is_err() {
                let priority = period.priority;
                tracing::warn!(
                    priority,
                    "pods did not terminate within shutdown grace period"
                );
            }
        }
    }
}
