//! A cgroup plays the machine, processes play pods, and one of them takes all the memory there is.

mod back_off;
mod crossed_lines;
mod no_memory;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, Write};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{Pod, PodStatus};
use plimsoll_core::cgroup::CgroupPath;
use plimsoll_core::config::Profile;
use plimsoll_core::eviction::{self, Eviction, KillOutcome, MemorySource, NodeReclaim};
use plimsoll_core::object::identity::PodUid;
use plimsoll_core::object::node::NodeCondition;
use plimsoll_core::object::pod::PodView;
use plimsoll_core::object::timestamp::Timestamp;
use plimsoll_core::resources::Bytes;
use plimsoll_core::threshold::{self, DiskLayout, Signal, Statements};
use plimsoll_runtime::cgroup::testing::{KernelCgroups, eventually};
use plimsoll_runtime::cgroup::{Cgroups, Layout};
use serde_json::json;

use super::{EvictionShell, Settings, Surroundings, Survey, Ticket, Waking};
use crate::pods::KillNotice;
use crate::pods::reports::Report;
use crate::pods::status::Forced;

const MIB: u64 = 1 << 20;
/// What the machine has, and where its line is.
const MACHINE: u64 = 500 * MIB;
const LINE: u64 = 150 * MIB;
/// How the test binary knows that it is to take memory, and how fast, in MiB per second.
const RATE: &str = "PLIMSOLL_TEST_HOG_RATE";
/// How much it takes at most.
const MOST: &str = "PLIMSOLL_TEST_HOG_MOST";

/// Not a test: what the processes in the pods run. A line makes it take all it may, or to hold a
/// number of mebibytes.
#[test]
#[ignore = "tier: root"]
#[expect(clippy::cast_precision_loss, reason = "a count of mebibytes")]
fn hog() {
    let (Ok(rate), Ok(most)) = (std::env::var(RATE), std::env::var(MOST)) else {
        return;
    };
    let (rate, most): (f64, usize) = (rate.parse().unwrap(), most.parse().unwrap());
    let wanted = Arc::new(AtomicUsize::new(0));
    let amount_read = Arc::clone(&wanted);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let amount = line.unwrap().parse().unwrap_or(most);
            amount_read.store(amount, Ordering::Relaxed);
        }
    });
    let mut begun = Instant::now();
    let mut held: Vec<Vec<u8>> = Vec::new();
    loop {
        let wanted = wanted.load(Ordering::Relaxed);
        if wanted <= held.len() {
            held.truncate(wanted);
            begun = Instant::now() - Duration::from_secs_f64(held.len() as f64 / rate);
        }
        let due = begun.elapsed().as_secs_f64() * rate;
        while (held.len() as f64) < due && held.len() < wanted {
            held.push(vec![1; 1 << 20]);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A pod with one process.
struct Tenant {
    pod: Arc<Pod>,
    cgroup: CgroupPath,
    process: Child,
}

impl Tenant {
    fn new(cgroups: &Cgroups, name: &str, rate: u64, most: u64) -> Tenant {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": name, "namespace": "default", "uid": format!("uid-{name}")},
            "spec": {"containers": [{"name": "main", "image": "none"}]},
        }))
        .unwrap();
        let view = PodView::from_api(&pod).unwrap();
        let cgroup = cgroups.path(&cgroups.pod_name(&view).unwrap());
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "eviction::tests::hog", "--ignored"])
            .env(RATE, rate.to_string())
            .env(MOST, most.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let process = child.unwrap();
        cgroups.enter(&cgroup, process.id()).unwrap();
        Tenant {
            pod: Arc::new(pod),
            cgroup,
            process,
        }
    }

    /// Has it take all that it may.
    fn go(&mut self) {
        self.write_line("");
    }

    /// Has it hold that much.
    fn hold(&mut self, mebibytes: u64) {
        self.write_line(&mebibytes.to_string());
    }

    fn write_line(&mut self, line: &str) {
        let input = self.process.stdin.as_mut().unwrap();
        writeln!(input, "{line}").unwrap();
    }

    fn is_alive(&mut self) -> bool {
        self.process.try_wait().unwrap().is_none()
    }
}

