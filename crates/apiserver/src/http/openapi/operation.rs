//! One operation: a method on a path, with its parameters.

use serde_json::{Value, json};

use super::annotate::reference;
use crate::kinds::{self, Kind, Subresource, Verb};

/// The target of an operation.
#[derive(Clone, Copy)]
pub(super) struct Target {
    pub(super) group: &'static str,
    pub(super) version: &'static str,
    pub(super) kind: &'static str,
}

impl Target {
    pub(super) fn of(kind: &Kind) -> Target {
        Target {
            group: kind.group,
            version: kind.version,
            kind: kind.kind,
        }
    }

    pub(super) fn of_subresource(kind: &Kind, subresource: &Subresource) -> Target {
        let own = (kind.group, kind.version);
        let (group, version) = subresource.group_version.unwrap_or(own);
        Target {
            group,
            version,
            kind: subresource.kind,
        }
    }

    fn definition(self) -> String {
        kinds::definition(self.group, self.version, self.kind)
    }
}

/// The HTTP method of a verb; watches are lists.
pub(super) fn method(verb: Verb) -> Option<&'static str> {
    match verb {
        Verb::Create => Some("post"),
        Verb::Delete | Verb::DeleteCollection => Some("delete"),
        Verb::Get | Verb::List => Some("get"),
        Verb::Patch => Some("patch"),
        Verb::Update => Some("put"),
        Verb::Watch => None,
    }
}

/// The operation of a verb; `id` is unique in the document.
pub(super) fn operation(verb: Verb, target: Target, id: String) -> Value {
    let definition = target.definition();
    let mut operation = json!({
        "operationId": id,
        "x-kubernetes-action": action(verb),
        "x-kubernetes-group-version-kind":
            {"group": target.group, "version": target.version, "kind": target.kind},
        "parameters": parameters(verb),
        "responses": {
            "200": {
                "description": "OK",
                "content": {"application/json": {"schema": responses(verb, &definition)}},
            },
            "401": {"description": "Unauthorized"},
        },
    });
    if let Some(body) = request_body(verb, &definition) {
        operation["requestBody"] = body;
    }
    operation
}

fn action(verb: Verb) -> &'static str {
    match verb {
        Verb::Create => "post",
        Verb::Update => "put",
        other => other.as_str(),
    }
}

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

fn responses(verb: Verb, definition: &str) -> Value {
    match verb {
        Verb::List => reference(&format!("{definition}List")),
        Verb::Delete | Verb::DeleteCollection => reference(&format!("{META}.Status")),
        _ => reference(definition),
    }
}

fn request_body(verb: Verb, definition: &str) -> Option<Value> {
    let (schema, media_types): (Value, &[&str]) = match verb {
        Verb::Create | Verb::Update => (reference(definition), &["*/*"]),
        Verb::Delete | Verb::DeleteCollection => {
            (reference(&format!("{META}.DeleteOptions")), &["*/*"])
        }
        Verb::Patch => (
            reference(&format!("{META}.Patch")),
            &[
                "application/apply-patch+yaml",
                "application/json-patch+json",
                "application/merge-patch+json",
                "application/strategic-merge-patch+json",
            ],
        ),
        _ => return None,
    };
    let content = media_types
        .iter()
        .map(|ty| ((*ty).to_owned(), json!({"schema": schema})));
    Some(json!({"content": content.collect::<serde_json::Map<_, _>>()}))
}

fn parameters(verb: Verb) -> Vec<Value> {
    let (texts, numbers, flags): (&[&str], &[&str], &[&str]) = match verb {
        Verb::Create | Verb::Update => (&["dryRun", "fieldManager", "fieldValidation"], &[], &[]),
        Verb::Patch => (
            &["dryRun", "fieldManager", "fieldValidation"],
            &[],
            &["force"],
        ),
        Verb::Delete => (
            &["dryRun", "propagationPolicy"],
            &["gracePeriodSeconds"],
            &["orphanDependents"],
        ),
        Verb::DeleteCollection => (
            &[
                "continue",
                "dryRun",
                "fieldSelector",
                "labelSelector",
                "propagationPolicy",
                "resourceVersion",
                "resourceVersionMatch",
            ],
            &["gracePeriodSeconds", "limit", "timeoutSeconds"],
            &["orphanDependents"],
        ),
        Verb::List => (
            &[
                "continue",
                "fieldSelector",
                "labelSelector",
                "resourceVersion",
                "resourceVersionMatch",
            ],
            &["limit", "timeoutSeconds"],
            &["allowWatchBookmarks", "sendInitialEvents", "watch"],
        ),
        Verb::Get | Verb::Watch => (&[], &[], &[]),
    };
    let typed = |names: &'static [&'static str], ty: &'static str| {
        names.iter().map(move |name| parameter("query", name, ty))
    };
    let texts = typed(texts, "string");
    texts
        .chain(typed(numbers, "integer"))
        .chain(typed(flags, "boolean"))
        .collect()
}

pub(super) fn parameter(place: &str, name: &str, ty: &str) -> Value {
    let mut parameter =
        json!({"in": place, "name": name, "schema": {"type": ty, "uniqueItems": true}});
    if place == "path" {
        parameter["required"] = json!(true);
    }
    parameter
}
