//! Garbage collection: frees disk space without evicting pods.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_client::clock::Clock;
use plimsoll_core::eviction::{NodeReclaim, container_gc, image_gc};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, interval_at, sleep_until};
use tokio_util::sync::CancellationToken;

use super::eviction_host::EvictionHost;
use super::options::Options;
use super::run::std_duration;
use crate::eviction::reclaim::{containers, images, logs};
use crate::eviction::{Surroundings, Ticket};

/// Removes dead containers and unused images and rotates logs, periodically and for eviction.
pub(super) struct GarbageCollection {
    eviction_host: Arc<EvictionHost>,
    images: images::Images,
    rotation: logs::Policy,
    /// How often logs are looked at.
    rotation_period: Duration,
    pod_logs: PathBuf,
    log_links: PathBuf,
    clock: Clock,
}

impl GarbageCollection {
    pub(super) fn new(options: &Options, eviction_host: Arc<EvictionHost>) -> GarbageCollection {
        let clock = Clock::system();
        let config = &options.config;
        GarbageCollection {
            images: images::Images::new(
                image_gc::Policy::new(config),
                clock.now(),
                Arc::clone(&eviction_host.meter.metrics),
            ),
            rotation: logs::Policy {
                max_size: *config.container_log_max_size,
                max_files: *config.container_log_max_files,
            },
            rotation_period: std_duration(*config.container_log_monitor_interval)
                .max(logs::SHORTEST_PERIOD),
            pod_logs: options.directories.pod_logs.clone(),
            log_links: options.directories.container_logs.clone(),
            eviction_host,
            clock,
        }
    }

    pub(super) async fn keep(
        mut self,
        wanted: &mut UnboundedReceiver<(Vec<NodeReclaim>, Ticket)>,
        stop: CancellationToken,
    ) {
        let every = |period| interval_at(Instant::now() + period, period);
        let reports = self.eviction_host.pods.reports().clone();
        let mut dead_by = Instant::now() + containers::SOON;
        let mut unused = every(images::PERIOD);
        let mut large = every(self.rotation_period);
        // The time since when an image is here is known only as exactly as the images are listed often.
        self.detect_images().await;
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                asked = wanted.recv() => {
                    let Some((reclaims, ticket)) = asked else { return };
                    self.reclaim(&reclaims).await;
                    drop(ticket);
                }
                () = reports.forgotten() => {
                    dead_by = dead_by.min(Instant::now() + containers::SOON);
                }
                () = sleep_until(dead_by) => {
                    self.collect_containers(container_gc::Scope::Periodic).await;
                    let next = match self.eviction_host.pods.are_all_known() {
                        true => containers::PERIOD,
                        false => containers::SOON,
                    };
                    dead_by = Instant::now() + next;
                }
                _ = unused.tick() => self.collect_images().await,
                _ = large.tick() => {
                    let runtime = Arc::clone(&self.eviction_host.host.runtime);
                    let done = logs::rotate_all(&*runtime, self.rotation, self.clock.now()).await;
                    log_failure(done);
                    self.detect_images().await;
                }
            }
        }
    }

    /// Frees what eviction requests, then measures the node again.
    async fn reclaim(&mut self, wanted: &[NodeReclaim]) {
        for reclaim in wanted {
            match reclaim {
                NodeReclaim::ContainerGc => {
                    self.collect_containers(container_gc::Scope::AllUnused)
                        .await;
                }
                NodeReclaim::ImageGc => {
                    let runtime = Arc::clone(&self.eviction_host.host.runtime);
                    let done = self
                        .images
                        .collect_unused(&*runtime, self.clock.now())
                        .await;
                    log_failure(
                        done.map(|freed| tracing::info!(bytes = freed.0, "removed unused images")),
                    );
                }
            }
        }
        self.eviction_host.meter.measure().await;
        self.eviction_host.take_survey();
    }

    async fn collect_containers(&self, scope: container_gc::Scope) {
        let runtime = &*self.eviction_host.host.runtime;
        let found = match containers::Found::new(runtime, &self.pod_logs).await {
            Ok(found) => found,
            Err(error) => return log_failure(Err(error)),
        };
        // In this order: a pod that comes in between is on the list.
        let are_all_pods_known = self.eviction_host.pods.are_all_known();
        let pods = self.eviction_host.pods.reports().all();
        let run = containers::Run {
            scope,
            policy: container_gc::Policy::default(),
            pods: &pods,
            are_all_pods_known,
            log_links: &self.log_links,
            now: self.clock.now(),
        };
        found.collect(runtime, run).await;
    }

    async fn detect_images(&mut self) {
        let runtime = Arc::clone(&self.eviction_host.host.runtime);
        log_failure(self.images.detect(&*runtime, self.clock.now()).await);
    }

    async fn collect_images(&mut self) {
        let runtime = Arc::clone(&self.eviction_host.host.runtime);
        match self.images.collect(&*runtime, self.clock.now()).await {
            Ok(Some(warning)) => self.eviction_host.warn(warning.reason, warning.message),
            done => log_failure(done.map(drop)),
        }
    }
}

fn log_failure(done: Result<(), plimsoll_runtime::Error>) {
    if let Err(error) = done {
        tracing::warn!(error = error.chain(), "garbage collection failed");
    }
}