impl Drop for Tenant {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A pod as the rest of the agent knows it.
#[derive(Debug)]
struct Resident {
    pod: Arc<Pod>,
    cgroup: CgroupPath,
    status: Arc<PodStatus>,
}

/// The rest of the agent: pods that were evicted are gone once nothing of them runs.
#[derive(Debug)]
struct Rest {
    cgroups: Cgroups,
    pods: Vec<Resident>,
    evicted: Mutex<Vec<(Instant, Arc<Eviction>)>>,
    reported: Mutex<Vec<(Instant, BTreeSet<NodeCondition>)>>,
    warnings: Mutex<Vec<String>>,
    notice: Arc<KillNotice>,
    /// Whether not all pods are known yet.
    is_new_here: AtomicBool,
}

impl Surroundings for Rest {
    fn pods(&self) -> Option<Vec<Report>> {
        if self.is_new_here.load(Ordering::Relaxed) {
            return None;
        }
        let evicted = self.evicted.lock().unwrap();
        let reports = self.pods.iter().map(|resident| {
            let uid = resident.pod.metadata.uid.as_deref().unwrap();
            let is_evicted = evicted.iter().any(|(_, e)| e.uid.as_str() == uid);
            let is_empty = || self.cgroups.pids(&resident.cgroup).unwrap().is_empty();
            Report {
                pod: Arc::clone(&resident.pod),
                status: Arc::clone(&resident.status),
                may_run: !is_evicted,
                is_finished: is_evicted && is_empty(),
                version: 0,
            }
        });
        Some(reports.collect())
    }

    fn survey(&self) -> Option<Arc<Survey>> {
        None
    }

    fn kill_notice(&self, _: &PodUid) -> Option<Arc<KillNotice>> {
        Some(Arc::clone(&self.notice))
    }

    fn terminate(&self, eviction: &Arc<Eviction>) {
        assert_eq!(self.notice.is_given(), eviction.is_immediate);
        let mut evicted = self.evicted.lock().unwrap();
        evicted.push((Instant::now(), Arc::clone(eviction)));
    }

    fn record_eviction(&self, _: &Eviction, _: Timestamp, _: &[(Signal, threshold::Duration)]) {}

    fn conditions_changed(&self, conditions: &BTreeSet<NodeCondition>) {
        let mut reported = self.reported.lock().unwrap();
        reported.push((Instant::now(), conditions.clone()));
    }

    fn warn(&self, reason: &'static str, message: String) {
        let mut warnings = self.warnings.lock().unwrap();
        warnings.push(format!("{reason}: {message}"));
    }

    fn reclaim(&self, _: Vec<NodeReclaim>, _: Ticket) {}
}

fn of_memory(value: &str) -> BTreeMap<String, String> {
    BTreeMap::from([("memory.available".to_owned(), value.to_owned())])
}

fn engine(hard: &str, soft: Option<(&str, &str)>) -> eviction::Settings {
    settings(&Statements {
        hard: of_memory(hard),
        soft: soft.map(|(line, _)| of_memory(line)).unwrap_or_default(),
        soft_grace_period: soft.map(|(_, grace)| of_memory(grace)).unwrap_or_default(),
        ..Statements::default()
    })
}

fn settings(statements: &Statements) -> eviction::Settings {
    eviction::Settings {
        profile: Profile::default(),
        thresholds: statements.parse().unwrap(),
        layout: DiskLayout::Single,
        pressure_transition_period: threshold::Duration::from_secs(300),
        max_pod_grace_period_seconds: 30,
        local_storage_capacity_isolation: false,
        memory_source: MemorySource::WorkingSet,
        memory_stall: None,
        back_off: true,
        always_give_grace: false,
    }
}

/// The machine: a cgroup with a limit, pods below it, and an eviction shell.
struct Trial {
    // Dropped in this order: the shell, the pods, the cgroup.
    shell: EvictionShell,
    tenants: Vec<Tenant>,
    rest: Arc<Rest>,
    sampler: Sampler,
    _kernel: KernelCgroups,
    _records: tempfile::TempDir,
}

impl Trial {
    /// The first tenant takes that much per second; two bystanders hold 20 MiB each.
    fn new(rate: u64, engine: eviction::Settings, change: impl FnOnce(&mut Settings)) -> Trial {
        let tenants = [("hog", rate, 10_000), ("one", 1000, 20), ("two", 1000, 20)];
        let mut trial = Trial::with(&tenants, engine, change);
        for tenant in &mut trial.tenants[1..] {
            tenant.go();
        }
        trial
    }

