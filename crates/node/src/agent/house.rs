//! The housekeeping that spares pods.

use std::path::PathBuf;
use std::sync::Arc;

use plimsoll_client::clock::Clock;
use plimsoll_core::eviction::{NodeReclaim, container_gc, image_gc};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, interval_at, sleep_until};
use tokio_util::sync::CancellationToken;

use super::neighbours::Neighbours;
use super::options::Options;
use crate::eviction::reclaim::{containers, images, logs};
use crate::eviction::{Surroundings, Ticket};

/// What the node frees from time to time, and when eviction asks.
pub(super) struct House {
    neighbours: Arc<Neighbours>,
    images: images::Images,
    rotation: logs::Policy,
    pod_logs: PathBuf,
    log_links: PathBuf,
    clock: Clock,
}

impl House {
    pub(super) fn new(options: &Options, neighbours: Arc<Neighbours>) -> House {
        let clock = Clock::system();
        let config = &options.config;
        House {
            images: images::Images::new(image_gc::Policy::new(config), clock.now()),
            rotation: logs::Policy {
                max_size: *config.container_log_max_size,
                max_files: *config.container_log_max_files,
            },
            pod_logs: options.directories.pod_logs.clone(),
            log_links: options.directories.container_logs.clone(),
            neighbours,
            clock,
        }
    }

    pub(super) async fn keep(
        mut self,
        wanted: &mut UnboundedReceiver<(Vec<NodeReclaim>, Ticket)>,
        stop: CancellationToken,
    ) {
        let every = |period| interval_at(Instant::now() + period, period);
        let reports = self.neighbours.pods.reports().clone();
        let mut dead_by = Instant::now() + containers::SOON;
        let mut unused = every(images::PERIOD);
        let mut large = every(logs::PERIOD);
        // From when on an image is here is known no better than how often that is looked at.
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
                    let next = match self.neighbours.pods.are_all_known() {
                        true => containers::PERIOD,
                        false => containers::SOON,
                    };
                    dead_by = Instant::now() + next;
                }
                _ = unused.tick() => self.collect_images().await,
                _ = large.tick() => {
                    let runtime = Arc::clone(&self.neighbours.host.runtime);
                    let done = logs::rotate_all(&*runtime, self.rotation, self.clock.now()).await;
                    complain(done);
                    self.detect_images().await;
                }
            }
        }
    }

    /// Frees what eviction asks for, and looks what that has brought.
    async fn reclaim(&mut self, wanted: &[NodeReclaim]) {
        for reclaim in wanted {
            match reclaim {
                NodeReclaim::ContainerGc => {
                    self.collect_containers(container_gc::Scope::AllUnused)
                        .await;
                }
                NodeReclaim::ImageGc => {
                    let runtime = Arc::clone(&self.neighbours.host.runtime);
                    let done = self
                        .images
                        .collect_unused(&*runtime, self.clock.now())
                        .await;
                    complain(done.map(|freed| tracing::info!(bytes = freed.0, "images removed")));
                }
            }
        }
        self.neighbours.meter.measure().await;
        self.neighbours.take_survey();
    }

    async fn collect_containers(&self, scope: container_gc::Scope) {
        let runtime = &*self.neighbours.host.runtime;
        let found = match containers::Found::new(runtime, &self.pod_logs).await {
            Ok(found) => found,
            Err(error) => return complain(Err(error)),
        };
        // In this order: a pod that comes in between is on the list.
        let are_all_pods_known = self.neighbours.pods.are_all_known();
        let pods = self.neighbours.pods.reports().all();
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
        let runtime = Arc::clone(&self.neighbours.host.runtime);
        complain(self.images.detect(&*runtime, self.clock.now()).await);
    }

    async fn collect_images(&mut self) {
        let runtime = Arc::clone(&self.neighbours.host.runtime);
        match self.images.collect(&*runtime, self.clock.now()).await {
            Ok(Some(warning)) => self.neighbours.warn(warning.reason, warning.message),
            done => complain(done.map(drop)),
        }
    }
}

fn complain(done: Result<(), crate::runtime::Error>) {
    if let Err(error) = done {
        tracing::warn!(error = error.chain(), "the node is not kept clean");
    }
}
