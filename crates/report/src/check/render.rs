//! A report as text.

use std::collections::BTreeMap;

use plimsoll_core::lint::Rule;
use plimsoll_core::resources::{Bytes, Millicores, ResourceName};

use serde_json::Value;

use crate::text::{Palette, Table, Unit};

use super::report::{
    DocumentReport, EvictionRow, FindingRow, LineRow, LoadLineRow, NodeReport, ProfileRow, Report,
    SoftCaseRow, WorkloadReport,
};

/// An empty cell.
const NONE: &str = "-";

/// Which documents are described.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Those of files that the user has named, and not only their directory.
    Named,
    /// All.
    All,
}

/// Descriptions of documents, findings one by one, and how many there are.
pub fn render(report: &Report, detail: Detail, palette: Palette) -> String {
    let mut page = Page {
        palette,
        lines: Vec::new(),
    };
    for document in &report.documents {
        if detail == Detail::All || document.is_named && document.has_details() {
            page.document(document);
        }
    }
    page.findings(&report.findings);
    page.summary(report);
    page.lines.join("\n") + "\n"
}

struct Page {
    palette: Palette,
    lines: Vec<String>,
}

impl Page {
    fn gap(&mut self) {
        if !self.lines.is_empty() {
            self.lines.push(String::new());
        }
    }

    fn table(&mut self, table: &Table) {
        let mut lines = table.lines().into_iter();
        if let Some(heading) = lines.next() {
            self.lines.push(self.palette.heading(&heading));
        }
        self.lines.extend(lines);
    }

    fn document(&mut self, document: &DocumentReport) {
        self.gap();
        let mut title = format!("{}: {}", document.file, document.kind);
        match (&document.namespace, &document.name) {
            (Some(namespace), Some(name)) => title = format!("{title} {namespace}/{name}"),
            (None, Some(name)) => title = format!("{title} {name}"),
            _ => {}
        }
        self.lines.push(self.palette.heading(&title));
        if let Some(node) = &document.node {
            self.node(node);
        }
        if let Some(workload) = &document.workload {
            self.workload(workload);
        }
        if let Some(scheduler) = &document.scheduler {
            for profile in &scheduler.profiles {
                self.gap();
                self.profile(profile);
            }
        }
    }

    fn node(&mut self, node: &NodeReport) {
        let about = format!(
            "profile {}, capacity from {}",
            node.profile, node.capacity_from
        );
        self.lines.push(self.palette.faint(&about));
        if !node.load_line.is_empty() {
            self.gap();
            self.table(&load_line_table(&node.load_line));
        }
        for (resource, percent) in &node.qos_reserved {
            self.lines.push(format!(
                "qos reserved     {resource} {percent}%: pods of lower QoS classes cannot use that \
                 part of what higher classes request"
            ));
        }
        if !node.eviction.is_empty() {
            self.gap();
            self.table(&eviction_table(&node.eviction));
        }
        if !node.soft_cases.is_empty() {
            self.gap();
            self.table(&soft_case_table(&node.soft_cases));
            for case in &node.soft_cases {
                self.lines
                    .push(format!("{}: {}", case.reservation, case.verdict));
            }
        }
    }

    fn workload(&mut self, workload: &WorkloadReport) {
        let about = format!("QoS class {}", workload.qos_class);
        self.lines.push(self.palette.faint(&about));
        self.gap();
        let mut table = Table::new(["CONTAINER", "KIND", "REQUESTS", "LIMITS", "OOM_SCORE_ADJ"]);
        for row in &workload.containers {
            table.row([
                row.name.clone(),
                row.kind.to_owned(),
                resources(&row.requests),
                resources(&row.limits),
                row.oom_score_adj
                    .map_or(NONE.to_owned(), |score| score.to_string()),
            ]);
        }
        table.row([
            "(pod)".to_owned(),
            String::new(),
            resources(&workload.requests),
            resources(&workload.limits),
        ]);
        self.table(&table);
        if !workload.admission.changes.is_empty() || workload.admission.message.is_some() {
            self.gap();
            let heading = format!("ADMISSION ({})", workload.admission.code);
            self.lines.push(self.palette.heading(&heading));
            self.lines
                .extend(workload.admission.changes.iter().cloned());
            self.lines.extend(workload.admission.message.clone());
        }
    }

    fn profile(&mut self, profile: &ProfileRow) {
        let title = format!("PROFILE {}", profile.scheduler_name);
        self.lines.push(self.palette.heading(&title));
        let nodes = match profile.percentage_of_nodes_to_score {
            None => "scores all nodes".to_owned(),
            Some(0) => "scores a smaller part of the nodes the more there are".to_owned(),
            Some(percentage) => format!("scores {percentage}% of the nodes"),
        };
        let preemption = if profile.preemption { "on" } else { "off" };
        let about = format!("{nodes}, preemption is {preemption}");
        self.lines.push(self.palette.faint(&about));
        self.gap();
        self.table(&plugin_table(profile));
        if profile.arguments.is_empty() {
            return;
        }
        self.gap();
        let mut table = Table::new(["PLUGIN", "ARGUMENT", "VALUE"]);
        for argument in &profile.arguments {
            let value = match &argument.value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            table.row([argument.plugin, argument.field, &value]);
        }
        self.table(&table);
    }