    /// With tenants by name, rate and most, which wait for a command.
    fn with(
        tenants: &[(&str, u64, u64)],
        engine: eviction::Settings,
        change: impl FnOnce(&mut Settings),
    ) -> Trial {
        let kernel = KernelCgroups::new();
        let cgroups = kernel.cgroups().clone();
        let machine = cgroups.path(cgroups.root());
        let memory = cgroups.layout().directory("memory", &machine).unwrap();
        let limit = match plimsoll_testkit::cgroup::is_unified() {
            true => "memory.max",
            false => "memory.limit_in_bytes",
        };
        cgroups.create(&cgroups.path(&cgroups.kubepods())).unwrap();
        std::fs::write(memory.join(limit), MACHINE.to_string()).unwrap();
        let tenants: Vec<Tenant> = tenants
            .iter()
            .map(|(name, rate, most)| Tenant::new(&cgroups, name, *rate, *most))
            .collect();
        let pods = tenants.iter().map(|tenant| Resident {
            pod: Arc::clone(&tenant.pod),
            cgroup: tenant.cgroup.clone(),
            status: Arc::new(PodStatus::default()),
        });
        let rest = Arc::new(Rest {
            cgroups: cgroups.clone(),
            pods: pods.collect(),
            evicted: Mutex::default(),
            reported: Mutex::default(),
            warnings: Mutex::default(),
            notice: Arc::default(),
            is_new_here: AtomicBool::default(),
        });
        let records = tempfile::tempdir().unwrap();
        let mut settings = Settings {
            machine: machine.clone(),
            capacity: Some(Bytes(MACHINE.cast_signed())),
            decisions_dir: Some(records.path().join("decisions")),
            ..Settings::new(engine)
        };
        change(&mut settings);
        let sampler = Sampler::start(cgroups.layout(), &machine);
        let surroundings: Arc<dyn Surroundings> = Arc::<Rest>::clone(&rest);
        let shell = EvictionShell::start(settings, cgroups, surroundings).unwrap();
        Trial {
            shell,
            tenants,
            rest,
            sampler,
            _kernel: kernel,
            _records: records,
        }
    }

    fn evicted(&self) -> Vec<String> {
        let evicted = self.rest.evicted.lock().unwrap();
        let names = evicted
            .iter()
            .map(|(_, eviction)| eviction.pod_ref.name.clone());
        names.collect()
    }
}

/// Looks every two milliseconds when the line was crossed, and how far.
struct Sampler {
    stop: Arc<AtomicBool>,
    found: Arc<Mutex<Crossing>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

#[derive(Clone, Copy, Debug)]
struct Crossing {
    at: Option<Instant>,
    lowest: i64,
}

impl Sampler {
    fn start(layout: &Layout, machine: &CgroupPath) -> Sampler {
        let found = Arc::new(Mutex::new(Crossing {
            at: None,
            lowest: i64::MAX,
        }));
        let stop = Arc::new(AtomicBool::new(false));
        let mut memory = super::gauge::CgroupMemory::new(layout, machine);
        let mut reading = super::gauge::Reading::new(10);
        let (ended, crossing) = (Arc::clone(&stop), Arc::clone(&found));
        let thread = std::thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                if let Some(amounts) = memory.read(&mut reading) {
                    let left = MACHINE.cast_signed() - amounts.working_set().cast_signed();
                    let mut crossing = crossing.lock().unwrap();
                    crossing.lowest = crossing.lowest.min(left);
                    if left < LINE.cast_signed() && crossing.at.is_none() {
                        crossing.at = Some(Instant::now());
                    }
                }
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        Sampler {
            stop,
            found,
            thread: Some(thread),
        }
    }

