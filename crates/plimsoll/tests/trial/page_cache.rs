//! A pod that reads a large file repeatedly: its page cache is reclaimable.

use std::fs::File;
use std::time::Duration;

use plimsoll_core::eviction::record::Record;
use plimsoll_testkit::waiting::until_within;

use crate::driver::{create_watched, let_pass, start_sampler, until_ended};
use crate::node::{Node, pod};
use crate::outcome::unix_nanos;
use crate::plan::{LINE_MIB, Trial};
use crate::sampler::Sample;

const FILE: &str = "/data/large";
/// Most of what the guest has.
const SIZE: u64 = 1450 << 20;
/// How long the page cache may take to press by a kubelet's signal.
const PATIENCE: Duration = Duration::from_secs(180);
/// How long no pod may be evicted afterwards.
const CALM: Duration = Duration::from_secs(10);

/// Has the file read; returns the violations.
pub(crate) fn read_much(node: &Node, trial: &Trial) -> Vec<String> {
    // A hole takes no room on disk, and as much in the page cache as anything else.
    File::create(FILE).unwrap().set_len(SIZE).unwrap();
    let is_compatible = trial.setup.memory_signal == "workingSet";
    let sampler = start_sampler(node);
    let begun = unix_nanos();
    let words = ["--file".to_owned(), FILE.to_owned()];
    create_watched(
        node,
        &sampler,
        "reader",
        &pod("reader", "reader", &words, None),
    );
    if is_compatible {
        until_ended(node, "reader");
    } else {
        until_pressed();
        let_pass(CALM);
    }
    let recording = sampler.stop();
    let evicted = node.evicted();
    let lowest =
        |of: fn(&Sample) -> i64| recording.samples.iter().map(of).min().unwrap_or(0) / 1024;
    let (left, available) = (
        lowest(|sample| sample.left),
        lowest(|sample| sample.available),
    );
    println!(
        "{}: lowest working-set signal {left} MiB, lowest MemAvailable {available} MiB, evicted: {evicted:?}",
        trial.label()
    );
    let mut problems = Vec::new();
    if available < 2 * LINE_MIB {
        problems.push(format!("memory was really short: {available} MiB"));
    }
    if is_compatible {
        let records = node.decisions(begun);
        match records
            .iter()
            .find(|record| !record.decision.evictions.is_empty())
        {
            Some(record) => problems.extend(source_problem(record)),
            None => problems.push("no record of the eviction".to_owned()),
        }
    } else if !evicted.is_empty() {
        problems.push(format!("evicted: {evicted:?}"));
    }
    node.delete("reader");
    std::fs::remove_file(FILE).unwrap();
    problems
}

/// Waits until a kubelet would evict a pod.
fn until_pressed() {
    use crate::mem_info::{MemInfo, Reread};
    let mut memory = Reread::open("/proc/meminfo").unwrap();
    until_within(PATIENCE, "the page cache is active", || {
        let memory = MemInfo::parse(memory.read());
        match memory.left() / 1024 < LINE_MIB {
            true => Ok(()),
            false => Err(format!("{memory:?}")),
        }
    });
}

/// The record must name the signal that the pod was evicted for, and that the kernel saw no shortage.
fn source_problem(record: &Record) -> Option<String> {
    let sources = &record.decision.memory_sources;
    for source in sources {
        println!(
            "  by {}: {} MiB left{}",
            source.source,
            source.available >> 20,
            if source.is_used { ", which counts" } else { "" }
        );
    }
    let has_source = |name: &str, is_used: bool, is_short: bool| {
        sources.iter().any(|source| {
            source.source == name
                && source.is_used == is_used
                && (source.available >> 20 < LINE_MIB) == is_short
                && source.would_meet.is_empty() != is_short
        })
    };
    let is_named = has_source("workingSet", true, true) && has_source("memAvailable", false, false);
    (!is_named).then(|| format!("the record does not name the source: {sources:?}"))
}
