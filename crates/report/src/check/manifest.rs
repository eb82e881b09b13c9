//! Manifests: resources and admission of pods under the rules of the files checked with them.
//!
//! Documents are collected first and checked afterwards, because a LimitRange may follow the pod it
//! applies to, or be in another file.

mod workload;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{LimitRange, Namespace};
use k8s_openapi::api::node::v1::RuntimeClass;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use plimsoll_core::admission::overcommit::{Override, Settings, Variant};
use plimsoll_core::admission::pod_security::PodSecurity;
use plimsoll_core::config::Profile;
use plimsoll_core::config::document::{Content, Entry as Member, Node};
use plimsoll_core::lint::{Level, Rule};
use plimsoll_core::object::limit_range::LimitRangeView;
use plimsoll_core::object::namespace::NamespaceView;
use plimsoll_core::problem::{Position, Problem};
use plimsoll_core::resources::Bytes;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::file::{Document, File};
use super::report::{DocumentReport, FindingRow, Report};
use super::server::{Facts, Manifest, Read, Server};
use workload::Workload;

/// The namespace of objects without one.
const DEFAULT_NAMESPACE: &str = "default";

/// Kinds that are no objects of an API server, but say what admission does.
const ADMISSION_KINDS: [&str; 2] = ["ClusterResourceOverride", "ClusterResourceOverrideConfig"];

/// All manifests of one check.
pub(super) struct Set<'a> {
    server: &'a dyn Server,
    namespaces: BTreeMap<String, NamespaceView>,
    limit_ranges: BTreeMap<String, Vec<LimitRangeView>>,
    priority_classes: Vec<PriorityClass>,
    runtime_classes: Vec<RuntimeClass>,
    overcommit: Option<Override>,
    objects: Vec<Object<'a>>,
    /// The places of objects by their keys.
    places: BTreeMap<[String; 4], String>,
}

/// An object to create.
struct Object<'a> {
    manifest: Box<dyn Manifest>,
    source: Source<'a>,
}

impl Object<'_> {
    /// Its report without details.
    fn mention(&self) -> DocumentReport {
        let metadata = &self.manifest.object()["metadata"];
        let text = |key: &str| metadata[key].as_str().map(str::to_owned);
        DocumentReport {
            namespace: text("namespace"),
            name: text("name"),
            ..self.source.document(self.manifest.kind())
        }
    }
}

/// An object of a manifest: a document, or an item of a `List`.
#[derive(Clone, Debug)]
struct Source<'a> {
    file: &'a File,
    document: &'a Document,
    /// The path of the object in the document: empty, or `items[2]`.
    base: String,
}

