//! The paths of a group and their operations.

use serde_json::{Map, Value, json};

use super::operation::{Target, method, operation, parameter};
use crate::kinds::{Group, Kind, Subresource, Verb};

/// Every path of the group.
pub(super) fn paths(group: &Group) -> Map<String, Value> {
    let mut paths = Map::new();
    for kind in group.kinds {
        let base = group.path();
        let scope = if kind.is_namespaced() {
            "/namespaces/{namespace}"
        } else {
            ""
        };
        let collection = format!("{base}{scope}/{}", kind.plural);
        let object = format!("{collection}/{{name}}");
        let is_for_all =
            |verb: &Verb| matches!(verb, Verb::Create | Verb::DeleteCollection | Verb::List);
        let (collective, single): (Vec<Verb>, Vec<Verb>) =
            kind.verbs.iter().partition(|v| is_for_all(v));
        add(&mut paths, &collection, &collective, kind, None);
        add(&mut paths, &object, &single, kind, None);
        for subresource in kind.subresources {
            // Streams and proxies have no objects to describe.
            if subresource.kind.ends_with("Options") {
                continue;
            }
            let path = format!("{object}/{}", subresource.name);
            add(
                &mut paths,
                &path,
                subresource.verbs,
                kind,
                Some(subresource),
            );
        }
        if kind.is_namespaced() && kind.allows(Verb::List) {
            add(
                &mut paths,
                &format!("{base}/{}", kind.plural),
                &[Verb::List],
                kind,
                None,
            );
        }
    }
    paths
}

fn add(
    paths: &mut Map<String, Value>,
    path: &str,
    verbs: &[Verb],
    kind: &Kind,
    subresource: Option<&Subresource>,
) {
    let mut item = Map::new();
    for verb in verbs {
        let Some(method) = method(*verb) else {
            continue;
        };
        let target = match subresource {
            Some(subresource) => Target::of_subresource(kind, subresource),
            None => Target::of(kind),
        };
        let id = operation_id(*verb, path, kind, subresource);
        item.insert(method.to_owned(), operation(*verb, target, id));
    }
    if item.is_empty() {
        return;
    }
    let names = ["name", "namespace"]
        .iter()
        .filter(|name| path.contains(&format!("{{{name}}}")));
    let parameters = names.map(|name| parameter("path", name, "string"));
    item.insert("parameters".to_owned(), parameters.collect());
    paths.insert(path.to_owned(), json!(item));
}

/// `patchAppsV1NamespacedDeploymentStatus`.
fn operation_id(verb: Verb, path: &str, kind: &Kind, subresource: Option<&Subresource>) -> String {
    let (verb, collection) = match verb {
        Verb::Get => ("read", ""),
        Verb::Update => ("replace", ""),
        Verb::DeleteCollection => ("delete", "Collection"),
        other => (other.as_str(), ""),
    };
    let group = match kind.group.trim_end_matches(".k8s.io") {
        "" => "core",
        group => group,
    };
    let group: String = group.split('.').map(capitalized).collect();
    let version = capitalized(kind.version);
    let is_in_namespace = path.contains("{namespace}");
    let namespaced = if is_in_namespace { "Namespaced" } else { "" };
    let everywhere = if kind.is_namespaced() && !is_in_namespace {
        "ForAllNamespaces"
    } else {
        ""
    };
    let subresource = subresource.map_or_else(String::new, |sub| capitalized(sub.name));
    format!(
        "{verb}{group}{version}{collection}{namespaced}{}{subresource}{everywhere}",
        kind.kind
    )
}

fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}
