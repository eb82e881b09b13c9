//! The result of a check as data. Its JSON is documented in docs/check.md and stable.

use std::collections::BTreeMap;

use plimsoll_core::lint::{Finding, Level, Rule};
use plimsoll_core::problem::{Position, Problem};
use plimsoll_core::resources::{Millicores, ResourceList, ResourceName};
use serde::Serialize;
use serde_json::Value;

use crate::print::Unit;

use super::input::{Document, File};

/// The result of a check.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    api_version: &'static str,
    kind: &'static str,
    pub(super) documents: Vec<DocumentReport>,
    pub(super) findings: Vec<FindingRow>,
    pub(super) summary: Summary,
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
    pub(super) fn finish(&mut self) {
        let place = |f: &FindingRow| (f.file.clone(), f.line.unwrap_or(usize::MAX), f.level);
        self.findings.sort_by_key(place);
        let count = |level: Level| self.findings.iter().filter(|f| f.level == level).count();
        self.summary = Summary {
            errors: count(Level::Error),
            warnings: count(Level::Warning),
            infos: count(Level::Info),
        };
    }
}

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Summary {
    pub(super) errors: usize,
    pub(super) warnings: usize,
    pub(super) infos: usize,
}

/// One document of a file.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DocumentReport {
    pub(super) file: String,
    pub(super) document: usize,
    pub(super) line: usize,
    pub(super) kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) namespace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) node: Option<NodeReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) workload: Option<WorkloadReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) scheduler: Option<SchedulerReport>,
}

impl DocumentReport {
    /// The report of a document that was read, without details.
    pub(super) fn new(file: &File, document: &Document, kind: &str) -> DocumentReport {
        DocumentReport {
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

/// What a node configuration results in.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NodeReport {
    pub(super) profile: &'static str,
    pub(super) capacity_from: &'static str,
    pub(super) load_line: Vec<LoadLineRow>,
    pub(super) eviction: Vec<EvictionRow>,
    pub(super) soft_cases: Vec<SoftCaseRow>,
}

/// The load line of one resource. Amounts are in `unit`.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LoadLineRow {
    pub(super) resource: String,
    pub(super) unit: Unit,
    pub(super) capacity: i64,
    pub(super) kube_reserved: i64,
    pub(super) system_reserved: i64,
    pub(super) hard_eviction: i64,
    pub(super) huge_pages: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) soft_eviction: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) allocatable: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) kubepods_limit: Option<i64>,
}

/// The lines of one signal.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EvictionRow {
    pub(super) signal: &'static str,
    pub(super) unit: Unit,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) hard: Option<LineRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) soft: Option<LineRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) grace_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) minimum_reclaim: Option<LineRow>,
}

/// A threshold as written and, where the capacity is known, as an amount.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LineRow {
    pub(super) text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) amount: Option<i64>,
}

/// One way of choosing the reservation of memory, in bytes.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SoftCaseRow {
    pub(super) reservation: &'static str,
    pub(super) reserved: i64,
    pub(super) allocatable: i64,
    pub(super) kubepods_limit: i64,
    pub(super) soft_fires_above: i64,
    pub(super) hard_fires_above: i64,
    pub(super) verdict: &'static str,
}

/// QoS class and resources of a pod or of a workload's pods. CPU is in millicores, sizes are in bytes.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WorkloadReport {
    pub(super) qos_class: &'static str,
    pub(super) requests: BTreeMap<String, i64>,
    pub(super) limits: BTreeMap<String, i64>,
    pub(super) containers: Vec<ContainerRow>,
    pub(super) admission: AdmissionRow,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ContainerRow {
    pub(super) name: String,
    pub(super) kind: &'static str,
    pub(super) requests: BTreeMap<String, i64>,
    pub(super) limits: BTreeMap<String, i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) oom_score_adj: Option<i64>,
}

/// The admission result of the pod under the rules of the files checked with it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AdmissionRow {
    pub(super) code: u16,
    pub(super) changes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) message: Option<String>,
}

/// The profiles of a scheduler configuration.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SchedulerReport {
    pub(super) profiles: Vec<ProfileRow>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ProfileRow {
    pub(super) scheduler_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) percentage_of_nodes_to_score: Option<u8>,
    pub(super) preemption: bool,
    pub(super) filters: Vec<&'static str>,
    pub(super) scores: Vec<ScoreRow>,
    pub(super) arguments: Vec<ArgumentRow>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ScoreRow {
    pub(super) plugin: &'static str,
    pub(super) weight: i64,
}

/// An argument that is not the default one.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ArgumentRow {
    pub(super) plugin: &'static str,
    pub(super) field: &'static str,
    pub(super) value: Value,
}

/// One finding.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FindingRow {
    pub(super) id: &'static str,
    #[serde(serialize_with = "level_word")]
    pub(super) level: Level,
    pub(super) file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) line: Option<usize>,
    pub(super) path: String,
    pub(super) message: String,
    pub(super) why: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) fix: String,
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
            path: problem.path.clone(),
            message: problem.message(),
            why: rule.why(),
            fix: rule.usual_fix().to_owned(),
        }
    }

    pub(super) fn at(mut self, position: Position) -> FindingRow {
        self.line.get_or_insert(position.line);
        self
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
