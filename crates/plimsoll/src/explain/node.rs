//! How a node stands: its lines, what it tells, whom it would evict, and what it has decided.

use k8s_openapi::api::core::v1::Node;
use plimsoll_core::config::Profile;
use plimsoll_core::eviction::record::Record;
use plimsoll_core::eviction::record::decision::RankRecord;
use plimsoll_core::eviction::summary::Summary;
use plimsoll_core::eviction::usage::PodUsage;
use plimsoll_core::eviction::{ActivePod, Candidate, Engine, Settings};
use plimsoll_core::object::pod::PodView;
use plimsoll_core::object::taint::{Effect, Taint};
use plimsoll_core::threshold::{Signal, StarvedResource};

use crate::loadline::compute::{Reading, compute, holds_resources, layout};
use crate::loadline::report::NodeLine;

use super::events::whole_seconds;
use super::evicted::{held_outside_pods, row, unit_of};
use super::report::{
    API_VERSION, ConditionRow, DecisionRow, NextRow, NodeReport, RankRow, TaintRow,
};

/// The whole explanation.
pub(crate) fn explain_node(reading: &Reading, records: Result<Vec<Record>, String>) -> NodeReport {
    let mut unknown = Vec::new();
    let decisions = records.unwrap_or_else(|reason| {
        unknown.push(format!(
            "what it has decided: only Plimsoll's agent keeps records ({reason})"
        ));
        Vec::new()
    });
    let line = compute(reading);
    let next = next(reading, &line);
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
        Effect::PreferNoSchedule => "new pods rather elsewhere",
        Effect::NoExecute => "pods that do not tolerate it have to leave",
        Effect::Other(_) => "not known",
    };
    let cause = match taint.key.as_str() {
        "node.kubernetes.io/memory-pressure" => "memory ran short: ",
        "node.kubernetes.io/disk-pressure" => "disk space or inodes ran short: ",
        "node.kubernetes.io/pid-pressure" => "process ids ran short: ",
        "node.kubernetes.io/not-ready" => "the node is not ready: ",
        "node.kubernetes.io/unreachable" => "the node is not heard of: ",
        "node.kubernetes.io/unschedulable" => "the node is cordoned: ",
        _ => "",
    };
    format!("{cause}{effect}")
}

/// Who would go first: for want of memory, and of whatever else is short.
fn next(reading: &Reading, line: &NodeLine) -> Vec<NextRow> {
    let Some(sample) = reading.samples.last() else {
        return Vec::new();
    };
    let thresholds = line.resources.iter().flat_map(|line| &line.thresholds);
    let met = thresholds
        .clone()
        .filter(|line| line.is_met())
        .filter_map(|line| Signal::from_name(&line.signal));
    let mut signals = vec![Signal::MemoryAvailable];
    signals.extend(met);
    signals.sort();
    signals.dedup();
    let rows = signals.into_iter().map(|signal| NextRow {
        signal: signal.to_string(),
        ranking: ranking(reading, sample, signal),
    });
    rows.filter(|row| !row.ranking.is_empty()).collect()
}

fn ranking(reading: &Reading, sample: &Summary, signal: Signal) -> Vec<RankRow> {
    let config = reading.config.as_ref().ok();
    let profile = config.map_or(Profile::default(), |config| config.profile);
    let held = reading.pods.iter().filter(|pod| holds_resources(pod));
    let views = held.filter_map(|pod| PodView::from_api(pod).ok());
    let candidates: Vec<Candidate> = views.map(|pod| Candidate::new(&pod, profile)).collect();
    let usages = sample.usages();
    let active: Vec<ActivePod<'_>> = candidates
        .iter()
        .map(|candidate| {
            let usage: Option<&PodUsage> = usages.get(&candidate.uid);
            ActivePod { candidate, usage }
        })
        .collect();
    let settings = config.and_then(|config| Settings::new(config, layout(sample)).ok());
    let Some(settings) = settings else {
        return Vec::new();
    };
    let ranked = Engine::new(settings).ranking(signal, &active);
    ranked
        .iter()
        .enumerate()
        .map(|(place, ranked)| {
            let requests = &ranked.pod.candidate.requests;
            let request = match signal.resource() {
                StarvedResource::Memory => Some(requests.memory.to_string()),
                StarvedResource::EphemeralStorage => Some(requests.storage.to_string()),
                StarvedResource::Inodes | StarvedResource::Pids => None,
            };
            row(place, &RankRecord::of(ranked), request, Some(signal))
        })
        .collect()
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
        let unit = unit_of(signal);
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
        "relieved" => "freed enough without a pod",
        "nobodyToEvict" => "found nobody that may be evicted",
        "backingOff" => "left pods alone",
        "waitingForVictims" => "killed pods before their grace period was over",
        "reclaiming" => "began to free what it can",
        other => other,
    }
}
