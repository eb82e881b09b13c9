//! Manifests: resources and admission of pods under the rules of the files checked with them.
//!
//! Documents are collected first and checked afterwards, because a LimitRange may follow the pod it
//! applies to, or be in another file.

mod decode;
mod workload;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{LimitRange, Namespace};
use plimsoll_core::admission::overcommit::{Override, Settings, Variant};
use plimsoll_core::admission::pod_security::PodSecurity;
use plimsoll_core::config::Profile;
use plimsoll_core::object::limit_range::LimitRangeView;
use plimsoll_core::object::namespace::NamespaceView;
use plimsoll_core::problem::Problem;
use plimsoll_core::resources::Bytes;
use serde_json::Value;

use super::file::{Document, File};
use super::report::{DocumentReport, FindingRow, Report};
use workload::Workload;

/// The namespace of objects without one.
const DEFAULT_NAMESPACE: &str = "default";

/// All manifests of one check.
#[derive(Debug, Default)]
pub(super) struct Set<'a> {
    namespaces: BTreeMap<String, NamespaceView>,
    limit_ranges: BTreeMap<String, Vec<LimitRangeView>>,
    overcommit: Option<Override>,
    workloads: Vec<Workload<'a>>,
}

/// An object of a manifest: a document, or an item of a `List`.
#[derive(Clone, Debug)]
struct Source<'a> {
    file: &'a File,
    document: &'a Document,
    /// The path of the object in the document: empty, or `items[2].`.
    base: String,
}

impl Source<'_> {
    /// A finding at the position of its path, or of the nearest parent that exists.
    fn locate(&self, mut row: FindingRow) -> FindingRow {
        row.path = format!("{}{}", self.base, row.path);
        let position = self.document.tree.position_of(&row.path);
        row.at(position)
    }

    /// The report of an object that was read, without details.
    fn document(&self, kind: &str) -> DocumentReport {
        DocumentReport::new(self.file, self.document, kind)
    }
}

/// An object to add to the set.
struct Entry<'a, 'r> {
    source: Source<'a>,
    report: &'r mut Report,
}

impl Entry<'_, '_> {
    fn problem(&mut self, problem: &Problem) {
        let row = FindingRow::from_problem(&self.source.file.name, problem);
        self.report.findings.push(self.source.locate(row));
    }

    fn problems(&mut self, problems: &[Problem]) {
        for problem in problems {
            self.problem(problem);
        }
    }

    fn mention(&mut self, kind: &str, namespace: Option<String>, name: Option<String>) {
        self.report.documents.push(DocumentReport {
            namespace,
            name,
            ..self.source.document(kind)
        });
    }
}

impl<'a> Set<'a> {
    pub(super) fn add(
        &mut self,
        file: &'a File,
        document: &'a Document,
        compat: Option<Profile>,
        report: &mut Report,
    ) {
        let mut problems = Vec::new();
        let json = document.tree.to_json("", &mut problems);
        let mut entry = Entry {
            source: Source {
                file,
                document,
                base: String::new(),
            },
            report,
        };
        entry.problems(&problems);
        self.add_value(&mut entry, &json, compat);
    }

    fn add_value(&mut self, entry: &mut Entry<'a, '_>, json: &Value, compat: Option<Profile>) {
        let kind = json["kind"].as_str().unwrap_or_default();
        match kind {
            "List" => {
                let items = json["items"].as_array().into_iter().flatten();
                for (index, item) in items.enumerate() {
                    let base = format!("{}items[{index}].", entry.source.base);
                    let mut entry = Entry {
                        source: Source {
                            base,
                            ..entry.source.clone()
                        },
                        report: entry.report,
                    };
                    self.add_value(&mut entry, item, compat);
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

    fn add_limit_range(&mut self, entry: &mut Entry<'a, '_>, json: &Value) {
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

    fn add_namespace(&mut self, entry: &mut Entry<'a, '_>, json: &Value) {
        let Some(object) = decode::decode::<Namespace>(entry, json) else {
            return;
        };
        entry.mention("Namespace", None, object.metadata.name.clone());
        let name = object.metadata.name.clone().unwrap_or_default();
        let labels = object.metadata.labels.clone().unwrap_or_default();
        entry.problems(&PodSecurity::default().policy_of(&labels).problems);
        self.namespaces
            .insert(name, NamespaceView::from_api(&object));
    }

    /// OKD's configuration selects OKD's plugin, the operator's kind the operator's webhook.
    fn add_override(&mut self, entry: &mut Entry<'a, '_>, json: &Value, compat: Option<Profile>) {
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
    pub(super) fn check(self, memory: Option<Bytes>, report: &mut Report) {
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
