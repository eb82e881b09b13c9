//! Node configurations: findings and the load line.

use plimsoll_core::allocatable::{
    Allocatable, DevicePlugins, NodeResources, Settings, Terms, compute_allocatable,
};
use plimsoll_core::config::effect::{unsupported, without_effect};
use plimsoll_core::config::{NodeConfig, Profile};
use plimsoll_core::config::{Notation, read_document};
use plimsoll_core::lint::eviction_lines::{Line, amount_of, compute_lines};
use plimsoll_core::lint::soft_cases::SoftCase;
use plimsoll_core::lint::{Finding, Level, MachineFacts, Rule, compute_memory_cases, lint_node};
use plimsoll_core::problem::{Position, Problem};
use plimsoll_core::quantity::Quantity;
use plimsoll_core::resources::{Millicores, ResourceName};
use plimsoll_core::threshold::{Signal, StarvedResource, ThresholdValue};

use super::Options;
use super::capacity::Subject;
use super::file::{Document, File};
use super::report::{
    DocumentReport, EvictionRow, FindingRow, LineRow, LoadLineRow, NodeReport, Report, SoftCaseRow,
};
use crate::node_flags::{NodeFlags, differing};
use crate::text::Unit;

pub(super) fn check<E>(
    file: &File,
    document: &Document,
    notation: Notation,
    profile: Profile,
    options: &Options<'_, E>,
    report: &mut Report,
) -> Result<(), E> {
    let reading = read_document(&document.tree, notation, profile);
    let config = &reading.config;
    let resolved = options.subject(config)?;
    let allocatable = allocatable_of(config, &resolved);
    for problem in &reading.problems {
        report
            .findings
            .push(FindingRow::from_problem(&file.name, problem));
    }
    for over in allocatable.over_reserved() {
        if resolved.known.contains(&over.resource) {
            let row = FindingRow::from_problem(&file.name, &over.problem(config));
            report.findings.push(in_notation(row, notation, document));
        }
    }
    for finding in lint_node(config, &resolved.facts) {
        let row = FindingRow::new(&file.name, finding);
        report.findings.push(in_notation(row, notation, document));
    }
    for finding in lint_settings(config) {
        // A value that cannot be read is reported once.
        let has_problem = |problem: &Problem| problem.path == finding.path;
        if !reading.problems.iter().any(has_problem) {
            report.findings.push(FindingRow::new(&file.name, finding));
        }
    }
    report.documents.push(DocumentReport {
        node: Some(NodeReport {
            profile: profile.as_str(),
            capacity_from: resolved.source,
            load_line: load_line(&allocatable, config, &resolved),
            qos_reserved: config
                .qos_reserved
                .iter()
                .map(|(name, percent)| (name.to_string(), *percent))
                .collect(),
            eviction: compute_lines(config)
                .iter()
                .map(|line| eviction_row(line, config, &resolved.facts))
                .collect(),
            soft_cases: compute_memory_cases(config, &resolved.facts)
                .iter()
                .flatten()
                .map(soft_case_row)
                .collect(),
        }),
        ..DocumentReport::new(file, document, notation.as_str())
    });
    Ok(())
}

/// The settings that a node does not start with, that have no effect, and that differ from the defaults
/// of flags, as at the start of a node.
fn lint_settings(config: &NodeConfig) -> Vec<Finding> {
    let kinds = [
        (Rule::UnsupportedSetting, Level::Error, unsupported(config)),
        (
            Rule::SettingWithoutEffect,
            Level::Warning,
            without_effect(config),
        ),
        // The flags of the node are not known here, so that this is no error.
        (
            Rule::SettingDecidedByFlag,
            Level::Info,
            differing(config, NodeFlags::default()),
        ),
    ];
    let mut findings = Vec::new();
    for (rule, level, problems) in kinds {
        findings.extend(problems.into_iter().map(|problem| Finding {
            rule,
            level,
            message: problem.message(),
            path: problem.path,
            position: problem.position,
            fix: String::new(),
        }));
    }
    findings
}

/// The finding with the names of the file's notation, at the entry of its signal if it has one.
fn in_notation(mut row: FindingRow, notation: Notation, document: &Document) -> FindingRow {
    row.path = notation.own_path(&row.path);
    row.message = notation.own_words(&row.message);
    row.fix = notation.own_words(&row.fix);
    if row.line.is_some()
        && let Some(position) = entry_position(&row.path, document)
    {
        row.line = Some(position.line);
        row.column = Some(position.column);
    }
    // A setting that is missing is missing in what is around it.
    let around = document.tree.position_of(&row.path);
    row.at(around)
}

/// Where a path such as `evictionHard[memory.available]` stands: a key of a mapping, or the item of
/// a list that begins with it.
fn entry_position(path: &str, document: &Document) -> Option<Position> {
    let place = document.tree.locate(path);
    if place.is_exact {
        return Some(place.position());
    }
    let (_, signal) = path.strip_suffix(']')?.rsplit_once('[')?;
    let mut items = place.node.as_sequence()?.iter();
    let item = items.find(|item| item.as_text().is_some_and(|text| text.contains(signal)))?;
    Some(item.position)
}

