//! The agent as eviction sees it, and the housekeeping that spares pods.

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use plimsoll_client::clock::Clock;
use plimsoll_client::events::EventType;
use plimsoll_core::eviction::{self, NodeReclaim, container_gc, image_gc};
use plimsoll_core::object::identity::PodUid;
use plimsoll_core::object::node::NodeCondition;
use plimsoll_core::threshold::DiskLayout;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, interval_at, sleep_until};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::heartbeat::Heartbeat;
use super::host::NodeHost;
use super::measure::Meter;
use super::options::Options;
use crate::eviction::code::KeptCode;
use crate::eviction::oom::{self, follow_kernel_log};
use crate::eviction::protect::protect_agent;
use crate::eviction::reclaim::{containers, images, logs};
use crate::eviction::{
    Condemned, EvictionShell, Journal, Settings, Surroundings, Survey, Ticket, Waking,
};
use crate::pods::note::Note;
use crate::pods::reports::Report;
use crate::pods::status::Forced;
use crate::pods::{Pods, Sign};

/// The reason of the event on an evicted pod.
const EVICTED: &str = "Evicted";

/// What eviction talks to.
struct Neighbours {
    pods: Pods,
    host: Arc<NodeHost>,
    heartbeat: Arc<Heartbeat>,
    meter: Arc<Meter>,
    survey: Mutex<Option<Arc<Survey>>>,
    reclaims: UnboundedSender<(Vec<NodeReclaim>, Ticket)>,
    handle: Handle,
}

impl fmt::Debug for Neighbours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Neighbours").finish_non_exhaustive()
    }
}

impl Neighbours {
    /// Takes what was measured last.
    fn take_survey(&self) {
        let summary = self.meter.summary();
        let survey = Survey {
            observation: summary.observation(),
            usages: summary.usages(),
        };
        let mut latest = self.survey.lock().unwrap_or_else(PoisonError::into_inner);
        *latest = Some(Arc::new(survey));
    }
}

impl Surroundings for Neighbours {
    fn pods(&self) -> Vec<Report> {
        self.pods.reports().all()
    }

    fn survey(&self) -> Option<Arc<Survey>> {
        let latest = self.survey.lock();
        latest.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn sign(&self, uid: &PodUid) -> Option<Arc<Sign>> {
        self.pods.sign(uid.as_str())
    }

    fn struck(&self, uid: &PodUid, forced: &Forced) {
        self.pods.strike(uid.as_str(), forced.clone());
    }

    fn evict(&self, condemned: Condemned) {
        let Condemned {
            eviction, forced, ..
        } = condemned;
        let pods = self.pods.clone();
        let (uid, grace) = (eviction.uid.clone(), eviction.grace_period_seconds);
        self.handle.spawn(async move {
            if let Err(error) = pods.kill(uid.as_str(), Some(grace), Some(forced)).await {
                tracing::warn!(%error, "evicted pod is slow to end");
            }
        });
        let age = condemned.stats_ages.first().map(|(_, age)| {
            let nanos = u64::try_from(age.as_nanos()).unwrap_or_default();
            Duration::from_nanos(nanos)
        });
        let label = eviction.cause.metric_label();
        self.meter.metrics.evicted(label, age);
        if let Some(report) = self.pods.reports().get(eviction.uid.as_str()) {
            let note = Note::warning(EVICTED, eviction.message);
            let annotations = eviction.annotations.into_iter();
            let annotations = annotations.map(|(name, value)| (name.to_owned(), value));
            let annotations = annotations.collect();
            self.host.tell_with(&report.pod, &note, annotations);
        }
    }

    fn conditions_changed(&self, conditions: &BTreeSet<NodeCondition>) {
        self.host.pressure.send_replace(conditions.clone());
        self.heartbeat.at_once.notify_one();
    }

    fn warn(&self, reason: &'static str, message: String) {
        self.heartbeat.tell(EventType::Warning, reason, message);
    }

    fn reclaim(&self, wanted: Vec<NodeReclaim>, ticket: Ticket) {
        // If nobody listens the agent is stopping, and the ticket is dropped.
        let _ = self.reclaims.send((wanted, ticket));
    }
}

/// Has a node watched, and kept clean. Pods are safe from each other from here on. What is decided
/// can be read in the journal, which is there once the watch has begun.
pub(super) fn start(
    options: &Options,
    pods: Pods,
    host: Arc<NodeHost>,
    heartbeat: Arc<Heartbeat>,
    meter: Arc<Meter>,
    tasks: &TaskTracker,
    stop: &CancellationToken,
) -> Arc<OnceLock<Journal>> {
    let layout = host.cgroups.cgroups().layout();
    for problem in protect_agent(options.eviction.protection, &options.system_root, layout) {
        tracing::info!(problem, "the agent is less safe than it could be");
    }
    if options.eviction.protection.keep_code {
        let code = KeptCode::new(options.system_root.clone());
        tasks.spawn(keep(code, stop.clone()));
    }
    let (reclaims, wanted) = unbounded_channel();
    let journal = Arc::<OnceLock<Journal>>::default();
    let neighbours = Arc::new(Neighbours {
        pods,
        host,
        heartbeat,
        meter,
        survey: Mutex::default(),
        reclaims,
        handle: Handle::current(),
    });
    let house = House::new(options, Arc::clone(&neighbours));
    tasks.spawn(house.keep(wanted, stop.clone()));
    tasks.spawn(watch(
        options.clone(),
        Arc::clone(&neighbours),
        Arc::clone(&journal),
        stop.clone(),
    ));
    let (log, until) = (options.system_root.join(oom::KERNEL_LOG), stop.clone());
    tasks.spawn_blocking(move || {
        let tell = |message| neighbours.warn(oom::SYSTEM_OOM, message);
        if let Err(error) = follow_kernel_log(&log, &until, tell) {
            tracing::warn!(log = %log.display(), %error, "the kernel's own kills are not told");
        }
    });
    journal
}

/// Keeps the agent's code in memory, once it has started and runs as it will.
async fn keep(mut code: KeptCode, stop: CancellationToken) {
    const PERIOD: Duration = Duration::from_secs(10);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(PERIOD) => {}
        }
        // A few system calls: not worth a thread of its own.
        if let Err(error) = code.tidy() {
            tracing::info!(%error, "the agent's code may be dropped");
            return;
        }
    }
}

