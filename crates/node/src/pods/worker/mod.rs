//! One task per pod.
//!
//! A worker receives the desired state of its pod through a watch channel, observes what the runtime has,
//! carries out the plan and observes again, until there is nothing to do; then it sleeps until
//! it is woken or something is due. Once the pod is to end the worker only stops and cleans
//! up, even if the desired state changes.
//!
//! Reading order: this file, `shared_state` (what is known of a pod), `sync` (towards running), `start`
//! (one container), `resize` (limits in place), `stop` (towards the end), `grace` (how long that may take),
//! `counting` (metrics).

mod counting;
pub(crate) mod grace;
mod resize;
mod shared_state;
mod start;
mod stop;
mod sync;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use plimsoll_client::supervision::{survive_panics, survive_panics_noting};
use plimsoll_core::object::timestamp::Timestamp;
use plimsoll_runtime::Runtime;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument as _;

use crate::stats::metrics::{KubeletMetrics, SyncType};

use super::image::Images;
use super::note::{Note, reason};
use super::probe;
use super::reports::Reports;
use super::status::{Forced, Stage};
use super::{Clock, Host, Settings};
use crate::pod_fields;

pub(crate) use counting::probed;
pub(crate) use grace::MIN_STOP;
pub(crate) use shared_state::Record;

/// After a failure that has no time of its own, a pod is looked at again after so long.
const RETRY: Duration = Duration::from_secs(10);
/// After a failure that will soon be over.
const RETRY_SOON: Duration = Duration::from_secs(1);

/// What all workers have in common.
#[derive(Debug)]
pub struct Shared {
    /// The runtime.
    pub runtime: Arc<dyn Runtime>,
    /// Its name, the prefix of container ids.
    pub runtime_name: String,
    /// Everything else on the node.
    pub host: Arc<dyn Host>,
    /// The time.
    pub clock: Clock,
    /// Images.
    pub images: Images,
    /// Where statuses go.
    pub reports: Reports,
    /// Numbers to go by.
    pub settings: Settings,
    /// What the agent counts.
    pub metrics: Arc<KubeletMetrics>,
}

/// What a pod should be.
#[derive(Clone, Debug)]
pub struct Desired {
    /// The pod, with the resources allocated to it.
    pub pod: Arc<Pod>,
    /// That it should end.
    pub end: Option<End>,
}

/// That a pod should end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// How long it is given, in seconds.
    pub grace_secs: i64,
    /// What its status says from then on.
    pub forced: Option<Forced>,
    /// Whether its processes are ended by something else than its worker, for that reason.
    pub is_killed: bool,
}

/// The worker of one pod.
#[derive(Debug)]
pub(crate) struct Worker {
    record: Arc<Record>,
    desired: watch::Receiver<Desired>,
    /// Whether what ran before the agent was restarted has been taken over.
    has_adopted: bool,
    /// Whether the containers have their devices.
    has_devices: bool,
    /// For which pod everything was last made ready, and when.
    prepared: Option<(Arc<Pod>, Instant)>,
    /// When it will have run longer than it may, by its status, and when that is.
    deadline: Option<(Timestamp, Instant)>,
    /// Set to true once nothing of the pod runs any more.
    stopped: watch::Sender<bool>,
}

/// What to do after a look at the pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// Look again at once: something was done.
    Again,
    /// Look again then, or when woken.
    At(Instant),
    /// The pod is over.
    End,
}

/// Has a worker work until nothing of its pod is left; `stopped` is set once nothing of the pod runs
/// any more. If the worker panics, another takes over after a while: what is known of the pod is in
/// its record, and what there is of it in the runtime.
#[tracing::instrument(name = "pod", skip_all, fields(pod = %pod_fields::display_pod(&record.pod())))]
pub(crate) async fn keep(
    record: Arc<Record>,
    desired: watch::Receiver<Desired>,
    stopped: watch::Sender<bool>,
) {
    let (shared, noted) = (Arc::clone(&record.shared), Arc::clone(&record));
    shared.metrics.pod_worker_started(record.seen.elapsed());
    let work = || {
        let worker = Worker::new(Arc::clone(&record), desired.clone(), stopped.clone());
        worker.run().in_current_span()
    };
    let note = |reason: &str| {
        let message = format!("error syncing pod, trying again: {reason}");
        let note = Note::warning(reason::FAILED_SYNC, message);
        shared.host.record(&noted.pod(), note);
    };
    survive_panics_noting("podWorker", work, note).await;
}

