//! Load lines as text.

use crate::text::{Colour, Palette, Table, Terminal, Unit, join_wrapped, span, wrap};

use super::bar::{self, Bar, Ink, MARKS};
use super::overview;
use super::report::{NodeLine, Report, Reserved, ResourceLine, ThresholdLine};

/// The width of names of resources.
const MARGIN: usize = 10;
/// Lines longer than this are not easier to read.
const LONGEST_BAR: usize = 120;
/// What separates figures on a line.
const GAP: &str = "   ";
/// A threshold that is reached sooner is highlighted.
const SOON_SECONDS: f64 = 600.0;

/// The level of detail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// One row per node.
    Overview,
    /// One line per resource, with the thresholds that are reached first.
    Brief,
    /// Every threshold with its rate.
    Wide,
}

/// All nodes, and the legend.
pub fn render(report: &Report, detail: Detail, terminal: Terminal) -> String {
    let mut lines = body(report, detail, terminal);
    let legend = legend(report, detail, terminal);
    if !legend.is_empty() {
        lines.push(String::new());
        lines.extend(legend);
    }
    lines.join("\n") + "\n"
}

/// All nodes in as many lines as the screen has. Nodes at the end that do not fit are left out, and
/// the last line shows how many.
pub fn render_to_fit(
    report: &Report,
    detail: Detail,
    terminal: Terminal,
    height: usize,
) -> Vec<String> {
    let mut lines = body(report, detail, terminal);
    let legend = legend(report, detail, terminal);
    if !legend.is_empty() && lines.len() + 1 + legend.len() <= height {
        lines.push(String::new());
        lines.extend(legend);
    }
    if lines.len() > height {
        let beyond = lines.len() - height.saturating_sub(1);
        let what = match detail {
            Detail::Overview => "nodes",
            Detail::Brief | Detail::Wide => "lines",
        };
        lines.truncate(height.saturating_sub(1));
        lines.push(Palette(terminal.colour).faint(&format!("and {beyond} more {what}")));
    }
    lines
}

fn body(report: &Report, detail: Detail, terminal: Terminal) -> Vec<String> {
    if report.items.is_empty() {
        return vec!["No resources found".to_owned()];
    }
    if detail == Detail::Overview {
        return overview::render(report, terminal);
    }
    let nodes = report.items.iter();
    let parts: Vec<Vec<String>> = nodes
        .map(|node| render_node(node, detail, terminal))
        .collect();
    parts.join(&String::new())
}

/// One node.
pub fn render_node(node: &NodeLine, detail: Detail, terminal: Terminal) -> Vec<String> {
    let page = Page { terminal };
    let mut lines = vec![page.title(node)];
    for resource in &node.resources {
        lines.extend(page.resource(resource));
    }
    for unknown in &node.unknown {
        let text = format!("not known: {unknown}");
        let wrapped = wrap(&text, terminal.width).into_iter();
        lines.extend(wrapped.map(|line| page.palette().faint(&line)));
    }
    if detail == Detail::Wide {
        lines.extend(page.thresholds(node));
    }
    lines
}

fn legend(report: &Report, detail: Detail, terminal: Terminal) -> Vec<String> {
    let is_drawn = detail != Detail::Overview || overview::has_bars(terminal);
    if !is_drawn || report.items.is_empty() {
        return Vec::new();
    }
    let ink = ink(terminal);
    let mut inks = vec![
        (ink.used, "in use"),
        (ink.free, "free"),
        (ink.reserved, "kept from pods"),
    ];
    let mut drawn = report.items.iter().flat_map(|node| &node.resources);
    if drawn.any(|line| line.in_use.is_none() && line.capacity.is_some()) {
        inks.push((ink.unknown, "not known"));
    }
    let all = inks.iter().chain(&MARKS);
    let parts: Vec<String> = all.map(|(mark, text)| format!("{mark} {text}")).collect();
    let lines = join_wrapped(&parts, GAP, terminal.width).into_iter();
    let palette = Palette(terminal.colour);
    lines.map(|line| palette.faint(&line)).collect()
}

pub(super) fn ink(terminal: Terminal) -> Ink {
    match terminal.is_unicode {
        true => Ink::UNICODE,
        false => Ink::ASCII,
    }
}

