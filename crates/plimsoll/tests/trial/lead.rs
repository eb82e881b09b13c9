//! Leads the trials, in the guest.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{ContainerStateTerminated, Pod};
use rustix::mm::{MlockAllFlags, mlockall};

use crate::node::{IMAGE, NOTES, Node, phase, pod};
use crate::outcome::{Outcome, Told, unix_nanos};
use crate::page_cache;
use crate::plan::{LINE_MIB, Load, Setup, Stage, Trial, stages};
use crate::sampler::{Sample, Sampler};
use crate::table;
use crate::vm::{ARCHIVE, PLIMSOLL, PROGRAM};
use crate::waiting::{until, until_within};

/// Longer than a node that starves has taken.
const STARVATION: Duration = Duration::from_secs(180);
/// For so long nobody else must go.
const AFTERMATH: Duration = Duration::from_secs(3);
/// How far a hog is from the line when it begins to grow.
const RUN_UP: u32 = 2;
/// How much lower than the line the signal may be.
const MARGIN_MIB: i64 = 60;
/// How long after the line was crossed the hog is dead, in the middle and at most.
const DEAD_MEDIAN: Duration = Duration::from_millis(300);
const DEAD: Duration = Duration::from_millis(500);
/// How long after the decision the API tells of the pressure.
const TOLD: Duration = Duration::from_millis(200);
/// How long the Guaranteed pod may be kept waiting.
const STALL: Duration = Duration::from_millis(50);

