//! Starts eviction and garbage collection, and protects the agent from memory pressure.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_core::error_chain::error_chain;
use plimsoll_core::eviction;
use plimsoll_core::threshold::DiskLayout;
use tokio::sync::mpsc::unbounded_channel;
use tokio::sync::{Mutex, watch};
use tokio_util::sync::CancellationToken;

use super::eviction_host::EvictionHost;
use super::garbage_collection::GarbageCollection;
use super::heartbeat::Heartbeat;
use super::host::NodeHost;
use super::measure::Meter;
use super::options::Options;
use super::prepare::StartError;
use crate::eviction::code::{KeptCode, is_calm};
use crate::eviction::oom::{self, follow_kernel_log};
use crate::eviction::protect::protect_agent;
use crate::eviction::{EvictionShell, Journal, Settings, Surroundings, Waking};
use crate::pods::Pods;
use plimsoll_client::supervision::{Supervisor, Weight};

/// How often the agent checks that the eviction thread runs.
const CHECK: Duration = Duration::from_secs(1);

/// The journal of eviction decisions, once eviction has started.
pub(super) type Journals = watch::Receiver<Option<Journal>>;

/// Checks that eviction can be started: an agent that cannot evict does not start.
pub(super) fn check(options: &Options) -> Result<(), StartError> {
    let layout = DiskLayout::Single;
    eviction::Settings::new(&options.config, layout).map_err(StartError::Thresholds)?;
    let path = decisions_dir(options);
    let made = std::fs::create_dir_all(&path);
    made.map_err(|source| StartError::Directory { path, source })
}

/// Starts eviction and garbage collection. Pods are safe from each other from here on. Decisions can
/// be read in the journal, which exists once eviction has started.
pub(super) fn start(
    options: &Options,
    pods: Pods,
    host: Arc<NodeHost>,
    heartbeat: Arc<Heartbeat>,
    meter: Arc<Meter>,
    supervisor: &Supervisor,
    stop: &CancellationToken,
) -> Journals {
    let layout = host.cgroups.cgroups().layout();
    for problem in protect_agent(options.eviction.protection, &options.system_root, layout) {
        tracing::info!(problem, "failed to protect agent from memory pressure");
    }
    let (journals, journal) = watch::channel(None);
    if options.eviction.protection.keep_code {
        let (journal, heartbeat) = (journal.clone(), Arc::clone(&heartbeat));
        let (root, until) = (options.system_root.clone(), stop.clone());
        supervisor.complete("agentCode", Weight::Minor, move || {
            let (journal, heartbeat) = (journal.clone(), Arc::clone(&heartbeat));
            let (root, until) = (root.clone(), until.clone());
            async move {
                match KeptCode::keep(root) {
                    Ok(code) => tidy(code, journal, heartbeat, until).await,
                    Err(error) => tracing::info!(%error, "failed to lock agent code in memory"),
                }
                Ok(())
            }
        });
    }
    let (reclaims, wanted) = unbounded_channel();
    let eviction_host = Arc::new(EvictionHost::new(pods, host, heartbeat, meter, reclaims));
    let (wanted, until) = (Arc::new(Mutex::new(wanted)), stop.clone());
    let (own, gc_options) = (Arc::clone(&eviction_host), options.clone());
    supervisor.keep("garbageCollection", Weight::Minor, move || {
        let garbage_collection = GarbageCollection::new(&gc_options, Arc::clone(&own));
        let (wanted, until) = (Arc::clone(&wanted), until.clone());
        async move {
            let mut wanted = wanted.lock().await;
            garbage_collection.keep(&mut wanted, until).await;
            Ok(())
        }
    });
    let (own, eviction_options, until) =
        (Arc::clone(&eviction_host), options.clone(), stop.clone());
    supervisor.keep("eviction", Weight::Vital, move || {
        let (options, until) = (eviction_options.clone(), until.clone());
        watch(options, Arc::clone(&own), journals.clone(), until)
    });
    let (log, until) = (options.system_root.join(oom::KERNEL_LOG), stop.clone());
    supervisor.complete("kernelLog", Weight::Minor, move || {
        let (log, until, eviction_host) = (log.clone(), until.clone(), Arc::clone(&eviction_host));
        let following = tokio::task::spawn_blocking(move || {
            let warn = |message| eviction_host.warn(oom::SYSTEM_OOM, message);
            if let Err(error) = follow_kernel_log(&log, &until, warn) {
                tracing::warn!(log = %log.display(), %error, "cannot follow the kernel log");
            }
        });
        async move { following.await.map_err(|error| error.to_string()) }
    });
    journal
}