impl Worker {
    fn new(
        record: Arc<Record>,
        desired: watch::Receiver<Desired>,
        stopped: watch::Sender<bool>,
    ) -> Worker {
        Worker {
            record,
            desired,
            has_adopted: false,
            has_devices: false,
            prepared: None,
            deadline: None,
            stopped,
        }
    }

    fn shared(&self) -> &Shared {
        &self.record.shared
    }

    /// Works until nothing of the pod is left.
    async fn run(mut self) {
        let asked = Arc::clone(&self.record);
        let probes = survive_panics("podProbes", move || {
            probe::run(Arc::clone(&asked)).in_current_span()
        });
        let probes = AbortOnDropHandle::new(tokio::spawn(probes.in_current_span()));
        let mut sync_type = SyncType::Create;
        while !self.is_to_end() {
            let begun = Instant::now();
            let next = self.sync().await;
            let metrics = &self.shared().metrics;
            metrics.pod_synced(sync_type, begun.elapsed());
            sync_type = SyncType::Sync;
            let at = match next {
                Next::Again => continue,
                Next::End => break,
                Next::At(at) => at,
            };
            let record = Arc::clone(&self.record);
            tokio::select! {
                changed = self.desired.changed() => {
                    if changed.is_err() {
                        // The sender is gone: the agent itself ends.
                        return;
                    }
                    sync_type = SyncType::Update;
                }
                () = record.woken() => {}
                () = sleep_until(at) => {}
            }
        }
        self.terminate().await;
        drop(probes);
        self.clean_up().await;
    }

    /// Takes over what the pod should be; answers whether it should end.
    fn is_to_end(&mut self) -> bool {
        let is_to_end = self.end().is_some();
        let desired = self.desired.borrow_and_update().clone();
        let mut state = self.record.state();
        state.pod = desired.pod;
        state.stage > Stage::Running || is_to_end || desired.end.is_some()
    }

    /// Whether the pod is to end, which is a reason to stop the current step.
    fn ends(&self) -> bool {
        self.desired.borrow().end.is_some() || self.record.kill_notice().is_given()
    }

    /// How the pod must end, if at all: as requested, or at once if its processes are being killed
    /// by something else.
    fn end(&self) -> Option<End> {
        let end = self.desired.borrow().end.clone();
        let Some(killed) = self.record.kill_notice().forced() else {
            return end;
        };
        let grace_secs = end.as_ref().map(|end| end.grace_secs);
        let forced = end.and_then(|end| end.forced);
        Some(End {
            grace_secs: grace::shorten(grace_secs, &self.record.pod(), Some(0)),
            forced: forced.or(Some(killed)),
            is_killed: true,
        })
    }

    fn in_a(&self, delay: Duration) -> Next {
        Next::At(Instant::now() + delay)
    }

    fn at(&self, time: Timestamp) -> Next {
        Next::At(self.shared().clock.instant_of(time))
    }

    /// Takes down what the pod has on the node, then reports its last status. Failures are tried
    /// again: a pod must not be given up while it holds anything.
    async fn clean_up(&mut self) {
        let pod = self.record.pod();
        while let Err(error) = self.shared().host.clean_up(&pod).await {
            tracing::warn!(%error, "failed to clean up pod");
            tokio::time::sleep(RETRY).await;
        }
        self.shared().images.forget(pod_fields::uid(&pod));
        self.forget_probes();
        self.shared().host.pods_changed();
        self.record.state().pod = Arc::clone(&self.desired.borrow().pod);
        self.record.close();
    }
}

/// Waits until the pod is to end.
async fn ended(mut desired: watch::Receiver<Desired>) {
    if desired
        .wait_for(|desired| desired.end.is_some())
        .await
        .is_err()
    {
        std::future::pending::<()>().await;
    }
}