impl Source<'_> {
    /// A finding at the position of its path, or of the nearest parent that exists.
    fn locate(&self, mut row: FindingRow) -> FindingRow {
        row.path = match (self.base.as_str(), row.path.as_str()) {
            ("", path) | (path, "") => path.to_owned(),
            (base, path) => format!("{base}.{path}"),
        };
        let position = self.document.tree.position_of(&row.path);
        row.at(position)
    }

    /// A problem that the server found, at the entry with its value if its path is a mapping.
    fn problem(&self, problem: &Problem) -> FindingRow {
        let row = FindingRow::from_problem(&self.file.name, problem);
        let path = match self.base.as_str() {
            "" => problem.path.clone(),
            base => format!("{base}.{}", problem.path),
        };
        let mut place = self.document.tree.locate(&path);
        // Kubernetes names the taints of a node as if they were metadata.
        let taints = path.replacen("metadata.taints", "spec.taints", 1);
        if !place.is_exact && taints != path {
            place = self.document.tree.locate(&taints);
        }
        let entries = place.node.as_mapping().filter(|_| place.is_exact);
        let value: Option<String> = serde_json::from_str(&problem.value).ok();
        let mut entries = entries.into_iter().flatten();
        let entry = value.and_then(|value| {
            entries.find_map(|entry| match &entry.value {
                _ if entry.key == value => Some(entry.key_position),
                node if node.scalar_text() == Some(&value) => Some(node.position),
                _ => None,
            })
        });
        self.locate(row.at(entry.unwrap_or(place.position())))
    }

    /// A finding of a rule about a path.
    fn finding(&self, rule: Rule, level: Level, path: &str, message: &str) -> FindingRow {
        let problem = Problem::refused(path, message);
        let row = FindingRow::from_problem(&self.file.name, &problem).of_rule(rule);
        self.locate(FindingRow { level, ..row })
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
    fn problems(&mut self, problems: &[Problem]) {
        for problem in problems {
            let row = FindingRow::from_problem(&self.source.file.name, problem);
            self.report.findings.push(self.source.locate(row));
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
    pub(super) fn new(server: &'a dyn Server) -> Set<'a> {
        Set {
            server,
            namespaces: BTreeMap::new(),
            limit_ranges: BTreeMap::new(),
            priority_classes: Vec::new(),
            runtime_classes: Vec::new(),
            overcommit: None,
            objects: Vec::new(),
            places: BTreeMap::new(),
        }
    }

    pub(super) fn add(
        &mut self,
        file: &'a File,
        document: &'a Document,
        compat: Option<Profile>,
        report: &mut Report,
    ) {
        let mut entry = Entry {
            source: Source {
                file,
                document,
                base: String::new(),
            },
            report,
        };
        self.add_tree(&mut entry, &document.tree, compat);
    }

    fn add_tree(&mut self, entry: &mut Entry<'a, '_>, tree: &Node, compat: Option<Profile>) {
        let kind = tree.get("kind").and_then(Node::as_text);
        let kind = kind.unwrap_or_default();
        let items = tree.get("items").and_then(Node::as_sequence);
        if let (Some(of), Some(items)) = (kind.strip_suffix("List"), items) {
            for (index, item) in items.iter().enumerate() {
                let base = match entry.source.base.as_str() {
                    "" => format!("items[{index}]"),
                    base => format!("{base}.items[{index}]"),
                };
                let mut entry = Entry {
                    source: Source {
                        base,
                        ..entry.source.clone()
                    },
                    report: entry.report,
                };
                let item = with_kind_of_list(item, of, tree.get("apiVersion"));
                self.add_tree(&mut entry, &item, compat);
            }
            return;
        }
        if kind == "List" {
            return;
        }
        let is_master = tree.get("admissionConfig").is_some();
        if kind == "Project" || ADMISSION_KINDS.contains(&kind) || is_master {
            let mut problems = Vec::new();
            let json = tree.to_json("", &mut problems);
            entry.problems(&problems);
            match master_override(&json) {
                Some(inner) => self.add_override(entry, inner, compat),
                None if kind == "Project" => self.add_namespace(entry, &json),
                None if is_master => entry.mention(kind, None, None),
                None => self.add_override(entry, &json, compat),
            }
            return;
        }
        match self.server.read(tree) {
            Read::Object(manifest) => self.add_object(entry, manifest),
            Read::Elsewhere(reason) => {
                let row = entry
                    .source
                    .finding(Rule::NotChecked, Level::Info, "kind", &reason);
                entry.report.findings.push(row);
                let json = tree.to_json("", &mut Vec::new());
                let meta = |key: &str| json["metadata"][key].as_str().map(str::to_owned);
                entry.mention(kind, meta("namespace"), meta("name"));
            }
            Read::Nothing(problems) => entry.problems(&problems),
        }
    }

    fn add_object(&mut self, entry: &mut Entry<'a, '_>, manifest: Box<dyn Manifest>) {
        entry.problems(manifest.problems());
        self.report_repeated(entry, manifest.as_ref());
        let object = manifest.object();
        match manifest.kind() {
            "LimitRange" => self.add_limit_range(entry, object),
            "Namespace" => self.add_namespace(entry, object),
            "PriorityClass" => self.priority_classes.extend(typed(object)),
            "RuntimeClass" => self.runtime_classes.extend(typed(object)),
            _ => {}
        }
        let is_mentioned = ["LimitRange", "Namespace"].contains(&manifest.kind());
        let object = Object {
            manifest,
            source: entry.source.clone(),
        };
        if !is_mentioned && !workload::has_pods(object.manifest.kind()) {
            entry.report.documents.push(object.mention());
        }
        self.objects.push(object);
    }

    /// An object of which another manifest has the kind, namespace and name.
    fn report_repeated(&mut self, entry: &mut Entry<'a, '_>, manifest: &dyn Manifest) {
        let object = manifest.object();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let name = text(&object["metadata"]["name"]);
        if name.is_empty() {
            return;
        }
        let namespace = match manifest.is_namespaced() {
            true => namespace_of(object["metadata"]["namespace"].as_str()),
            false => String::new(),
        };
        let key = [
            text(&object["apiVersion"]),
            manifest.kind().to_owned(),
            namespace,
            name,
        ];
        let source = &entry.source;
        let path = match source.base.as_str() {
            "" => "metadata.name".to_owned(),
            base => format!("{base}.metadata.name"),
        };
        let Position { line, .. } = source.document.tree.position_of(&path);
        let place = format!("{}:{line}", source.file.name);
        match self.places.get(&key) {
            Some(first) => {
                let [_, kind, _, name] = &key;
                let message = format!("{kind} {name:?} is in {first} too");
                let path = "metadata.name";
                let row = source.finding(Rule::RepeatedObject, Level::Warning, path, &message);
                entry.report.findings.push(row);
            }
            None => {
                self.places.insert(key, place);
            }
        }
    }

    fn add_limit_range(&mut self, entry: &mut Entry<'a, '_>, json: &Value) {
        let Some(object) = typed::<LimitRange>(json) else {
            return;
        };
        let namespace = namespace_of(object.metadata.namespace.as_deref());
        entry.mention(
            "LimitRange",
            Some(namespace.clone()),
            object.metadata.name.clone(),
        );
        // The server reports what is wrong with it.
        if let Ok(mut view) = LimitRangeView::from_api(&object) {
            view.apply_defaults();
            self.limit_ranges.entry(namespace).or_default().push(view);
        }
    }

    fn add_namespace(&mut self, entry: &mut Entry<'a, '_>, json: &Value) {
        let Some(object) = typed::<Namespace>(json) else {
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

    /// Creates every object under the rules of its namespace.
    pub(super) fn check(self, memory: Option<Bytes>, report: &mut Report) {
        for object in &self.objects {
            let given = object.manifest.object()["metadata"]["namespace"].as_str();
            let name = namespace_of(given);
            let namespace = self.namespaces.get(&name);
            let namespace = namespace.cloned().unwrap_or_else(|| NamespaceView {
                name: name.clone(),
                ..NamespaceView::default()
            });
            let limit_ranges = self.limit_ranges.get(&name).map_or(&[][..], Vec::as_slice);
            let overcommit = self.overcommit.as_ref();
            let facts = Facts {
                limit_ranges,
                overcommit: overcommit.filter(|rules| rules.applies_to(&namespace)),
                priority_classes: &self.priority_classes,
                runtime_classes: &self.runtime_classes,
            };
            let mut rows = created_rows(object, &facts);
            if let Some(workload) = Workload::new(object.manifest.as_ref(), &object.source) {
                workload.check(
                    &namespace,
                    limit_ranges,
                    overcommit,
                    memory,
                    &mut rows,
                    report,
                );
            } else if workload::has_pods(object.manifest.kind()) {
                report.documents.push(object.mention());
            }
            report.findings.append(&mut rows);
        }
    }
}

/// Why the server rejects the object, and what it warns about.
fn created_rows(object: &Object<'_>, facts: &Facts<'_>) -> Vec<FindingRow> {
    let created = object.manifest.create(facts);
    let source = &object.source;
    let problems = created.problems.iter();
    let problems = problems.map(|problem| source.problem(problem));
    let warnings = created.warnings.iter().map(|warning| {
        let (path, message) = path_of_warning(warning);
        source.finding(Rule::ServerWarning, Level::Warning, path, message)
    });
    problems.chain(warnings).collect()
}

/// The path that a warning begins with, and the rest.
fn path_of_warning(warning: &str) -> (&str, &str) {
    let is_path = |path: &str| {
        let first = path.split(['.', '[']).find(|part| !part.is_empty());
        !path.contains(' ') && matches!(first, Some("metadata" | "spec"))
    };
    match warning.split_once(": ") {
        Some((path, message)) if is_path(path) => (path.trim_start_matches('.'), message),
        _ => ("", warning),
    }
}

/// The typed form of an object that the server could decode.
fn typed<T: DeserializeOwned>(object: &Value) -> Option<T> {
    T::deserialize(object).ok()
}

/// An item of a typed list may leave out what the list says.
fn with_kind_of_list(item: &Node, kind: &str, version: Option<&Node>) -> Node {
    let mut item = item.clone();
    let at = item.position;
    let Content::Mapping(members) = &mut item.content else {
        return item;
    };
    let has = |members: &[Member], name: &str| members.iter().any(|member| member.key == name);
    let mut add = |name: &str, value: Node| {
        if !has(members, name) {
            members.push(Member {
                key: name.to_owned(),
                key_position: at,
                value,
            });
        }
    };
    if !kind.is_empty() {
        add("kind", Node::text(kind, at));
        if let Some(version) = version.and_then(Node::as_text) {
            add("apiVersion", Node::text(version, at));
        }
    }
    item
}

fn namespace_of(namespace: Option<&str>) -> String {
    namespace.unwrap_or(DEFAULT_NAMESPACE).to_owned()
}

/// The override inside an OKD master configuration.
fn master_override(json: &Value) -> Option<&Value> {
    let path = "/admissionConfig/pluginConfig/ClusterResourceOverride/configuration";
    json.pointer(path)
}