/// Unlocks code that the agent does not need, while the node is not under pressure.
async fn tidy(
    mut code: KeptCode,
    journal: Journals,
    heartbeat: Arc<Heartbeat>,
    stop: CancellationToken,
) {
    const PERIOD: Duration = Duration::from_secs(10);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(PERIOD) => {}
        }
        let lines = journal.borrow().as_ref().map(Journal::lines);
        if !lines.is_some_and(|lines| is_calm(&lines)) {
            continue;
        }
        // A few system calls: not worth a thread of its own.
        match code.tidy() {
            // What runs only when memory is short must not be read from disk then.
            Ok(true) => heartbeat.rehearse(),
            Ok(false) => {}
            Err(error) => {
                tracing::info!(%error, "failed to unlock unused agent code");
                return;
            }
        }
    }
}

/// Watches from the first measurement on, from which it is known where the disks are. Ends when the thread that
/// watches cannot be started or has ended.
async fn watch(
    options: Options,
    eviction_host: Arc<EvictionHost>,
    journal: watch::Sender<Option<Journal>>,
    stop: CancellationToken,
) -> Result<(), String> {
    let meter = Arc::clone(&eviction_host.meter);
    let mut measured = meter.measured.subscribe();
    let mut shell: Option<EvictionShell> = None;
    loop {
        let is_measured = tokio::select! {
            () = stop.cancelled() => break,
            changed = measured.changed() => match changed {
                Ok(()) => true,
                Err(_) => break,
            },
            () = tokio::time::sleep(CHECK) => false,
        };
        if shell.as_ref().is_some_and(|shell| !shell.is_running()) {
            return Err("the thread that watches the node has ended".to_owned());
        }
        if !is_measured && (shell.is_some() || meter.disk_layout().is_none()) {
            continue;
        }
        eviction_host.take_survey();
        match &shell {
            // One that polls takes the measurement when it looks, and not before.
            Some(_) if options.eviction.waking == Waking::PollOnly => {}
            Some(shell) => shell.wake(),
            None => {
                let layout = meter.disk_layout().unwrap_or(DiskLayout::Single);
                let started = start_shell(&options, layout, &eviction_host)?;
                journal.send_replace(Some(started.journal()));
                shell = Some(started);
            }
        }
    }
    // Its thread is waited for, which is no work for this one.
    let _ = tokio::task::spawn_blocking(move || drop(shell)).await;
    Ok(())
}

/// Where records of decisions are kept.
pub(super) fn decisions_dir(options: &Options) -> PathBuf {
    options.directories.root.join("decisions")
}

fn start_shell(
    options: &Options,
    layout: DiskLayout,
    eviction_host: &Arc<EvictionHost>,
) -> Result<EvictionShell, String> {
    let chosen = options.eviction;
    let engine = eviction::Settings::new(&options.config, layout);
    let engine = eviction::Settings {
        memory_source: chosen.memory_source,
        back_off: chosen.back_off,
        always_give_grace: chosen.gives_grace_always,
        ..engine.map_err(|error| error.to_string())?
    };
    let cgroups = eviction_host.host.cgroups.cgroups().clone();
    let root = cgroups.path(cgroups.root());
    let played = options.played_machine(&root);
    let mut settings = Settings {
        mount_root: options.system_root.clone(),
        waking: chosen.waking,
        decisions_dir: Some(decisions_dir(options)),
        ..Settings::new(engine)
    };
    if let Some((cgroup, machine)) = played {
        settings.machine = cgroup;
        settings.capacity = Some(machine.memory);
    }
    let surroundings: Arc<dyn Surroundings> = Arc::<EvictionHost>::clone(eviction_host);
    EvictionShell::start(settings, cgroups, surroundings).map_err(|error| error_chain(&error))
}
