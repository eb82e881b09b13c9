//! A trial with a hog, and its expected outcome.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use plimsoll_core::quantity::Quantity;

use crate::driver::{
    REPORTED, create_watched, let_pass, note, start_sampler, terminated, until_ended, words,
};
use crate::node::{NAME, Node, pod};
use crate::outcome::{Outcome, Reported, unix_nanos};
use crate::plan::{LINE_MIB, Setup, Trial};
use crate::sampler::{Sample, Sampler};
use crate::table;

/// How long no other pod may be evicted.
const AFTERMATH: Duration = Duration::from_secs(3);
/// The length of the trial without load, for comparison.
const CALM: Duration = Duration::from_secs(20);
/// How far a hog is from the line when it begins to grow.
const RUN_UP: u32 = 2;
/// How much lower than the line the signal may be.
const MARGIN_MIB: i64 = 60;

/// Has a hog take memory until it is dead; returns the outcome and the violations.
pub(crate) fn feed_hog(
    node: &Node,
    trial: Trial,
    rate: u32,
    is_polite: bool,
) -> (Outcome, Vec<String>) {
    let sampler = start_sampler(node);
    let begun = unix_nanos();
    let longest = if trial.setup.is_poll_only {
        10_000
    } else {
        1_000
    };
    let hold = fastrand::u32(0..longest);
    let prefill = LINE_MIB + lead_of_pods(&trial.setup) + i64::from(rate * RUN_UP);
    let mut arguments = words(&["--rate", &rate.to_string(), "--hold", &hold.to_string()]);
    arguments.extend(words(&["--prefill-to", &prefill.to_string()]));
    if is_polite {
        arguments.push("--polite".to_owned());
    }
    create_watched(node, &sampler, "hog", &pod("hog", "hog", &arguments, None));
    let hog = until_ended(node, "hog");
    let_pass(AFTERMATH);
    // Before records are read, which takes cpu and is not part of the trial.
    let stalls = stalls();
    let recording = sampler.stop();
    let decisions = node.decisions(begun);
    let decided = decisions.iter().find(|record| {
        let mut evictions = record.decision.evictions.iter();
        evictions.any(|eviction| eviction.pod == "default/hog")
    });
    let reported = Reported {
        decided: decided.and_then(|record| Some(record.at?.as_nanos())),
        pressure: node.pressed_at(),
        evicted: node.evicted(),
        stalls,
    };
    let outcome = Outcome::new(trial, &recording, &reported);
    println!("{}", table::line(&outcome));
    if outcome.reported.is_some_and(|reported| reported > REPORTED) {
        // Shows whether the agent was late, or the watcher of the API.
        println!("{}", node.log_of_status());
    }
    let mut problems = check(&outcome, &hog);
    if outcome.oom_kills > 0 && !trial.setup.is_reserved {
        // Without a limit on all pods it was the machine that had none left.
        node.until_event("SystemOOM", NAME);
    }
    if outcome.is_clean() {
        let uid = hog.metadata.uid.unwrap_or_default();
        problems.extend(is_not_blamed(&node.until_event("Evicted", &uid)));
    }
    node.delete("hog");
    (outcome, problems)
}

/// Runs without load, for as long as a hog takes.
pub(crate) fn leave_alone(node: &Node, trial: Trial) -> Outcome {
    let sampler = start_sampler(node);
    let_pass(CALM);
    let reported = Reported {
        stalls: stalls(),
        ..Reported::default()
    };
    let outcome = Outcome::new(trial, &sampler.stop(), &reported);
    println!("{}", table::line(&outcome));
    outcome
}

/// By how much more is left of the node than to the pods: with reservations their line comes first.
fn lead_of_pods(setup: &Setup) -> i64 {
    if !setup.is_reserved {
        return 0;
    }
    let recording = Sampler::start(None).stop();
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

/// Violations that do not depend on the machine.
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

/// The event must name the pod and the resource.
fn is_not_blamed(annotations: &BTreeMap<String, String>) -> Option<String> {
    let says = |name: &str| annotations.get(name).map(String::as_str);
    let usage = says("offending_containers_usage").and_then(|usage| usage.parse::<Quantity>().ok());
    let is_blamed = says("offending_containers") == Some("main")
        && usage.is_some_and(|usage| usage.value() > 0)
        && says("starved_resource") == Some("memory");
    (!is_blamed).then(|| format!("annotations of the event: {annotations:?}"))
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
