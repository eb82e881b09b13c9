//! The result of a check as data. Its JSON is documented in docs/check.md and stable.

use std::collections::BTreeMap;

use plimsoll_core::lint::{Finding, Level, Rule};
use plimsoll_core::problem::{Position, Problem};
use plimsoll_core::resources::{Millicores, ResourceList, ResourceName};
use serde::Serialize;
use serde_json::Value;

use crate::text::Unit;

use super::correction::correction;
use super::file::{Document, File};

/// The result of a check.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    api_version: &'static str,
    kind: &'static str,
    pub documents: Vec<DocumentReport>,
    pub findings: Vec<FindingRow>,
    pub summary: Summary,
}

impl Default for Report {
    fn default() -> Self {
        Report {
            api_version: "plimsoll.dev/v1",
            kind: "CheckReport",
            documents: Vec::new(),
            findings: Vec::new(),
            summary: Summary::default(),
        }
    }
}

impl Report {
    /// Counts the findings and puts them in order: by file and place, the worst first there.
    pub(super) fn finish(&mut self, files: &[File]) {
        let order: BTreeMap<&str, usize> = files
            .iter()
            .map(|file| file.name.as_str())
            .zip(0..)
            .collect();
        let file = |name: &str| order.get(name).copied();
        // Workloads are checked last but shown in the order of the files.
        self.documents
            .sort_by_key(|document| (file(&document.file), document.document));
        let end = usize::MAX;
        self.findings.sort_by_key(|f| {
            let place = (f.line.unwrap_or(end), f.level, f.column.unwrap_or(end));
            (file(&f.file), place)
        });
        let count = |level: Level| self.findings.iter().filter(|f| f.level == level).count();
        self.summary = Summary {
            files: files.len(),
            errors: count(Level::Error),
            warnings: count(Level::Warning),
            infos: count(Level::Info),
        };
    }
}

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    pub files: usize,
    pub errors: usize,
    pub warnings: usize,
    pub infos: usize,
}

/// One document of a file.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DocumentReport {
    /// Whether the user has named the file, and not only its directory.
    #[serde(skip)]
    pub is_named: bool,
    pub file: String,
    pub document: usize,
    pub line: usize,
    pub kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload: Option<WorkloadReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<SchedulerReport>,
}

impl DocumentReport {
    /// The report of a document that was read, without details.
    pub(super) fn new(file: &File, document: &Document, kind: &str) -> DocumentReport {
        DocumentReport {
            is_named: file.is_named,
            file: file.name.clone(),
            document: document.number,
            line: document.tree.position.line,
            kind: kind.to_owned(),
            namespace: None,
            name: None,
            node: None,
            workload: None,
            scheduler: None,
        }
    }
}

impl DocumentReport {
    /// Whether there is more to show than the kind and name.
    pub(super) fn has_details(&self) -> bool {
        self.node.is_some() || self.workload.is_some() || self.scheduler.is_some()
    }
}

/// What a node configuration results in.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeReport {
    pub profile: &'static str,
    pub capacity_from: &'static str,
    pub load_line: Vec<LoadLineRow>,
    /// Percentages of what pods of higher QoS classes request that pods of lower classes cannot use.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub qos_reserved: BTreeMap<String, u8>,
    pub eviction: Vec<EvictionRow>,
    pub soft_cases: Vec<SoftCaseRow>,
}

/// The load line of one resource. Amounts are in `unit`.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LoadLineRow {
    pub resource: String,
    pub unit: Unit,
    pub capacity: i64,
    pub kube_reserved: i64,
    pub system_reserved: i64,
    pub hard_eviction: i64,
    pub huge_pages: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub soft_eviction: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allocatable: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubepods_limit: Option<i64>,
}

/// The lines of one signal.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EvictionRow {
    pub signal: &'static str,
    pub unit: Unit,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hard: Option<LineRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub soft: Option<LineRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimum_reclaim: Option<LineRow>,
}

