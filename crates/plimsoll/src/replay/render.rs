//! Replayed decisions as text.

use plimsoll_core::eviction::record::decision::EvictionRecord;
use plimsoll_core::threshold::Signal;
use serde_json::Value;

use plimsoll_report::text::{Table, Unit};

use super::report::{Changed, Input, Replayed, Report};

/// How much of a value is shown; `-o json` shows all.
const VALUE_WIDTH: usize = 100;

pub(super) fn render(report: &Report) -> String {
    let mut lines = Vec::new();
    for one in &report.items {
        lines.extend(decision(one));
        lines.push(String::new());
    }
    let count = report.items.len();
    let differing = report.items.iter().filter(|one| !one.is_same).count();
    lines.push(match (count, differing) {
        (0, _) => "No decisions.".to_owned(),
        (1, 0) => "1 decision replayed: the same.".to_owned(),
        (1, _) => "1 decision replayed: not the same.".to_owned(),
        (count, 0) => format!("{count} decisions replayed: all the same."),
        (count, differing) => format!("{count} decisions replayed: {differing} not the same."),
    });
    lines.join("\n") + "\n"
}

fn decision(replayed: &Replayed) -> Vec<String> {
    let at = replayed.at.as_deref().unwrap_or("at an unknown time");
    let mut lines = vec![format!("DECISION {at}"), "INPUT".to_owned()];
    lines.extend(input(&replayed.input).into_iter().map(indented));
    lines.push("DECIDED".to_owned());
    let decision = &replayed.decision;
    let starved = decision.starved.as_ref();
    let starved = starved.map_or_else(String::new, |starved| format!(" ({starved})"));
    lines.push(indented(format!("{}{starved}", decision.verdict)));
    lines.extend(
        decision
            .reclaims
            .iter()
            .map(|one| indented(format!("run {one}"))),
    );
    lines.extend(decision.evictions.iter().map(eviction).map(indented));
    let kills = decision.kills.iter();
    lines.extend(kills.map(|uid| indented(format!("kill {uid} before its grace period is over"))));
    lines.push("REPLAYED".to_owned());
    match &replayed.error {
        Some(error) => lines.push(indented(format!("failed: {error}"))),
        None if replayed.is_same => lines.push(indented("the same".to_owned())),
        None => lines.extend(replayed.differences.iter().flat_map(difference)),
    }
    lines
}

fn input(input: &Input) -> Vec<String> {
    let mut table = Table::new(["SIGNAL", "AVAILABLE", "THRESHOLD", "MET", "DUE"]);
    let yes = |is_so: bool| if is_so { "yes" } else { "no" }.to_owned();
    for line in &input.thresholds {
        let unit = Signal::from_name(&line.signal).map_or(Unit::Count, Unit::of);
        let (available, at) = (unit.about(line.available), unit.about(line.line));
        let (is_met, is_due) = (yes(line.is_observed), yes(line.is_due));
        table.row([line.signal.clone(), available, at, is_met, is_due]);
    }
    let mut lines = table.lines();
    let Input {
        profile,
        memory_source,
        pods,
        ..
    } = input;
    lines.push(format!(
        "pods {pods}, profile {profile}, memory by {memory_source}"
    ));
    if input.is_oom_killed {
        lines.push("the kernel OOM-killed a container just before".to_owned());
    }
    if input.is_reclaimed {
        lines.push("observed again after reclaim".to_owned());
    }
    let outcomes = input.outcomes.iter();
    lines.extend(outcomes.map(|one| format!("outcome {}: {}", one.uid, one.outcome)));
    lines
}

fn eviction(eviction: &EvictionRecord) -> String {
    let how = match eviction.is_immediate {
        true => "immediately".to_owned(),
        false => format!("grace period {} s", eviction.grace_period_seconds),
    };
    format!(
        "evict {} ({}), {how}: {}",
        eviction.pod,
        eviction.uid,
        eviction.message.trim()
    )
}

fn difference(changed: &Changed) -> [String; 2] {
    let shown = |value: &Value| {
        let text = value.to_string();
        match text.char_indices().nth(VALUE_WIDTH) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text,
        }
    };
    [
        indented(format!(
            "{} was {}",
            changed.field,
            shown(&changed.recorded)
        )),
        indented(format!(
            "{} is now {}",
            changed.field,
            shown(&changed.replayed)
        )),
    ]
}

fn indented(text: String) -> String {
    format!("  {text}")
}
