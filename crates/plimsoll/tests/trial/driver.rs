//! Runs the trials in the guest.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{ContainerStateTerminated, Pod};
use plimsoll_testkit::waiting::{until, until_within};
use rustix::mm::{MlockAllFlags, mlockall};

use crate::hog::{feed_hog, leave_alone};
use crate::node::{IMAGE, NOTES, Node, phase, pod};
use crate::outcome::Outcome;
use crate::page_cache;
use crate::plan::{Load, Stage, Trial, stages};
use crate::sampler::Sampler;
use crate::table;
use crate::vm::{ARCHIVE, PLIMSOLL, PROGRAM};

/// Longer than a node that starves has taken.
const STARVATION: Duration = Duration::from_secs(180);
/// How long after the line was crossed the hog is dead, in the middle and at most.
const DEAD_MEDIAN: Duration = Duration::from_millis(300);
const DEAD: Duration = Duration::from_millis(500);
/// How long after the decision the API reports the pressure.
pub(crate) const REPORTED: Duration = Duration::from_millis(200);
/// How long the node may keep the Guaranteed pod waiting.
const STALL: Duration = Duration::from_millis(50);

/// Runs all trials of a plan; fails if one of them did not end as it should.
pub(crate) fn main(plan: &str, is_strict: bool) -> ExitCode {
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
                Load::None => {
                    outcomes.push(leave_alone(&node, trial));
                    Vec::new()
                }
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
        let slow = too_slow(&outcomes);
        problems.extend(slow.into_iter().filter(|_| is_strict));
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
    // This process must run when no other does.
    fs::write("/proc/self/oom_score_adj", "-1000").unwrap();
    mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT).unwrap();
}

pub(crate) fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// The pods that must not be affected. Those kept over a restart of the agent exist already.
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

pub(crate) fn note(name: &str) -> String {
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

/// A sampler of all processes, once the page cache is as it is on a node that was just
/// started.
pub(crate) fn start_sampler(node: &Node) -> Sampler {
    node.until_calm();
    fs::write("/proc/sys/vm/drop_caches", "3").unwrap();
    let sampler = Sampler::start(processes("keeper").first().copied());
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

/// Waits until a pod has ended and its end is reported.
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

pub(crate) fn terminated(pod: &Pod) -> Option<&ContainerStateTerminated> {
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
    statuses.first()?.state.as_ref()?.terminated.as_ref()
}

pub(crate) fn let_pass(time: Duration) {
    let end = Instant::now() + time;
    until("time passes", || match Instant::now() >= end {
        true => Ok(()),
        false => Err(String::new()),
    });
}

/// What is slower than it should be.
fn too_slow(outcomes: &[Outcome]) -> Vec<String> {
    let watched: Vec<&Outcome> = outcomes
        .iter()
        .filter(|one| one.trial.is_measured())
        .collect();
    let mut dead: Vec<Duration> = watched.iter().filter_map(|one| one.dead).collect();
    dead.sort();
    let median = dead.get(dead.len() / 2).copied();
    let reported = watched
        .iter()
        .map(|one| one.reported.unwrap_or(Duration::MAX));
    let limits = [
        ("dead, median", median, DEAD_MEDIAN),
        ("dead, longest", dead.last().copied(), DEAD),
        ("reported by the API, longest", reported.max(), REPORTED),
        (
            "stall, longest",
            watched.iter().map(|one| one.stall.by_node()).max(),
            STALL,
        ),
    ];
    let mut slow = Vec::new();
    for (what, took, limit) in limits {
        let took = took.unwrap_or_default();
        println!("{what}: {took:?} (at most {limit:?})");
        if took > limit {
            slow.push(format!("{what}: {took:?}"));
        }
    }
    slow
}
