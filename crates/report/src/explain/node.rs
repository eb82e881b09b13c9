//! The state of a node: its thresholds, its conditions, the pods that it would evict first, and its
//! decisions.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Node;
use plimsoll_core::eviction::Settings;
use plimsoll_core::eviction::record::Record;
use plimsoll_core::eviction::record::ranking::{RankingRecord, Standing};
use plimsoll_core::object::pod::PodView;
use plimsoll_core::object::taint::{Effect, Taint};
use plimsoll_core::threshold::Signal;

use crate::loadline::{NodeLine, compute};
use crate::reading::{Reading, holds_resources, layout};
use crate::text::Unit;

use super::events::whole_seconds;
use super::evicted::{held_outside_pods, row};
use super::report::{API_VERSION, ConditionRow, DecisionRow, NextRow, NodeReport, TaintRow};

/// Everything that was read of a node.
#[derive(Clone, Debug)]
pub struct FoundNode {
    pub reading: Reading,
    /// The order in which its agent would evict pods, by signal; empty if not served.
    pub rankings: Vec<RankingRecord>,
    /// Its latest decisions, or why they are unknown.
    pub records: Result<Vec<Record>, String>,
}

/// The whole explanation.
pub fn explain_node(found: &FoundNode) -> NodeReport {
    let reading = &found.reading;
    let mut unknown = Vec::new();
    let decisions = found.records.clone().unwrap_or_else(|reason| {
        unknown.push(format!(
            "its decisions: only Plimsoll's agent keeps records ({reason})"
        ));
        Vec::new()
    });
    let line = compute(reading);
    let next = next(found);
    NodeReport {
        api_version: API_VERSION,
        kind: "NodeExplanation",
        conditions: conditions(&reading.node),
        taints: taints(&reading.node),
        next,
        decisions: decisions.iter().rev().map(decision).collect(),
        line,
        unknown,
    }
}

fn conditions(node: &Node) -> Vec<ConditionRow> {
    let status = node.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_ref());
    let conditions = conditions.into_iter().flatten();
    conditions
        .map(|condition| ConditionRow {
            condition: condition.type_.clone(),
            status: condition.status.clone(),
            since: condition
                .last_transition_time
                .as_ref()
                .map(|time| time.0.to_string()),
            reason: condition.reason.clone().unwrap_or_default(),
            message: condition.message.clone().unwrap_or_default(),
        })
        .collect()
}

fn taints(node: &Node) -> Vec<TaintRow> {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    let taints = taints.into_iter().flatten().map(Taint::from_api);
    taints
        .map(|taint| TaintRow {
            meaning: meaning(&taint),
            taint: taint.to_string(),
        })
        .collect()
}

fn meaning(taint: &Taint) -> String {
    let effect = match taint.effect {
        Effect::NoSchedule => "no new pods that do not tolerate it",
        Effect::PreferNoSchedule => "new pods go elsewhere if they can",
        Effect::NoExecute => "pods that do not tolerate it are evicted",
        Effect::Other(_) => "not known",
    };
    let cause = match taint.key.as_str() {
        "node.kubernetes.io/memory-pressure" => "memory ran short: ",
        "node.kubernetes.io/disk-pressure" => "disk space or inodes ran short: ",
        "node.kubernetes.io/pid-pressure" => "process ids ran short: ",
        "node.kubernetes.io/not-ready" => "the node is not ready: ",
        "node.kubernetes.io/unreachable" => "the node is unreachable: ",
        "node.kubernetes.io/unschedulable" => "the node is cordoned: ",
        _ => "",
    };
    format!("{cause}{effect}")
}

/// The signals whose ranking is shown: memory, and signals whose threshold is met.
pub fn signals_at_risk(line: &NodeLine) -> BTreeSet<Signal> {
    let thresholds = line.resources.iter().flat_map(|line| &line.thresholds);
    let met = thresholds
        .filter(|line| line.is_met())
        .filter_map(|line| Signal::from_name(&line.signal));
    met.chain([Signal::MemoryAvailable]).collect()
}

/// The order of eviction by signal: as the agent serves it, or else computed from the node's
/// configuration and statistics.
fn next(found: &FoundNode) -> Vec<NextRow> {
    let own = found.rankings.iter().map(|ranking| (ranking.clone(), true));
    let mut rankings: Vec<(RankingRecord, bool)> = own.collect();
    if rankings.is_empty() {
        let signals = signals_at_risk(&compute(&found.reading)).into_iter();
        let computed = signals.filter_map(|signal| compute_ranking(&found.reading, signal));
        rankings.extend(computed.map(|ranking| (ranking, false)));
    }
    let rows = rankings.iter().map(|(ranking, is_agents)| {
        let signal = Signal::from_name(&ranking.signal);
        let places = ranking.items.iter().enumerate();
        NextRow {
            signal: ranking.signal.clone(),
            is_agents: *is_agents,
            ranking: places
                .map(|(place, item)| row(place, &item.rank, item.request.clone(), signal))
                .collect(),
        }
    });
    rows.filter(|row| !row.ranking.is_empty()).collect()
}

fn compute_ranking(reading: &Reading, signal: Signal) -> Option<RankingRecord> {
    let sample = reading.samples.last()?;
    let config = reading.config.as_ref().ok()?;
    let settings = Settings::new(config, layout(sample)).ok()?;
    let held = reading.pods.iter().filter(|pod| holds_resources(pod));
    let views = held.filter_map(|pod| PodView::from_api(pod).ok());
    let mut usages = sample.usages();
    let standings = views.map(|pod| {
        let usage = usages.remove(&pod.uid);
        Standing::reported(&pod, config.profile, usage)
    });
    let standings: Vec<Standing> = standings.collect();
    Some(RankingRecord::of(&settings, signal, &standings))
}

/// A decision in one line.
fn decision(record: &Record) -> DecisionRow {
    let decision = &record.decision;
    let evictions = decision.evictions.iter();
    let evicted: Vec<String> = evictions.map(|eviction| eviction.pod.clone()).collect();
    let signal = decision.starved.as_deref().and_then(Signal::from_name);
    let line = signal.and_then(|signal| {
        let mut lines = decision.lines.iter();
        let due = lines.find(|line| line.signal == signal.as_str() && line.is_due)?;
        let unit = Unit::of(signal);
        let (available, at) = (unit.about(due.available), unit.about(due.line));
        Some(format!("{available} left, threshold {at}"))
    });
    let local = decision.evictions.first().map(|eviction| {
        let text = eviction.message.trim();
        text.to_owned()
    });
    DecisionRow {
        at: record.at.map(whole_seconds),
        verdict: words(&decision.verdict).to_owned(),
        starved: decision.starved.clone(),
        evicted,
        what: line.or(local).unwrap_or_default(),
        held_outside_pods: held_outside_pods(record),
        consumers: record.consumers.clone().unwrap_or_default(),
    }
}

fn words(verdict: &str) -> &str {
    match verdict {
        "evicting" => "evicted",
        "localLimits" => "evicted for limits of their own",
        "relieved" => "reclaimed enough without evicting a pod",
        "noPodToEvict" => "found no pod that may be evicted",
        "backingOff" => "evicted no pod",
        "waitingForVictims" => "killed pods before their grace period was over",
        "reclaiming" => "began to reclaim",
        other => other,
    }
}