fn allocatable_of(config: &NodeConfig, resolved: &Subject) -> Allocatable {
    let settings = Settings::from_config(config);
    compute_allocatable(
        &resolved.machine,
        &settings,
        &DevicePlugins::default(),
        &NodeResources::default(),
    )
}

fn unit_of(resource: &ResourceName) -> Unit {
    if *resource == ResourceName::CPU {
        Unit::Millicores
    } else if resource.is_in_bytes() {
        Unit::Bytes
    } else {
        Unit::Count
    }
}

/// Rows with cpu, memory and ephemeral-storage first.
fn load_line(
    allocatable: &Allocatable,
    config: &NodeConfig,
    resolved: &Subject,
) -> Vec<LoadLineRow> {
    let leading = [
        ResourceName::CPU,
        ResourceName::MEMORY,
        ResourceName::EPHEMERAL_STORAGE,
    ];
    let rest = allocatable
        .terms
        .keys()
        .filter(|name| !leading.contains(name));
    let names = leading.iter().chain(rest);
    let soft_lines = compute_lines(config);
    names
        .filter(|name| resolved.known.contains(name))
        .filter(|name| name.huge_page_size().is_none() || !is_zero(allocatable, name))
        .filter_map(|name| {
            let terms = allocatable.terms.get(name)?;
            load_line_row(name, terms, soft_line(name, &soft_lines, &resolved.facts))
        })
        .collect()
}

/// Whether no huge pages of that size are reserved; such rows are left out.
fn is_zero(allocatable: &Allocatable, name: &ResourceName) -> bool {
    let terms = allocatable.terms.get(name);
    terms.is_none_or(|terms| terms.machine.as_ref().is_none_or(Quantity::is_zero))
}

fn load_line_row(name: &ResourceName, terms: &Terms, soft: Option<i64>) -> Option<LoadLineRow> {
    let unit = unit_of(name);
    let amount = |quantity: &Quantity| match unit {
        Unit::Millicores => Millicores::from_quantity(quantity).0,
        Unit::Bytes | Unit::Count => quantity.value(),
    };
    let capacity = terms.capacity.as_ref().or(terms.machine.as_ref())?;
    Some(LoadLineRow {
        resource: name.to_string(),
        unit,
        capacity: amount(capacity),
        kube_reserved: amount(&terms.kube_reserved),
        system_reserved: amount(&terms.system_reserved),
        hard_eviction: amount(&terms.hard_eviction),
        huge_pages: amount(&terms.huge_pages),
        soft_eviction: soft,
        allocatable: terms.allocatable.as_ref().map(amount),
        // No cgroup limits disk space.
        kubepods_limit: terms
            .cgroup_limit
            .as_ref()
            .filter(|_| *name != ResourceName::EPHEMERAL_STORAGE)
            .map(amount),
    })
}

/// The soft threshold of a resource of the load line.
fn soft_line(name: &ResourceName, lines: &[Line], facts: &MachineFacts) -> Option<i64> {
    let signal = if *name == ResourceName::MEMORY {
        Signal::MemoryAvailable
    } else if *name == ResourceName::EPHEMERAL_STORAGE {
        Signal::NodeFsAvailable
    } else {
        return None;
    };
    let line = lines.iter().find(|line| line.signal == signal)?;
    amount_of(line.soft.as_ref()?, signal, facts)
}

fn eviction_row(line: &Line, config: &NodeConfig, facts: &MachineFacts) -> EvictionRow {
    let signal = line.signal;
    let row = |value: &Option<ThresholdValue>,
               texts: &[&std::collections::BTreeMap<String, String>]| {
        let text = texts.iter().find_map(|map| map.get(signal.as_str()))?;
        Some(LineRow {
            text: text.clone(),
            amount: amount_of(value.as_ref()?, signal, facts),
        })
    };
    EvictionRow {
        signal: signal.as_str(),
        unit: match signal.resource() {
            StarvedResource::Memory | StarvedResource::EphemeralStorage => Unit::Bytes,
            StarvedResource::Inodes | StarvedResource::Pids => Unit::Count,
        },
        hard: row(&line.hard, &[&config.eviction_hard]),
        soft: row(&line.soft, &[&config.eviction_soft]),
        grace_seconds: line.grace.map(|grace| grace.as_secs_f64()),
        minimum_reclaim: row(&line.minimum_reclaim, &[&config.eviction_minimum_reclaim]),
    }
}

fn soft_case_row(case: &SoftCase) -> SoftCaseRow {
    SoftCaseRow {
        reservation: case.choice.as_str(),
        reserved: case.reserved.0,
        allocatable: case.allocatable.0,
        kubepods_limit: case.kubepods_limit.0,
        soft_fires_above: case.soft_fires_above.0,
        hard_fires_above: case.hard_fires_above.0,
        verdict: case.verdict().as_str(),
    }
}