    fn crossing(&self) -> Crossing {
        *self.found.lock().unwrap()
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

#[test]
#[ignore = "tier: root"]
fn only_the_fast_hog_is_killed_soon_after_the_threshold() {
    for rate in [50, 100, 200] {
        let mut trial = Trial::new(rate, engine("150Mi", None), |_| {});
        trial.tenants[0].go();
        let dead = loop_until_dead(&mut trial.tenants[0]);
        let crossing = trial.sampler.crossing();
        // The memory may be back before the sampler has looked.
        let rest = Arc::clone(&trial.rest);
        eventually("pressure is reported", || {
            !rest.reported.lock().unwrap().is_empty()
        });
        eventually("it is evicted", || !rest.evicted.lock().unwrap().is_empty());
        let evicted = rest.evicted.lock().unwrap()[0].0;
        let crossed = crossing.at.map_or(evicted, |at| at.min(evicted));
        let took = dead.saturating_duration_since(crossed);
        let lowest = crossing.lowest / (1 << 20);
        let reported = trial.rest.reported.lock().unwrap().clone();
        assert!(
            reported[0].0 <= evicted,
            "pressure is reported before the eviction"
        );
        let pressure = reported[0].0.saturating_duration_since(crossed);
        eprintln!(
            "{rate} MiB/s: dead after {took:?}, reported after {pressure:?}, lowest {lowest} MiB"
        );
        // What a loaded machine takes to end a process is not the shell's; what is lost meanwhile is.
        assert!(pressure < Duration::from_millis(200), "{pressure:?}");
        assert!(took < Duration::from_secs(5), "{took:?}");
        assert!(lowest >= 90, "{lowest} MiB");
        // No other pod is evicted for it, however long the test waits.
        let still = Instant::now() + Duration::from_secs(2);
        eventually("two seconds pass", || Instant::now() > still);
        assert_eq!(trial.evicted(), ["hog"]);
        assert!(trial.tenants[1].is_alive() && trial.tenants[2].is_alive());
        assert_eq!(reported.len(), 1);
        assert!(reported[0].1.contains(&NodeCondition::MemoryPressure));
        assert_eq!(trial.shell.conditions(), reported[0].1);
        let eviction = Arc::clone(&trial.rest.evicted.lock().unwrap()[0].1);
        let forced = Forced::evicted(&eviction);
        assert!(eviction.is_immediate && forced.is_disruption);
        assert_eq!(forced.reason, "Evicted");
        let begin = "The node was low on resource: memory. Threshold quantity: 150Mi, available: ";
        assert!(forced.message.starts_with(begin), "{}", forced.message);
        let warnings = trial.rest.warnings.lock().unwrap().clone();
        assert_eq!(
            warnings,
            ["EvictionThresholdMet: Attempting to reclaim memory"]
        );
        let journal = trial.shell.journal();
        let record = journal.decisions()[0].clone();
        assert_eq!(record.differences(), Ok(vec![]));
        let uid = record.decision.evictions[0].uid.clone();
        assert_eq!(record.outcome(&uid), Some(KillOutcome::Killed));
        assert_eq!(record.decision.terminated, Some(vec![uid]));
        assert!(journal.lines().at.is_some());
    }
}

#[test]
#[ignore = "tier: root"]
fn no_pod_is_evicted_before_all_pods_are_known() {
    let mut trial = Trial::new(1000, engine("150Mi", None), |_| {});
    trial.rest.is_new_here.store(true, Ordering::Relaxed);
    trial.tenants[0].hold(380);
    eventually("the line is crossed", || {
        trial.sampler.crossing().at.is_some()
    });
    let still = Instant::now() + Duration::from_millis(500);
    eventually("time passes", || Instant::now() > still);
    assert!(trial.tenants.iter_mut().all(Tenant::is_alive));
    assert_eq!(trial.evicted(), [""; 0]);
    assert!(trial.shell.journal().decisions().is_empty());
    trial.rest.is_new_here.store(false, Ordering::Relaxed);
    loop_until_dead(&mut trial.tenants[0]);
    eventually("the eviction is reported", || !trial.evicted().is_empty());
    assert_eq!(trial.evicted(), ["hog"]);
    assert!(trial.tenants[1].is_alive() && trial.tenants[2].is_alive());
}

fn loop_until_dead(tenant: &mut Tenant) -> Instant {
    let deadline = Instant::now() + Duration::from_secs(40);
    while tenant.is_alive() {
        assert!(Instant::now() < deadline, "the hog lives on");
        std::thread::sleep(Duration::from_millis(1));
    }
    Instant::now()
}

#[test]
#[ignore = "tier: root"]
fn a_soft_line_leaves_time_until_the_hard_one_is_crossed() {
    let soft = Some(("250Mi", "100ms"));
    let mut settings = engine("150Mi", soft);
    settings.max_pod_grace_period_seconds = 1;
    let mut trial = Trial::new(40, settings, |_| {});
    trial.tenants[0].go();
    let dead = loop_until_dead(&mut trial.tenants[0]);
    // It was signalled at the soft threshold and kept running, as a process does that ignores its signal.
    let evicted = trial.rest.evicted.lock().unwrap().clone();
    assert_eq!(evicted.len(), 1);
    assert!(!evicted[0].1.is_immediate);
    let went_on = dead.saturating_duration_since(evicted[0].0);
    let lowest = trial.sampler.crossing().lowest / (1 << 20);
    eprintln!("dead {went_on:?} after the report, lowest {lowest} MiB");
    assert!(went_on > Duration::from_millis(500), "{went_on:?}");
    assert!((90..170).contains(&lowest), "{lowest} MiB");
}

#[test]
#[ignore = "tier: root"]
fn no_grace_period_if_memory_would_run_out_first() {
    // 250 MiB at 40 MiB/s are six seconds, and it would be given thirty.
    let soft = Some(("250Mi", "100ms"));
    let mut trial = Trial::new(40, engine("150Mi", soft), |_| {});
    trial.tenants[0].go();
    loop_until_dead(&mut trial.tenants[0]);
    eventually("the eviction is reported", || !trial.evicted().is_empty());
    assert_eq!(trial.evicted(), ["hog"]);
    assert!(trial.rest.evicted.lock().unwrap()[0].1.is_immediate);
    assert!(trial.sampler.crossing().at.is_none());
}

#[test]
#[ignore = "tier: root"]
fn a_pod_that_the_kernel_killed_is_not_evicted() {
    // The poll comes too late: the limit is hit before it.
    let mut trial = Trial::new(400, engine("150Mi", None), |settings| {
        settings.waking = Waking::PollOnly;
    });
    // The first look is over, the next one is ten seconds away.
    let begun = Instant::now() + Duration::from_millis(200);
    eventually("the first look", || Instant::now() > begun);
    trial.tenants[0].go();
    loop_until_dead(&mut trial.tenants[0]);
    trial.shell.wake();
    let still = Instant::now() + Duration::from_secs(1);
    eventually("a second passes", || Instant::now() > still);
    assert_eq!(trial.evicted(), [""; 0]);
    assert!(trial.tenants[1].is_alive() && trial.tenants[2].is_alive());
}
