//! One row per node, the node closest to a threshold first.

use std::cmp::Ordering;

use crate::text::{Colour, Palette, Table, Terminal};

use super::bar;
use super::render::{Urgency, ink, paint, reached, short_name, urgency};
use super::report::{NodeLine, Proximity, Report, ResourceLine};

/// The minimum width of a screen that has room for a bar of the memory of each node.
const WIDTH_WITH_BARS: usize = 110;
/// The maximum width of that bar.
const LONGEST_BAR: usize = 40;
/// The width of the other columns.
const OTHER_COLUMNS: usize = 90;
/// Longer names of nodes are truncated, and shorter ones too on narrow screens.
const LONGEST_NAME: usize = 32;
const SHORTEST_CUT: usize = 12;
/// The minimum width of a screen that has room for process ids.
const WIDTH_WITH_PIDS: usize = 100;

/// Whether the memory of each node is drawn.
pub(super) fn has_bars(terminal: Terminal) -> bool {
    terminal.width >= WIDTH_WITH_BARS
}

/// A heading and one row per node.
pub(super) fn render(report: &Report, terminal: Terminal) -> Vec<String> {
    let mut nodes: Vec<&NodeLine> = report.items.iter().collect();
    nodes.sort_by(|a, b| compare(a, b).then_with(|| a.node.cmp(&b.node)));
    let plain = Terminal {
        colour: Colour::Off,
        ..terminal
    };
    let lines = table(&nodes, LONGEST_NAME, plain);
    let widest = lines.iter().map(|line| line.chars().count()).max();
    let beyond = widest.unwrap_or(0).saturating_sub(terminal.width);
    let names = nodes.iter().map(|node| node.node.chars().count());
    let longest = names.max().unwrap_or(0).min(LONGEST_NAME);
    let longest = longest.saturating_sub(beyond).max(SHORTEST_CUT);
    let mut lines = table(&nodes, longest, terminal);
    if let Some(heading) = lines.first_mut() {
        *heading = Palette(terminal.colour).heading(heading);
    }
    lines
}

fn table(nodes: &[&NodeLine], longest_name: usize, terminal: Terminal) -> Vec<String> {
    let bars = has_bars(terminal).then(|| {
        let room = terminal.width.saturating_sub(OTHER_COLUMNS);
        room.clamp(10, LONGEST_BAR)
    });
    let has_pids = terminal.width >= WIDTH_WITH_PIDS;
    let mut heading = vec!["NODE", "STATUS", "PODS", "CPU", "MEMORY"];
    heading.extend(bars.map(|_| ""));
    heading.push("STORAGE");
    heading.extend(has_pids.then_some("PIDS"));
    heading.push("NEXT THRESHOLD");
    let mut table = Table::new(heading);
    for node in nodes {
        let in_use = |name: &str| {
            let line = node.resources.iter().find(|line| line.resource == name);
            let percent = line.and_then(percent_in_use);
            percent.map_or_else(|| "?".to_owned(), |percent| format!("{percent}%"))
        };
        let mut cells = vec![
            shortened(&node.node, longest_name),
            node.status.clone(),
            node.pods.to_string(),
            in_use("cpu"),
            in_use("memory"),
        ];
        if let Some(width) = bars {
            let mut lines = node.resources.iter();
            let memory = lines.find(|line| line.resource == "memory");
            let bar = memory.and_then(|line| bar::draw(line, width, ink(terminal)));
            cells.push(bar.map_or_else(String::new, |bar| bar.used + &bar.rest));
        }
        cells.push(in_use("ephemeral-storage"));
        cells.extend(has_pids.then(|| in_use("pids")));
        cells.push(next(node, terminal));
        table.row(cells);
    }
    table.lines()
}

/// The node that reaches a threshold first comes first. A node without figures may be at any
/// distance from a threshold: it comes before nodes that approach none.
fn compare(a: &NodeLine, b: &NodeLine) -> Ordering {
    let nearest = |node: &NodeLine| node.nearest().map(|(_, line)| line.proximity());
    let is_calm = |proximity: Proximity| matches!(proximity, Proximity::Away(_));
    match (nearest(a), nearest(b)) {
        (Some(a), Some(b)) => a.compare(b),
        (Some(known), None) if is_calm(known) => Ordering::Greater,
        (None, Some(known)) if is_calm(known) => Ordering::Less,
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => Ordering::Equal,
    }
}

fn percent_in_use(line: &ResourceLine) -> Option<i128> {
    let capacity = line.capacity.filter(|capacity| *capacity > 0)?;
    Some(i128::from(line.in_use?) * 100 / i128::from(capacity))
}

/// The threshold that the node reaches first, or why it is unknown.
fn next(node: &NodeLine, terminal: Terminal) -> String {
    let Some((resource, threshold)) = node.nearest() else {
        let is_measured = node.resources.iter().any(|line| line.in_use.is_some());
        let text = match is_measured {
            true => "no threshold is known",
            false => "not known: no figures",
        };
        return text.to_owned();
    };
    let distance = threshold.unit.about(threshold.distance.saturating_abs());
    let name = match threshold.signal.as_str() {
        signal if signal == resource.main_signal() => short_name(resource.resource),
        "allocatableMemory.available" => "memory of pods",
        signal => signal,
    };
    let soft = if threshold.is_hard { "" } else { " (soft)" };
    let text = match threshold.proximity() {
        Proximity::Met(_) => format!("{name}{soft} crossed by {distance}"),
        Proximity::Reached(_) => format!("{name}{soft} {}, {distance} away", reached(threshold)),
        Proximity::Away(_) => format!("{name}{soft} {distance} away"),
    };
    match urgency(threshold) {
        Urgency::Calm => text,
        urgency => paint(Palette(terminal.colour), urgency, &text),
    }
}

fn shortened(name: &str, longest: usize) -> String {
    if name.chars().count() <= longest {
        return name.to_owned();
    }
    let kept: String = name.chars().take(longest.saturating_sub(3)).collect();
    kept + "..."
}