/// Runs all trials of a plan; fails if one of them did not end as it should.
pub(crate) fn main(plan: &str) -> ExitCode {
    prepare();
    let mut outcomes = Vec::new();
    let mut problems = Vec::new();
    for Stage { setup, loads } in stages(plan) {
        let begun = Instant::now();
        let node = Node::start(&setup);
        start_bystanders(&node);
        println!("{setup:?}: ready after {:?}", begun.elapsed());
        table::print_agent();
        for load in loads {
            let trial = Trial { setup, load };
            let found = match load {
                Load::Hog { rate, is_polite } => {
                    let (outcome, found) = feed_hog(&node, trial, rate, is_polite);
                    outcomes.push(outcome);
                    found
                }
                Load::Reader => page_cache::read_much(&node, &trial),
            };
            problems.extend(
                found
                    .iter()
                    .map(|what| format!("{}: {what}", trial.label())),
            );
        }
        node.stop();
    }
    if !outcomes.is_empty() {
        table::print(&outcomes);
        problems.extend(too_slow(&outcomes));
    }
    for problem in &problems {
        println!("PROBLEM {problem}");
    }
    match problems.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn prepare() {
    for folder in [NOTES, "/data"] {
        fs::create_dir_all(folder).unwrap();
    }
    for role in ["hog", "keeper", "small", "reader"] {
        symlink(PROGRAM, format!("/test/{role}")).unwrap();
    }
    let mut import = Command::new(PLIMSOLL);
    let imported = import.args(["image", "import", ARCHIVE]).output().unwrap();
    assert!(imported.status.success(), "{IMAGE}: {imported:?}");
    // This one has to go on when nobody else does.
    fs::write("/proc/self/oom_score_adj", "-1000").unwrap();
    mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT).unwrap();
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Those who must not suffer. What went on over a restart of the agent is there already.
fn start_bystanders(node: &Node) {
    let keeper = words(&["--mib", "200", "--log", &note("keeper")]);
    let mut all = vec![("keeper", pod("keeper", "keeper", &keeper, Some("256Mi")))];
    for name in ["small-a", "small-b"] {
        let small = words(&["--mib", "20", "--log", &note(name)]);
        all.push((name, pod(name, "small", &small, None)));
    }
    for (name, pod) in &all {
        if node.pod(name).is_none() {
            node.create(pod);
        }
    }
    for (name, _) in &all {
        node.until_running(name);
    }
}

fn note(name: &str) -> String {
    format!("{NOTES}/{name}.log")
}

/// Processes by the name of their program.
pub(crate) fn processes(name: &str) -> Vec<i32> {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_called = |pid: &i32| {
        let comm = fs::read_to_string(format!("/proc/{pid}/comm"));
        comm.is_ok_and(|comm| comm.trim() == name)
    };
    numbers.filter(is_called).collect()
}

/// A sampler that watches everybody, once the page cache is as it is on a node that was just
/// started.
pub(crate) fn start_sampler(node: &Node) -> Sampler {
    node.until_calm();
    fs::write("/proc/sys/vm/drop_caches", "3").unwrap();
    let sampler = Sampler::start();
    for name in ["keeper", "small"] {
        for pid in processes(name) {
            sampler.watch(name, pid);
        }
    }
    sampler
}

/// Creates a pod and has its process watched.
pub(crate) fn create_watched(node: &Node, sampler: &Sampler, name: &str, pod: &serde_json::Value) {
    node.create(pod);
    let pid = until(&format!("{name} has a process"), || {
        let found = processes(name).first().copied();
        found.ok_or_else(|| format!("{:?}", node.pod(name).map(|pod| pod.status)))
    });
    sampler.watch(name, pid);
}

/// Waits until a pod has ended and all is told of its end.
pub(crate) fn until_ended(node: &Node, name: &str) -> Pod {
    until_within(STARVATION, &format!("{name} has ended"), || {
        let pod = node.pod(name).unwrap_or_default();
        let is_over = phase(&pod) == "Failed" && terminated(&pod).is_some();
        if is_over {
            Ok(pod)
        } else {
            Err(format!("{pod:?}"))
        }
    })
}

pub(crate) fn let_pass(time: Duration) {
    let end = Instant::now() + time;
    until("time passes", || match Instant::now() >= end {
        true => Ok(()),
        false => Err(String::new()),
    });
}

fn feed_hog(node: &Node, trial: Trial, rate: u32, is_polite: bool) -> (Outcome, Vec<String>) {
    let sampler = start_sampler(node);
    let begun = unix_nanos();
    let longest = if trial.setup.is_poll_only {
        10_000
    } else {
        1_000
    };
    let hold = fastrand::u32(0..longest);
    let prefill = LINE_MIB + lead_of_pods(&trial.setup) + i64::from(rate * RUN_UP);
    let mut told = words(&["--rate", &rate.to_string(), "--hold", &hold.to_string()]);
    told.extend(words(&["--prefill-to", &prefill.to_string()]));
    if is_polite {
        told.push("--polite".to_owned());
    }
    create_watched(node, &sampler, "hog", &pod("hog", "hog", &told, None));
    let hog = until_ended(node, "hog");
    let_pass(AFTERMATH);
    let recording = sampler.stop();
    let decisions = node.decisions(begun);
    let decided = decisions.iter().find(|record| {
        let mut evictions = record.decision.evictions.iter();
        evictions.any(|eviction| eviction.pod == "default/hog")
    });
    let told = Told {
        decided: decided.and_then(|record| Some(record.at?.as_nanos())),
        pressure: node.pressed_at(),
        evicted: node.evicted(),
        stalls: stalls(),
    };
    let outcome = Outcome::new(trial, &recording, &told);
    println!("{}", table::line(&outcome));
    let problems = check(&outcome, &hog);
    if outcome.oom_kills > 0 && !trial.setup.is_reserved {
        // Without a limit on all pods it was the machine that had none left.
        node.until_event("SystemOOM");
    }
    node.delete("hog");
    (outcome, problems)
}

/// By how much more is left of the node than to the pods: with reservations their line comes first.
fn lead_of_pods(setup: &Setup) -> i64 {
    if !setup.is_reserved {
        return 0;
    }
    let recording = Sampler::start().stop();
    let last = recording.samples.last().copied();
    let Sample {
        left, left_to_pods, ..
    } = last.unwrap_or_default();
    (left - left_to_pods).max(0) / 1024
}

fn stalls() -> Vec<(i64, Duration)> {
    let text = fs::read_to_string(note("keeper")).unwrap_or_default();
    let lines = text.lines().filter_map(|line| {
        let (at, late) = line.split_once(' ')?;
        Some((at.parse().ok()?, Duration::from_nanos(late.parse().ok()?)))
    });
    lines.collect()
}

fn terminated(pod: &Pod) -> Option<&ContainerStateTerminated> {
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
    statuses.first()?.state.as_ref()?.terminated.as_ref()
}

/// What is not as it should be, whatever the machine.
fn check(outcome: &Outcome, hog: &Pod) -> Vec<String> {
    let mut problems = Vec::new();
    let mut expect = |is_so: bool, what: String| {
        if !is_so {
            problems.push(what);
        }
    };
    let reason = hog.status.as_ref().and_then(|status| status.reason.clone());
    let end = terminated(hog).cloned().unwrap_or_default();
    expect(
        outcome.bystanders_killed == 0,
        "a bystander was killed".to_owned(),
    );
    if outcome.oom_kills > 0 {
        let says = (reason.as_deref(), end.reason.as_deref());
        let is_true = says == (None, Some("OOMKilled"));
        expect(
            is_true,
            format!("the kernel killed it, but it says {says:?}"),
        );
    } else {
        let evicted = &outcome.evicted;
        expect(evicted == &["hog"], format!("evicted: {evicted:?}"));
        expect(
            reason.as_deref() == Some("Evicted"),
            format!("its reason is {reason:?}"),
        );
        expect(
            is_disrupted(hog),
            "no condition DisruptionTarget".to_owned(),
        );
        let ended = (end.exit_code, restarts(hog));
        expect(
            ended == (137, 0),
            format!("(exit code, restarts) is {ended:?}"),
        );
    }
    if !outcome.trial.setup.is_poll_only {
        expect(outcome.is_clean(), "the kernel was first".to_owned());
        let lowest = outcome.lowest_mib;
        expect(
            lowest >= LINE_MIB - MARGIN_MIB,
            format!("only {lowest} MiB were left"),
        );
    }
    problems
}

fn is_disrupted(pod: &Pod) -> bool {
    let status = pod.status.clone().unwrap_or_default();
    status
        .conditions
        .unwrap_or_default()
        .iter()
        .any(|condition| {
            condition.type_ == "DisruptionTarget"
                && condition.status == "True"
                && condition.reason.as_deref() == Some("TerminationByKubelet")
        })
}

fn restarts(pod: &Pod) -> i32 {
    let status = pod.status.clone().unwrap_or_default();
    let statuses = status.container_statuses.unwrap_or_default();
    statuses.first().map_or(-1, |status| status.restart_count)
}

/// What is slower than it should be. A build without optimization, in an emulated machine, on one
/// that has other things to do, is slow by itself; so only a release build is held to it.
fn too_slow(outcomes: &[Outcome]) -> Vec<String> {
    let watched: Vec<&Outcome> = outcomes
        .iter()
        .filter(|one| !one.trial.setup.is_poll_only)
        .collect();
    let mut dead: Vec<Duration> = watched.iter().filter_map(|one| one.dead).collect();
    dead.sort();
    let median = dead.get(dead.len() / 2).copied();
    let told = watched.iter().map(|one| one.told.unwrap_or(Duration::MAX));
    let limits = [
        ("dead, median", median, DEAD_MEDIAN),
        ("dead, longest", dead.last().copied(), DEAD),
        ("told by the API, longest", told.max(), TOLD),
        (
            "stall, longest",
            watched.iter().map(|one| one.stall).max(),
            STALL,
        ),
    ];
    let mut slow = Vec::new();
    for (what, took, limit) in limits {
        let took = took.unwrap_or_default();
        println!("{what}: {took:?} (at most {limit:?})");
        if took > limit && !cfg!(debug_assertions) {
            slow.push(format!("{what}: {took:?}"));
        }
    }
    slow
}
