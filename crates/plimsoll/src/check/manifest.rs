//! Manifests: what pods come to, with the rules given beside them.
//!
//! Documents are collected first and checked afterwards, because a LimitRange may stand below the
//! pod it applies to, or in another file.

mod decode;
mod workload;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{LimitRange, Namespace};
use plimsoll_core::admission::overcommit::{Override, Settings, Variant};
use plimsoll_core::config::Profile;
use plimsoll_core::object::limit_range::LimitRangeView;
use plimsoll_core::object::namespace::NamespaceView;
use plimsoll_core::problem::Problem;
use serde_json::Value;

use super::capacity::Subject;
use super::input::{Document, File};
use super::report::{DocumentReport, FindingRow, Report};
use workload::Workload;

/// The namespace of objects that name none.
const DEFAULT_NAMESPACE: &str = "default";

/// Everything that was given together.
#[derive(Debug, Default)]
pub(super) struct Set {
    namespaces: BTreeMap<String, NamespaceView>,
    limit_ranges: BTreeMap<String, Vec<LimitRangeView>>,
    overcommit: Option<Override>,
    workloads: Vec<Workload>,
}

/// A document on its way into the set.
struct Entry<'a> {
    file: &'a File,
    document: &'a Document,
    report: &'a mut Report,
}

impl Entry<'_> {
    fn problem(&mut self, problem: &Problem) {
        let position = self.document.position_of(&problem.path);
        let row = FindingRow::from_problem(&self.file.name, problem);
        self.report.findings.push(row.at(position));
    }

    fn problems(&mut self, problems: &[Problem]) {
        for problem in problems {
            self.problem(problem);
        }
    }

    /// A document that has nothing to show but its being read.
    fn mention(&mut self, kind: &str, namespace: Option<String>, name: Option<String>) {
        self.report.documents.push(DocumentReport {
            file: self.file.name.clone(),
            document: self.document.number,
            line: self.document.tree.position.line,
            kind: kind.to_owned(),
            namespace,
            name,
            node: None,
            workload: None,
        });
    }
}

impl Set {
    pub(super) fn add(
        &mut self,
        file: &File,
        document: &Document,
        compat: Option<Profile>,
        report: &mut Report,
    ) {
        let mut problems = Vec::new();
        let json = document.tree.to_json("", &mut problems);
        let mut entry = Entry {
            file,
            document,
            report,
        };
        entry.problems(&problems);
        self.add_value(&mut entry, &json, compat);
    }

    fn add_value(&mut self, entry: &mut Entry<'_>, json: &Value, compat: Option<Profile>) {
        let kind = json["kind"].as_str().unwrap_or_default();
        match kind {
            "List" => {
                for item in json["items"].as_array().into_iter().flatten() {
                    self.add_value(entry, item, compat);
                }
            }
            "LimitRange" => self.add_limit_range(entry, json),
            "Namespace" | "Project" => self.add_namespace(entry, json),
            "ClusterResourceOverrideConfig" | "ClusterResourceOverride" => {
                self.add_override(entry, json, compat);
            }
            _ if master_override(json).is_some() => {
                let inner = master_override(json).unwrap_or(&Value::Null);
                self.add_override(entry, inner, compat);
            }
            "" => entry.problem(&Problem::required(
                "kind",
                "neither a manifest nor a node configuration: kind or kubeletArguments is missing",
            )),
            _ => match Workload::new(entry, kind, json) {
                Some(workload) => self.workloads.push(workload),
                None => {
                    let meta = |key: &str| json["metadata"][key].as_str().map(str::to_owned);
                    entry.mention(kind, meta("namespace"), meta("name"));
                }
            },
        }
    }

    fn add_limit_range(&mut self, entry: &mut Entry<'_>, json: &Value) {
        let Some(object) = decode::decode::<LimitRange>(entry, json) else {
            return;
        };
        let namespace = namespace_of(object.metadata.namespace.as_deref());
        entry.mention(
            "LimitRange",
            Some(namespace.clone()),
            object.metadata.name.clone(),
        );
        match LimitRangeView::from_api(&object) {
            Ok(mut view) => {
                view.apply_defaults();
                self.limit_ranges.entry(namespace).or_default().push(view);
            }
            Err(problems) => entry.problems(&problems),
        }
    }

    fn add_namespace(&mut self, entry: &mut Entry<'_>, json: &Value) {
        let Some(object) = decode::decode::<Namespace>(entry, json) else {
            return;
        };
        entry.mention("Namespace", None, object.metadata.name.clone());
        let name = object.metadata.name.clone().unwrap_or_default();
        self.namespaces
            .insert(name, NamespaceView::from_api(&object));
    }

    /// OKD's configuration means OKD's plugin; the operator's kind means the webhook of today.
    fn add_override(&mut self, entry: &mut Entry<'_>, json: &Value, compat: Option<Profile>) {
        let variant = match (json["kind"].as_str(), compat) {
            (Some("ClusterResourceOverride"), _) => Variant::Modern,
            (_, Some(Profile::Okd36)) => Variant::Okd36,
            _ => Variant::Okd39,
        };
        entry.mention("ClusterResourceOverride", None, None);
        match Settings::from_json(json, variant) {
            Ok(settings) => self.overcommit = Some(Override::new(variant, settings)),
            Err(problems) => entry.problems(&problems),
        }
    }

    /// Checks every workload against the rules of its namespace.
    pub(super) fn check(self, subject: &Subject, report: &mut Report) {
        let memory = subject.memory();
        for workload in &self.workloads {
            let namespace = self.namespaces.get(&workload.namespace);
            let namespace = namespace.cloned().unwrap_or_else(|| NamespaceView {
                name: workload.namespace.clone(),
                ..NamespaceView::default()
            });
            let limit_ranges = self.limit_ranges.get(&workload.namespace);
            workload.check(
                &namespace,
                limit_ranges.map_or(&[], Vec::as_slice),
                self.overcommit.as_ref(),
                memory,
                report,
            );
        }
    }
}

fn namespace_of(namespace: Option<&str>) -> String {
    namespace.unwrap_or(DEFAULT_NAMESPACE).to_owned()
}

/// The override inside an OKD master configuration.
fn master_override(json: &Value) -> Option<&Value> {
    let path = "/admissionConfig/pluginConfig/ClusterResourceOverride/configuration";
    json.pointer(path)
}
