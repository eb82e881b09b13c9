//! Which kind a manifest is of.

use plimsoll_core::config::closest;
use plimsoll_core::config::document::Node;
use plimsoll_core::problem::Problem;

use crate::kinds::{self, Kind};
use crate::machinery::schema::schema;

/// What the `apiVersion` and `kind` of a manifest name.
#[derive(Clone, Debug)]
pub enum Recognized {
    /// A kind that the server serves.
    Served(&'static Kind),
    /// A kind that the server does not serve, but another may.
    Elsewhere(String),
    /// No kind.
    Nothing(Vec<Problem>),
}

/// Groups of Kubernetes that are not served, with kinds of Kubernetes v1.36.
const NOT_SERVED: [&str; 10] = [
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "autoscaling",
    "discovery.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "networking.k8s.io",
    "policy",
    "snapshot.storage.k8s.io",
    "storagemigration.k8s.io",
];

/// Domains of files that are read by programs and not by API servers.
const CONFIGURATION: [&str; 3] = [".config.k8s.io", "kubeadm.k8s.io", "audit.k8s.io"];

/// Recognizes the kind of a document.
pub fn recognize(tree: &Node) -> Recognized {
    let mut problems = Vec::new();
    let version = field(tree, "apiVersion", "v1 or apps/v1", &mut problems);
    let kind = field(tree, "kind", "Pod or Deployment", &mut problems);
    let (Some(version), Some(kind)) = (version, kind) else {
        return Recognized::Nothing(problems);
    };
    if let Some(served) = kinds::by_kind(version, kind) {
        return Recognized::Served(served);
    }
    let (group, _) = version.split_once('/').unwrap_or(("", version));
    let elsewhere = || Recognized::Elsewhere(format!("{kind} of {version} is not served"));
    if CONFIGURATION.iter().any(|domain| group.ends_with(domain)) {
        return elsewhere();
    }
    let is_foreign = group.contains('.') && !group.ends_with(".k8s.io");
    let problem = match served_elsewhere(kind) {
        Some(served) => Problem::not_supported("apiVersion", version, &[&served.api_version()])
            .with_detail(format!("{kind} is served as {}", served.api_version()))
            .at(Some(tree.position_of("apiVersion"))),
        None if is_foreign || NOT_SERVED.contains(&group) || has_schema(version, kind) => {
            return elsewhere();
        }
        None => unknown_kind(tree, version, kind),
    };
    Recognized::Nothing(vec![problem])
}

/// A text at the top of a document.
fn field<'a>(
    tree: &'a Node,
    name: &str,
    example: &str,
    problems: &mut Vec<Problem>,
) -> Option<&'a str> {
    let problem = match tree.get(name) {
        Some(node) => match node.as_text() {
            Some("") => Problem::required(name, format!("must be a name such as {example}")),
            Some(text) => return Some(text),
            None => Problem::wrong_type(name, node.describe(), "must be a string"),
        },
        None => {
            let names = tree.as_mapping().unwrap_or_default();
            let close = names
                .iter()
                .filter(|entry| closest(&entry.key, [name].into_iter()).is_some());
            let mut close = close.map(|entry| entry.key.as_str());
            match close.next() {
                Some(misspelt) => Problem::required(name, format!("is {misspelt:?} meant for it?")),
                None => Problem::required(name, format!("must be a name such as {example}")),
            }
        }
    };
    problems.push(problem.at(Some(tree.position_of(name))));
    None
}

fn served_elsewhere(kind: &str) -> Option<&'static Kind> {
    // Events are served twice.
    kinds::all().find(|row| row.kind == kind)
}

fn has_schema(version: &str, kind: &str) -> bool {
    schema().kind(version, kind).is_some()
}

fn unknown_kind(tree: &Node, version: &str, kind: &str) -> Problem {
    let same_version = kinds::all().filter(|row| row.api_version() == version);
    let names: Vec<&str> = same_version.map(|row| row.kind).collect();
    let all = kinds::all().map(|row| row.kind);
    let meant = closest(kind, names.iter().copied()).or_else(|| closest(kind, all));
    let detail = match (meant, names.is_empty()) {
        (Some(meant), _) => format!("no such kind in {version}; did you mean {meant:?}?"),
        (None, true) => format!("no such kind: apiVersion {version} is not served"),
        (None, false) => format!("no such kind in {version}"),
    };
    Problem::invalid("kind", kind, detail).at(Some(tree.position_of("kind")))
}