/// Watches from the first measurement on, which tells where the disks are.
async fn watch(
    options: Options,
    neighbours: Arc<Neighbours>,
    journal: Arc<OnceLock<Journal>>,
    stop: CancellationToken,
) {
    let meter = Arc::clone(&neighbours.meter);
    let mut measured = meter.measured.subscribe();
    let mut shell: Option<EvictionShell> = None;
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            changed = measured.changed() => if changed.is_err() { break },
        }
        neighbours.take_survey();
        match &shell {
            // One that polls takes the measurement when it looks, and not before.
            Some(_) if options.eviction.waking == Waking::PollOnly => {}
            Some(shell) => shell.wake(),
            None => {
                let layout = meter.disk_layout().unwrap_or(DiskLayout::Single);
                shell = start_shell(&options, layout, &neighbours);
                let Some(shell) = &shell else { return };
                journal.get_or_init(|| shell.journal());
            }
        }
    }
    // Its thread is waited for, which is no work for this one.
    let _ = tokio::task::spawn_blocking(move || drop(shell)).await;
}

/// Where records of decisions are kept.
pub(super) fn decisions_dir(options: &Options) -> PathBuf {
    options.directories.root.join("decisions")
}

fn start_shell(
    options: &Options,
    layout: DiskLayout,
    neighbours: &Arc<Neighbours>,
) -> Option<EvictionShell> {
    let chosen = options.eviction;
    let engine = match eviction::Settings::new(&options.config, layout) {
        Ok(engine) => eviction::Settings {
            memory_source: chosen.memory_source,
            ..engine
        },
        Err(error) => {
            tracing::error!(%error, "nobody watches the node: its thresholds cannot be used");
            return None;
        }
    };
    let cgroups = neighbours.host.cgroups.cgroups().clone();
    let root = cgroups.path(cgroups.root());
    let played = options.played_machine(&root);
    let mut settings = Settings {
        mount_root: options.system_root.clone(),
        waking: chosen.waking,
        gives_grace_always: chosen.gives_grace_always,
        decisions_dir: Some(decisions_dir(options)),
        ..Settings::new(engine)
    };
    if let Some((cgroup, machine)) = played {
        settings.machine = cgroup;
        settings.capacity = Some(machine.memory);
    }
    let told: Arc<dyn Surroundings> = Arc::<Neighbours>::clone(neighbours);
    match EvictionShell::start(settings, cgroups, told) {
        Ok(shell) => Some(shell),
        Err(error) => {
            tracing::error!(%error, "nobody watches the node");
            None
        }
    }
}

/// What the node frees from time to time, and when eviction asks.
struct House {
    neighbours: Arc<Neighbours>,
    images: images::Images,
    rotation: logs::Policy,
    pod_logs: PathBuf,
    log_links: PathBuf,
    clock: Clock,
}

impl House {
    fn new(options: &Options, neighbours: Arc<Neighbours>) -> House {
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

    async fn keep(
        mut self,
        mut wanted: UnboundedReceiver<(Vec<NodeReclaim>, Ticket)>,
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
        // Asked first: a pod that comes in between is on the list.
        let are_all_pods_known = self.neighbours.pods.are_all_known();
        let pods = self.neighbours.pods.reports().all();
        let run = containers::Run {
            scope,
            policy: container_gc::Policy::default(),
            pods: &pods,
            are_all_pods_known,
            pod_logs: &self.pod_logs,
            log_links: &self.log_links,
            now: self.clock.now(),
        };
        complain(containers::collect(&*self.neighbours.host.runtime, run).await);
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
