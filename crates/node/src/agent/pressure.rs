//! Eviction, connected to the rest of the agent; and what is collected so that it need not come to
//! that.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_client::clock::Clock;
use plimsoll_client::events::EventType;
use plimsoll_core::eviction::NodeReclaim;
use plimsoll_core::eviction::container_gc::{Policy as ContainerPolicy, Scope};
use plimsoll_core::object::node::NodeCondition;
use plimsoll_core::resources::Bytes;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use super::heartbeat::Heartbeat;
use super::host::NodeHost;
use super::measure::Meter;
use crate::eviction::reclaim::{containers, images, logs};
use crate::eviction::{Condemned, Surroundings, Survey, Ticket};
use crate::pods::Pods;
use crate::pods::note::Note;
use crate::pods::reports::Report;

/// How often unused images are looked for, and logs that have grown.
const IMAGE_PERIOD: Duration = Duration::from_secs(300);
const LOG_PERIOD: Duration = Duration::from_secs(10);

/// The agent, as eviction sees it. Clones are one.
#[derive(Clone, Debug)]
pub(super) struct Pressure(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    pods: Pods,
    host: Arc<NodeHost>,
    meter: Arc<Meter>,
    heartbeat: Arc<Heartbeat>,
    images: tokio::sync::Mutex<images::Images>,
    clock: Clock,
    /// Where what takes time is done.
    handle: Handle,
}

impl Pressure {
    pub(super) fn new(
        pods: Pods,
        host: Arc<NodeHost>,
        meter: Arc<Meter>,
        heartbeat: Arc<Heartbeat>,
        images: images::Images,
    ) -> Pressure {
        Pressure(Arc::new(Parts {
            pods,
            host,
            meter,
            heartbeat,
            images: tokio::sync::Mutex::new(images),
            clock: Clock::system(),
            handle: Handle::current(),
        }))
    }

    /// Collects dead containers each minute until told to stop.
    pub(super) async fn keep_containers_collected(self, stop: CancellationToken) {
        while wait(containers::PERIOD, &stop).await {
            self.0.collect_containers(Scope::Periodic).await;
        }
    }

    /// Collects unused images where there are too many, until told to stop.
    pub(super) async fn keep_images_collected(self, stop: CancellationToken) {
        while wait(IMAGE_PERIOD, &stop).await {
            let mut images = self.0.images.lock().await;
            let collected = images
                .collect(&*self.0.host.runtime, self.0.clock.now())
                .await;
            match collected {
                Ok(None) => {}
                Ok(Some(warning)) => self.warn(warning.reason, warning.message),
                Err(error) => tracing::warn!(error = %error.chain(), "images not collected"),
            }
        }
    }

    /// Rotates logs until told to stop.
    pub(super) async fn keep_logs_rotated(
        self,
        max_size: Bytes,
        max_files: i32,
        stop: CancellationToken,
    ) {
        let policy = logs::Policy {
            max_size,
            max_files,
        };
        while wait(LOG_PERIOD, &stop).await {
            let now = self.0.clock.now();
            if let Err(error) = logs::rotate_all(&*self.0.host.runtime, policy, now).await {
                tracing::warn!(error = %error.chain(), "logs not rotated");
            }
        }
    }
}

/// Waits; whether there is to be a next time.
async fn wait(period: Duration, stop: &CancellationToken) -> bool {
    tokio::select! {
        () = stop.cancelled() => false,
        () = tokio::time::sleep(period) => true,
    }
}

impl Parts {
    async fn collect_containers(&self, scope: Scope) {
        let pods = self.pods.reports().all();
        let run = containers::Run {
            scope,
            policy: ContainerPolicy::default(),
            pods: &pods,
            are_all_pods_known: self.pods.are_all_known(),
            pod_logs: &self.host.facts.pod_logs_dir,
            now: self.clock.now(),
        };
        if let Err(error) = containers::collect(&*self.host.runtime, run).await {
            tracing::warn!(error = %error.chain(), "dead containers not collected");
        }
    }

    async fn reclaim(&self, wanted: &[NodeReclaim]) {
        for what in wanted {
            match what {
                NodeReclaim::ContainerGc => self.collect_containers(Scope::AllUnused).await,
                NodeReclaim::ImageGc => {
                    let mut images = self.images.lock().await;
                    let now = self.clock.now();
                    let freed = images.collect_unused(&*self.host.runtime, now).await;
                    if let Err(error) = freed {
                        tracing::warn!(error = %error.chain(), "images not collected");
                    }
                }
            }
        }
        self.meter.measure().await;
    }

    async fn end(&self, condemned: Condemned) {
        let Condemned {
            eviction, forced, ..
        } = condemned;
        let uid = eviction.uid.as_str();
        for (signal, age) in &condemned.stats_ages {
            let age = u64::try_from(age.as_nanos()).ok().map(Duration::from_nanos);
            self.meter.metrics.evicted(signal.as_str(), age);
        }
        if let Some(pod) = self.pods.get(uid) {
            let note = Note::warning("Evicted", eviction.message.clone());
            self.host.tell(&pod, &note);
        }
        let grace = Some(eviction.grace_period_seconds);
        if let Err(error) = self.pods.kill(uid, grace, Some(forced)).await {
            tracing::warn!(%error, "evicted pod is slow to end");
        }
    }
}

impl Surroundings for Pressure {
    fn pods(&self) -> Vec<Report> {
        self.0.pods.reports().all()
    }

    fn survey(&self) -> Option<Arc<Survey>> {
        self.0.meter.survey()
    }

    fn evict(&self, condemned: Condemned) {
        let parts = Arc::clone(&self.0);
        self.0
            .handle
            .spawn(async move { parts.end(condemned).await });
    }

    fn conditions_changed(&self, conditions: &BTreeSet<NodeCondition>) {
        self.0.host.pressure.send_replace(conditions.clone());
        self.0.heartbeat.at_once.notify_one();
    }

    fn warn(&self, reason: &'static str, message: String) {
        self.0.heartbeat.tell(EventType::Warning, reason, message);
    }

    fn reclaim(&self, wanted: Vec<NodeReclaim>, ticket: Ticket) {
        let parts = Arc::clone(&self.0);
        self.0.handle.spawn(async move {
            parts.reclaim(&wanted).await;
            drop(ticket);
        });
    }
}