/// A threshold as written and, where the capacity is known, as an amount.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LineRow {
    pub text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amount: Option<i64>,
}

/// One way of choosing the reservation of memory, in bytes.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SoftCaseRow {
    pub reservation: &'static str,
    pub reserved: i64,
    pub allocatable: i64,
    pub kubepods_limit: i64,
    pub soft_fires_above: i64,
    pub hard_fires_above: i64,
    pub verdict: &'static str,
}

/// QoS class and resources of a pod or of a workload's pods. CPU is in millicores, sizes are in bytes.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadReport {
    pub qos_class: &'static str,
    pub requests: BTreeMap<String, i64>,
    pub limits: BTreeMap<String, i64>,
    pub containers: Vec<ContainerRow>,
    pub admission: AdmissionRow,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerRow {
    pub name: String,
    pub kind: &'static str,
    pub requests: BTreeMap<String, i64>,
    pub limits: BTreeMap<String, i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oom_score_adj: Option<i64>,
}

/// The admission result of the pod under the rules of the files checked with it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AdmissionRow {
    pub code: u16,
    pub changes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// The profiles of a scheduler configuration.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SchedulerReport {
    pub profiles: Vec<ProfileRow>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProfileRow {
    pub scheduler_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percentage_of_nodes_to_score: Option<u8>,
    pub preemption: bool,
    pub filters: Vec<&'static str>,
    pub scores: Vec<ScoreRow>,
    pub arguments: Vec<ArgumentRow>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ScoreRow {
    pub plugin: &'static str,
    pub weight: i64,
}

/// An argument that is not the default one.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ArgumentRow {
    pub plugin: &'static str,
    pub field: &'static str,
    pub value: Value,
}

/// One finding.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FindingRow {
    pub id: &'static str,
    #[serde(serialize_with = "level_word")]
    pub level: Level,
    pub file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
    pub path: String,
    pub message: String,
    pub why: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub fix: String,
}

fn level_word<S: serde::Serializer>(level: &Level, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(level.as_str())
}

impl FindingRow {
    pub(super) fn new(file: &str, finding: Finding) -> FindingRow {
        FindingRow {
            id: finding.rule.id(),
            level: finding.level,
            file: file.to_owned(),
            line: finding.position.map(|position| position.line),
            column: finding.position.map(|position| position.column),
            path: finding.path,
            message: finding.message,
            why: finding.rule.why(),
            fix: finding.fix,
        }
    }

    /// A value that the kubelet, the scheduler or the API server would reject.
    pub(super) fn from_problem(file: &str, problem: &Problem) -> FindingRow {
        let rule = Rule::of(problem);
        FindingRow {
            id: rule.id(),
            level: Level::Error,
            file: file.to_owned(),
            line: problem.position.map(|position| position.line),
            column: problem.position.map(|position| position.column),
            path: problem.path.clone(),
            message: problem.message(),
            why: rule.why(),
            fix: correction(problem),
        }
    }

    pub(super) fn at(mut self, position: Position) -> FindingRow {
        if self.line.is_none() {
            self.line = Some(position.line);
            self.column = Some(position.column);
        }
        self
    }

    pub(super) fn of_rule(mut self, rule: Rule) -> FindingRow {
        self.id = rule.id();
        self.why = rule.why();
        self
    }

    /// Path, message and correction in one text.
    pub(super) fn text(&self) -> String {
        let mut text = match self.path.as_str() {
            "" => self.message.clone(),
            path => format!("{path}: {}", self.message),
        };
        if !self.fix.is_empty() {
            text.push_str("; ");
            text.push_str(&self.fix);
        }
        text
    }
}

/// Amounts as plain integers: millicores for cpu, whole units for everything else.
pub(super) fn integers(list: &ResourceList) -> BTreeMap<String, i64> {
    list.iter()
        .map(|(name, quantity)| {
            let amount = if *name == ResourceName::CPU {
                Millicores::from_quantity(quantity).0
            } else {
                quantity.value()
            };
            (name.to_string(), amount)
        })
        .collect()
}
