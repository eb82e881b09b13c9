//! Has the node watched, and the agent itself kept ready for the worst.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use plimsoll_core::eviction;
use plimsoll_core::threshold::DiskLayout;
use tokio::sync::mpsc::unbounded_channel;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::heartbeat::Heartbeat;
use super::host::NodeHost;
use super::house::House;
use super::measure::Meter;
use super::neighbours::Neighbours;
use super::options::Options;
use crate::eviction::code::{KeptCode, is_calm};
use crate::eviction::oom::{self, follow_kernel_log};
use crate::eviction::protect::protect_agent;
use crate::eviction::{EvictionShell, Journal, Settings, Surroundings, Waking};
use crate::pods::Pods;

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
    let journal = Arc::<OnceLock<Journal>>::default();
    if options.eviction.protection.keep_code {
        let (journal, heartbeat) = (Arc::clone(&journal), Arc::clone(&heartbeat));
        match KeptCode::keep(options.system_root.clone()) {
            Ok(code) => {
                tasks.spawn(tidy(code, journal, heartbeat, stop.clone()));
            }
            Err(error) => tracing::info!(%error, "the agent's code may be dropped"),
        }
    }
    let (reclaims, wanted) = unbounded_channel();
    let neighbours = Arc::new(Neighbours::new(pods, host, heartbeat, meter, reclaims));
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

/// Has no more of the agent's code in memory than is needed, while there is time to find out.
async fn tidy(
    mut code: KeptCode,
    journal: Arc<OnceLock<Journal>>,
    heartbeat: Arc<Heartbeat>,
    stop: CancellationToken,
) {
    const PERIOD: Duration = Duration::from_secs(10);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(PERIOD) => {}
        }
        if !journal.get().is_some_and(|seen| is_calm(&seen.lines())) {
            continue;
        }
        // A few system calls: not worth a thread of its own.
        match code.tidy() {
            // What runs only when memory is short must not be read from disk then.
            Ok(true) => heartbeat.rehearse(),
            Ok(false) => {}
            Err(error) => {
                tracing::info!(%error, "the agent's code is not let go");
                return;
            }
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