    /// One line each, as compilers print them, and what helps below.
    fn findings(&mut self, findings: &[FindingRow]) {
        if !findings.is_empty() {
            self.gap();
        }
        for finding in findings {
            let mut place = finding.file.clone();
            let numbers = [finding.line, finding.column];
            for number in numbers.into_iter().flatten() {
                place.push_str(&format!(":{number}"));
            }
            let path = match finding.path.as_str() {
                "" => String::new(),
                path => format!("{path}: "),
            };
            let level = self.palette.level(finding.level);
            let id = self.palette.faint(&format!("[{}]", finding.id));
            let place = self.palette.heading(&place);
            self.lines
                .push(format!("{place}: {level}: {path}{} {id}", finding.message));
            if !finding.fix.is_empty() {
                self.lines.push(format!("  fix: {}", finding.fix));
            }
            // The message of a refusal is the reason.
            if finding.id != Rule::Refused.id() {
                self.lines
                    .push(self.palette.faint(&format!("  why: {}", finding.why)));
            }
        }
    }

    fn summary(&mut self, report: &Report) {
        let summary = &report.summary;
        let counted = |count: usize, noun: &str| match count {
            1 => format!("1 {noun}"),
            _ => format!("{count} {noun}s"),
        };
        self.gap();
        self.lines.push(format!(
            "{}: {}, {}, {}",
            counted(summary.files, "file"),
            counted(summary.errors, "error"),
            counted(summary.warnings, "warning"),
            counted(summary.infos, "info"),
        ));
    }
}

/// Filters and scores side by side, each in its order.
fn plugin_table(profile: &ProfileRow) -> Table {
    let mut table = Table::new(["FILTER", "SCORE", "WEIGHT"]);
    for row in 0..profile.filters.len().max(profile.scores.len()) {
        let filter = profile.filters.get(row).copied().unwrap_or_default();
        let mut cells = vec![filter.to_owned()];
        if let Some(score) = profile.scores.get(row) {
            cells.extend([score.plugin.to_owned(), score.weight.to_string()]);
        }
        table.row(cells);
    }
    table
}

/// Resources are columns and terms are rows, so that the sum reads downwards.
fn load_line_table(rows: &[LoadLineRow]) -> Table {
    let heading = rows.iter().map(|row| row.resource.to_uppercase());
    let mut table = Table::new(std::iter::once("LOAD LINE".to_owned()).chain(heading));
    let mut term = |name: &str, sign: &str, value: &dyn Fn(&LoadLineRow) -> Option<i64>| {
        if rows.iter().all(|row| value(row).is_none()) {
            return;
        }
        let cells = rows.iter().map(|row| match value(row) {
            Some(value) => format!("{sign}{}", row.unit.amount(value)),
            None => NONE.to_owned(),
        });
        table.row(std::iter::once(name.to_owned()).chain(cells));
    };
    let unless_zero = |value: i64| (value != 0).then_some(value);
    term("capacity", "", &|row| Some(row.capacity));
    term("kube-reserved", "- ", &|row| unless_zero(row.kube_reserved));
    term("system-reserved", "- ", &|row| {
        unless_zero(row.system_reserved)
    });
    term("hard eviction", "- ", &|row| unless_zero(row.hard_eviction));
    term("huge pages", "- ", &|row| unless_zero(row.huge_pages));
    term("allocatable", "= ", &|row| row.allocatable);
    term("kubepods limit", "", &|row| row.kubepods_limit);
    term("soft line", "", &|row| row.soft_eviction);
    table
}

fn eviction_table(rows: &[EvictionRow]) -> Table {
    let mut table = Table::new(["SIGNAL", "HARD", "SOFT", "GRACE", "MINIMUM RECLAIM"]);
    for row in rows {
        table.row([
            row.signal.to_owned(),
            line(row.hard.as_ref(), row.unit),
            line(row.soft.as_ref(), row.unit),
            row.grace_seconds
                .map_or(NONE.to_owned(), |seconds| format!("{seconds} s")),
            line(row.minimum_reclaim.as_ref(), row.unit),
        ]);
    }
    table
}

/// The threshold as written; a percentage also as an amount.
fn line(row: Option<&LineRow>, unit: Unit) -> String {
    match row {
        None => NONE.to_owned(),
        Some(LineRow {
            text,
            amount: Some(value),
        }) if text.ends_with('%') => format!("{text} ({})", unit.amount(*value)),
        Some(row) => row.text.clone(),
    }
}

/// Ways of choosing the reservation are columns, so that the table fits on eighty columns.
fn soft_case_table(rows: &[SoftCaseRow]) -> Table {
    let heading = rows.iter().map(|row| row.reservation.to_uppercase());
    let mut table = Table::new(std::iter::once("RESERVED".to_owned()).chain(heading));
    let mut figure = |name: &str, of: &dyn Fn(&SoftCaseRow) -> i64| {
        let cells = rows.iter().map(|row| Bytes(of(row)).readable());
        table.row(std::iter::once(name.to_owned()).chain(cells));
    };
    figure("reserved", &|row| row.reserved);
    figure("allocatable", &|row| row.allocatable);
    figure("kubepods limit", &|row| row.kubepods_limit);
    figure("soft above", &|row| row.soft_fires_above);
    figure("hard above", &|row| row.hard_fires_above);
    table
}

fn resources(list: &BTreeMap<String, i64>) -> String {
    if list.is_empty() {
        return NONE.to_owned();
    }
    let items = list.iter().map(|(name, value)| {
        let is_bytes = ResourceName::new(name).is_in_bytes();
        match name.as_str() {
            "cpu" => format!("cpu {}", Millicores(*value)),
            _ if is_bytes => format!("{name} {}", Bytes(*value).readable()),
            _ => format!("{name} {value}"),
        }
    });
    items.collect::<Vec<_>>().join(", ")
}
