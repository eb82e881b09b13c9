//! A schema of v3 as v2 has it.

use serde_json::Value;

use super::message::{
    AdditionalProperties, Items, NamedSchema, Schema, Schemas, TypeItem, extension,
};
use crate::http::openapi::annotate::REFERENCE_PREFIX;

/// The message for a schema.
pub(super) fn schema(of: &Value) -> Schema {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let required = of["required"].as_array().into_iter().flatten();
    let properties = of["properties"].as_object().map(|properties| {
        let named = properties.iter().map(|(name, property)| NamedSchema {
            name: name.clone(),
            value: Some(schema(property)),
        });
        Schemas {
            named: named.collect(),
        }
    });
    let values = of.get("additionalProperties").filter(|v| v.is_object());
    let items = of.get("items").map(|items| Items {
        schema: vec![schema(items)],
    });
    let members = of.as_object().into_iter().flatten();
    let extensions = members.filter(|(name, _)| name.starts_with("x-"));
    Schema {
        reference: reference(of),
        format: text(&of["format"]),
        description: text(&of["description"]),
        required: required.map(text).collect(),
        values: values.map(|values| {
            let schema = Some(Box::new(schema(values)));
            Box::new(AdditionalProperties { schema })
        }),
        ty: type_of(of).map(|ty| TypeItem { value: vec![ty] }),
        items,
        properties,
        extensions: extensions.map(|(name, v)| extension(name, v)).collect(),
    }
}

/// Version 2 allows descriptions next to a reference, so nothing is wrapped there.
fn reference(of: &Value) -> String {
    let wrapped = &of["allOf"][0]["$ref"];
    let target = of["$ref"].as_str().or(wrapped.as_str());
    let name = target.map(|target| target.trim_start_matches(REFERENCE_PREFIX));
    name.map_or_else(String::new, |name| format!("#/definitions/{name}"))
}

/// Version 2 has no alternatives: a number or string is declared as a string.
fn type_of(of: &Value) -> Option<String> {
    match of.get("oneOf") {
        Some(_) => Some("string".to_owned()),
        None => Some(of["type"].as_str()?.to_owned()),
    }
}
