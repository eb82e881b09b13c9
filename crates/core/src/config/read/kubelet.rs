//! KubeletConfiguration v1beta1.

use crate::problem::Problem;

use super::super::document::{Entry, Node, child_path};
use super::flag::{self, Target};
use super::kubelet_fields::FIELDS;
use super::shape::{Field, wrong_type};
use super::suggest::did_you_mean;
use super::{Assignment, Origin};

const API_VERSION: &str = "kubelet.config.k8s.io/v1beta1";
const KIND: &str = "KubeletConfiguration";

/// Every field that the document sets, in its order.
pub(super) fn assignments(document: &Node, problems: &mut Vec<Problem>) -> Vec<Assignment> {
    check_type(document, API_VERSION, KIND, problems);
    let mut assignments = Vec::new();
    collect(document, "", FIELDS, &mut assignments, problems);
    assignments
}

/// Checks apiVersion and kind, which every configuration file carries.
pub(crate) fn check_type(
    document: &Node,
    api_version: &str,
    kind: &str,
    problems: &mut Vec<Problem>,
) {
    if document.as_mapping().is_none() {
        return;
    }
    for (key, expected) in [("apiVersion", api_version), ("kind", kind)] {
        match document.get(key) {
            None => {
                let problem = Problem::required(key, format!("must be {expected:?}"));
                problems.push(problem.at(Some(document.position)));
            }
            Some(node) if node.as_text() == Some(expected) => {}
            Some(node) => {
                let problem = match node.as_text() {
                    Some(text) => Problem::not_supported(key, text, &[expected]),
                    None => wrong_type(node, key, "must be a text"),
                };
                problems.push(problem.at(Some(node.position)));
            }
        }
    }
}

/// Walks an object of the document and collects the known fields below `prefix`.
pub(super) fn collect(
    node: &Node,
    prefix: &str,
    fields: &'static [Field],
    assignments: &mut Vec<Assignment>,
    problems: &mut Vec<Problem>,
) {
    if node.is_null() {
        return;
    }
    let Some(entries) = node.as_mapping() else {
        let expectation = match prefix {
            "" => "the document must be a mapping",
            _ => "must be a mapping",
        };
        problems.push(wrong_type(node, prefix, expectation));
        return;
    };
    node.report_duplicate_keys(prefix, problems);
    for entry in entries {
        let path = child_path(prefix, &entry.key);
        let is_parent = |field: &Field| {
            let rest = field.path.strip_prefix(path.as_str());
            rest.is_some_and(|rest| rest.starts_with('.'))
        };
        if let Some(field) = fields.iter().find(|field| field.path == path) {
            let is_set = !entry.value.is_null();
            if field.shape.check(&entry.value, &path, problems) && is_set {
                assignments.push(Assignment {
                    field: path.clone(),
                    node: entry.value.clone(),
                    origin: Origin::in_file(path, entry.key_position),
                });
            }
        } else if fields.iter().any(is_parent) {
            collect(&entry.value, &path, fields, assignments, problems);
        } else if !(prefix.is_empty() && matches!(entry.key.as_str(), "apiVersion" | "kind")) {
            problems.push(unknown(entry, prefix, path, fields));
        }
    }
}

fn unknown(entry: &Entry, prefix: &str, path: String, fields: &'static [Field]) -> Problem {
    let parent = match prefix {
        "" => String::new(),
        _ => format!("{prefix}."),
    };
    let below = fields
        .iter()
        .filter_map(|field| field.path.strip_prefix(&parent));
    let siblings = below.filter_map(|rest| rest.split('.').next());
    // The field may be a flag that was copied by its flag name.
    let by_flag = flag::find(&entry.key).and_then(|flag| match flag.target {
        Target::Field(path) if prefix.is_empty() => Some(path),
        _ => None,
    });
    let detail = match by_flag {
        Some(field) => format!("did you mean {field:?}?"),
        None => did_you_mean(&entry.key, siblings),
    };
    Problem::unknown(path, detail).at(Some(entry.key_position))
}