struct Page {
    terminal: Terminal,
}

impl Page {
    fn palette(&self) -> Palette {
        Palette(self.terminal.colour)
    }

    fn title(&self, node: &NodeLine) -> String {
        let pods = match node.pods {
            1 => "1 pod".to_owned(),
            pods => format!("{pods} pods"),
        };
        let title = self.palette().heading(&format!("NODE {}", node.node));
        let mut parts = vec![title, node.status.clone(), pods];
        let pressure = node.pressure.iter();
        parts.extend(pressure.map(|condition| self.palette().alarming(condition)));
        parts.join(GAP)
    }

    fn resource(&self, line: &ResourceLine) -> Vec<String> {
        let room = self.terminal.width.saturating_sub(MARGIN);
        let name = short_name(line.resource);
        let bar = bar::draw(line, room.clamp(10, LONGEST_BAR), ink(self.terminal));
        let bar = bar.map_or("no figures".to_owned(), |bar| self.dressed(line, &bar));
        let mut lines = vec![format!("{name:MARGIN$}{bar}")];
        let mut texts = join_wrapped(&figures(line), GAP, room.max(30));
        let reserved = line.reserved.as_ref();
        if let Some(equation) = reserved.and_then(|reserved| equation(line, reserved)) {
            texts.extend(wrap(&equation, room.max(30)));
        }
        for threshold in line.drawn() {
            let wrapped = wrap(&sentence(line, threshold), room.max(30)).into_iter();
            texts.extend(wrapped.map(|text| self.coloured(threshold, &text)));
        }
        let texts = texts.into_iter();
        lines.extend(texts.map(|text| format!("{:MARGIN$}{text}", "")));
        lines
    }

    fn dressed(&self, line: &ResourceLine, bar: &Bar) -> String {
        let palette = self.palette();
        let worst = line
            .thresholds
            .iter()
            .map(urgency)
            .max()
            .unwrap_or(Urgency::Calm);
        format!("{}{}", paint(palette, worst, &bar.used), bar.rest)
    }

    fn coloured(&self, threshold: &ThresholdLine, text: &str) -> String {
        match urgency(threshold) {
            Urgency::Calm => text.to_owned(),
            urgency => paint(self.palette(), urgency, text),
        }
    }

    /// Every threshold, including those that are not drawn.
    fn thresholds(&self, node: &NodeLine) -> Vec<String> {
        let mut table = Table::new([
            "SIGNAL", "KIND", "LINE", "LEFT", "AWAY", "CHANGE", "REACHED",
        ]);
        let all = node.resources.iter().flat_map(|line| &line.thresholds);
        for threshold in all.clone() {
            let unit = threshold.unit;
            table.row([
                threshold.signal.clone(),
                threshold.kind().to_owned(),
                unit.about(threshold.line),
                unit.about(threshold.available),
                unit.about(threshold.distance),
                threshold
                    .change_per_second
                    .map_or("-".to_owned(), |change| rate(unit, change)),
                reached(threshold),
            ]);
        }
        if all.count() == 0 {
            return Vec::new();
        }
        let mut lines = table.lines();
        if let Some(heading) = lines.first_mut() {
            *heading = self.palette().heading(heading);
        }
        lines.insert(0, String::new());
        lines
    }
}

pub(super) fn short_name(resource: &str) -> &str {
    match resource {
        "ephemeral-storage" => "storage",
        other => other,
    }
}

/// In use, requested, limits.
fn figures(line: &ResourceLine) -> Vec<String> {
    let amount = |value: i64| line.unit.about(value);
    let mut parts = Vec::new();
    if let Some(capacity) = line.capacity {
        parts.push(match line.in_use {
            Some(in_use) => format!(
                "{} of {} in use{}",
                amount(in_use),
                amount(capacity),
                share(in_use, capacity)
            ),
            None => format!("capacity {}", amount(capacity)),
        });
    }
    if (line.requested, line.limits) == (Some(0), Some(0)) {
        parts.push("nothing requested, no limits".to_owned());
        return parts;
    }
    let base = line.allocatable.or(line.capacity).unwrap_or(0);
    if let Some(requested) = line.requested {
        let share = share(requested, base);
        parts.push(format!("requested {}{share}", amount(requested)));
    }
    if let Some(limits) = line.limits {
        let share = share(limits, base);
        let mut part = match limits {
            0 => "limits none".to_owned(),
            limits => format!("limits {}{share}", amount(limits)),
        };
        if let Some(pods @ 1..) = line.pods_without_limit {
            let noun = if pods == 1 { "pod" } else { "pods" };
            part = format!("{part}, {pods} {noun} without");
        }
        parts.push(part);
    }
    parts
}

