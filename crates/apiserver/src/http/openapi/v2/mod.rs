//! The OpenAPI v2 document: all kinds in one document, in protobuf.
//!
//! kubectl before 1.27 reads nothing else, and later ones fall back to it when v3 does not have a
//! kind. They look up schemas by kind to check and merge manifests, and the PATCH operations to
//! detect support for dry runs. Only these are included.

mod message;
mod schema;

use std::sync::LazyLock;

use prost::Message;
use serde_json::Value;

use super::{annotate, paths};
use crate::http::discovery::KUBERNETES_VERSION;
use crate::http::document::Document;
use crate::kinds::GROUPS;
use message::{
    Info, NamedPathItem, NamedSchema, NonBodyParameter, Operation, Parameter, ParametersItem,
    PathItem, QueryParameter, Schemas, extension,
};

/// The media types of the document, current and deprecated.
pub const PROTOBUF: [&str; 2] = [
    "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
];

/// The document, at `/openapi/v2`.
pub fn document() -> &'static Document {
    static DOCUMENT: LazyLock<Document> =
        LazyLock::new(|| Document::of_bytes(described().encode_to_vec()));
    &DOCUMENT
}

fn described() -> message::Document {
    let definitions = annotate::schemas().into_iter();
    let definitions = definitions.map(|(name, value)| NamedSchema {
        name,
        value: Some(schema::schema(&value)),
    });
    let paths = GROUPS.iter().flat_map(paths::paths);
    let paths = paths.filter_map(|(name, item)| {
        let value = PathItem {
            patch: Some(operation(item.get("patch")?)),
        };
        Some(NamedPathItem {
            name,
            value: Some(value),
        })
    });
    message::Document {
        swagger: "2.0".to_owned(),
        info: Some(Info {
            title: "Kubernetes".to_owned(),
            version: KUBERNETES_VERSION.to_owned(),
        }),
        paths: Some(message::Paths {
            path: paths.collect(),
        }),
        definitions: Some(Schemas {
            named: definitions.collect(),
        }),
    }
}

fn operation(of: &Value) -> Operation {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let parameters = of["parameters"].as_array().into_iter().flatten();
    let parameters = parameters.map(|parameter| ParametersItem {
        parameter: Some(Parameter {
            non_body: Some(NonBodyParameter {
                query: Some(QueryParameter {
                    place: text(&parameter["in"]),
                    name: text(&parameter["name"]),
                    ty: text(&parameter["schema"]["type"]),
                    unique_items: true,
                }),
            }),
        }),
    });
    let extensions = ["x-kubernetes-action", "x-kubernetes-group-version-kind"];
    Operation {
        id: text(&of["operationId"]),
        parameters: parameters.collect(),
        extensions: extensions.map(|name| extension(name, &of[name])).to_vec(),
    }
}

#[cfg(test)]
mod tests;
