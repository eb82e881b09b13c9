//! The OpenAPI v3 documents: one per group and version, and an index of them. `v2` is the single
//! older document.
//!
//! kubectl reads them before it creates or applies anything: a PATCH operation with
//! `fieldValidation` means that the server validates fields itself, the schemas define how lists
//! are merged, and `kubectl explain` prints them. The documents describe what is served and its
//! types; descriptions of parameters, which no client shows, are left out.
//!
//! Reading order: `annotate` (schemas as OpenAPI has them), `operation`, `paths`.

mod annotate;
mod enums;
mod metrics;
mod operation;
mod paths;
mod v2;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use super::discovery::KUBERNETES_VERSION;
use super::document::Document;
use crate::kinds::{GROUPS, Group};

pub use v2::{PROTOBUF, document as v2_document};

/// The index, at `/openapi/v3`.
pub fn index() -> &'static Document {
    static INDEX: LazyLock<Document> = LazyLock::new(|| {
        let paths = DOCUMENTS.iter().map(|(name, document)| {
            let url = format!("/openapi/v3/{name}?hash={}", document.hash);
            (name.clone(), json!({"serverRelativeURL": url}))
        });
        let paths: Map<String, Value> = paths.collect();
        Document::new(&json!({"paths": paths}))
    });
    &INDEX
}

/// The document at `/openapi/v3/<name>`, such as `api/v1` or `apis/apps/v1`.
pub fn document(name: &str) -> Option<&'static Document> {
    DOCUMENTS.get(name)
}

static DOCUMENTS: LazyLock<BTreeMap<String, Document>> = LazyLock::new(|| {
    let schemas = annotate::schemas();
    let documents = GROUPS.iter().map(|group| {
        let name = group.path().trim_start_matches('/').to_owned();
        (name, Document::new(&group_document(group, &schemas)))
    });
    documents.collect()
});

fn group_document(group: &Group, schemas: &BTreeMap<String, Value>) -> Value {
    let paths = paths::paths(group);
    let mut used = BTreeMap::new();
    for path in paths.values() {
        annotate::collect_references(path, schemas, &mut used);
    }
    json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": KUBERNETES_VERSION},
        "paths": paths,
        "components": {
            "schemas": used,
            "securitySchemes": {"BearerToken": {
                "description": "Bearer Token authentication",
                "type": "apiKey",
                "name": "authorization",
                "in": "header",
            }},
        },
    })
}

#[cfg(test)]
mod tests;