/// How allocatable is computed, if anything is reserved.
fn equation(line: &ResourceLine, reserved: &Reserved) -> Option<String> {
    let amount = |value: i64| line.unit.about(value);
    let (capacity, allocatable) = (line.capacity?, line.allocatable?);
    let terms = [
        ("kube", reserved.kube),
        ("system", reserved.system),
        ("hard eviction", reserved.hard_eviction),
        ("other", reserved.other),
    ];
    // The remainder of rounding a percentage is not shown.
    let is_worth_it = |value: i64| value.saturating_abs() > capacity / 10_000;
    let kept: Vec<String> = terms
        .iter()
        .filter(|(_, value)| is_worth_it(*value))
        .map(|(name, value)| format!("{name} {}", amount(*value)))
        .collect();
    let terms = kept.join(" - ");
    let sum = format!("allocatable {} = {}", amount(allocatable), amount(capacity));
    (!kept.is_empty()).then(|| format!("{sum} - {terms}"))
}

/// ` (31%)`.
fn share(part: i64, whole: i64) -> String {
    if whole <= 0 {
        return String::new();
    }
    let percent = i128::from(part) * 100 / i128::from(whole);
    format!(" ({percent}%)")
}

/// The value of a threshold, its distance, and when it is reached.
fn sentence(resource: &ResourceLine, threshold: &ThresholdLine) -> String {
    let unit = threshold.unit;
    let (kind, line) = (threshold.kind(), unit.about(threshold.line));
    let signal = match threshold.signal.as_str() {
        signal if signal == resource.main_signal() => String::new(),
        signal => format!(" ({signal})"),
    };
    let distance = unit.about(threshold.distance.saturating_abs());
    let grace = match &threshold.grace_period {
        Some(grace) => format!(", grace {grace}"),
        None => String::new(),
    };
    if threshold.is_met() {
        return format!("{kind} threshold at {line} left{signal}: crossed by {distance}{grace}");
    }
    let when = match (threshold.change_per_second, threshold.reached_in_seconds) {
        (None, _) => String::new(),
        (Some(_), None) => ", not coming nearer".to_owned(),
        (Some(change), Some(_)) => {
            format!(", {} at {}", reached(threshold), rate(unit, change))
        }
    };
    format!("{kind} threshold at {line} left{signal}: {distance} away{when}{grace}")
}

pub(super) fn reached(threshold: &ThresholdLine) -> String {
    match (threshold.change_per_second, threshold.reached_in_seconds) {
        _ if threshold.is_met() => "crossed".to_owned(),
        (None, _) => "-".to_owned(),
        (_, None) => "not coming nearer".to_owned(),
        (_, Some(seconds)) => format!("in {}", span(seconds)),
    }
}

/// `-5.1 Mi/s`.
fn rate(unit: Unit, change: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "float to integer casts saturate"
    )]
    let whole = change.round() as i64;
    let sign = if whole > 0 { "+" } else { "" };
    format!("{sign}{}/s", unit.about(whole))
}

/// How urgent a threshold is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Urgency {
    Calm,
    Near,
    Alarming,
}

pub(super) fn urgency(threshold: &ThresholdLine) -> Urgency {
    let is_soon = threshold
        .reached_in_seconds
        .is_some_and(|seconds| seconds < SOON_SECONDS);
    match (threshold.is_met(), is_soon) {
        (true, _) => Urgency::Alarming,
        (false, true) => Urgency::Near,
        (false, false) => Urgency::Calm,
    }
}

pub(super) fn paint(palette: Palette, urgency: Urgency, text: &str) -> String {
    match urgency {
        _ if palette.0 == Colour::Off => text.to_owned(),
        Urgency::Calm => palette.calm(text),
        Urgency::Near => palette.near(text),
        Urgency::Alarming => palette.alarming(text),
    }
}
