//! Schemas as OpenAPI documents have them.
//!
//! k8s-openapi has fields, types and descriptions; the table of
//! [`schema`](crate::machinery::schema) defines how lists are merged and owned. Both are walked
//! side by side, from the kinds down.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{enums, metrics};
use crate::kinds::{self, Kind, schemas::definitions};
use crate::machinery::schema::{Emit, Field, ListType, Shape, StructId, Type, schema};

pub(super) const REFERENCE_PREFIX: &str = "#/components/schemas/";
const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

/// A reference to a schema.
pub(super) fn reference(name: &str) -> Value {
    json!({"$ref": format!("{REFERENCE_PREFIX}{name}")})
}

/// All schemas, with the extensions that clients use.
pub(super) fn schemas() -> BTreeMap<String, Value> {
    let mut schemas = definitions().clone();
    schemas.extend(metrics::schemas());
    enums::add(&mut schemas);
    let mut structs = BTreeMap::new();
    for kind in kinds::all() {
        name_kind(
            &mut schemas,
            &kind.definition(),
            kind.group,
            kind.version,
            kind.kind,
        );
        add_list(&mut schemas, kind);
        match_structs(
            &kind.api_version(),
            kind.kind,
            &kind.definition(),
            &mut structs,
        );
        for sub in kind.subresources {
            if let Some((group, version)) = sub.group_version {
                let definition = kinds::definition(group, version, sub.kind);
                name_kind(&mut schemas, &definition, group, version, sub.kind);
            }
        }
    }
    for group in kinds::GROUPS {
        let options = format!("{META}.DeleteOptions");
        name_kind(
            &mut schemas,
            &options,
            group.name,
            group.version,
            "DeleteOptions",
        );
    }
    name_kind(&mut schemas, &format!("{META}.Status"), "", "v1", "Status");
    for (definition, id) in structs {
        if let Some(schema) = schemas.get_mut(&definition) {
            annotate(schema, id);
        }
    }
    for schema in schemas.values_mut() {
        not_required(schema, "metadata");
        wrap_references(schema);
    }
    replace_unions(&mut schemas);
    schemas
}

/// Tags a schema as that of a kind; a schema may have several tags.
fn name_kind(
    schemas: &mut BTreeMap<String, Value>,
    definition: &str,
    group: &str,
    version: &str,
    kind: &str,
) {
    let Some(schema) = schemas.get_mut(definition) else {
        return;
    };
    let tag = json!({"group": group, "version": version, "kind": kind});
    match &mut schema["x-kubernetes-group-version-kind"] {
        Value::Array(tags) if tags.contains(&tag) => {}
        Value::Array(tags) => tags.push(tag),
        tags => *tags = json!([tag]),
    }
}

/// The schema of a list of objects, which k8s-openapi has only as a generic type.
fn add_list(schemas: &mut BTreeMap<String, Value>, kind: &Kind) {
    let property = |name: &str| schemas[&kind.definition()]["properties"][name].clone();
    let list = json!({
        "description": format!("{} is a list of {}.", kind.list_kind(), kind.plural),
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": property("apiVersion"),
            "kind": property("kind"),
            "metadata": reference(&format!("{META}.ListMeta")),
            "items": {"type": "array", "items": reference(&kind.definition())},
        },
        "x-kubernetes-group-version-kind": [
            {"group": kind.group, "version": kind.version, "kind": kind.list_kind()},
        ],
    });
    schemas.insert(format!("{}List", kind.definition()), list);
}

/// Finds the struct behind each schema below a kind.
fn match_structs(
    api_version: &str,
    kind: &str,
    definition: &str,
    structs: &mut BTreeMap<String, StructId>,
) {
    let Some(id) = schema().kind(api_version, kind) else {
        return;
    };
    let mut todo = vec![(definition.to_owned(), id)];
    while let Some((definition, id)) = todo.pop() {
        let Some(properties) = definitions().get(&definition).map(|d| &d["properties"]) else {
            continue;
        };
        if structs.insert(definition, id).is_some() {
            continue;
        }
        for field in &schema().get(id).fields {
            if let Some(inner) = inner_struct(&field.ty) {
                todo.extend(referenced(&properties[field.name]).map(|name| (name, inner)));
            }
        }
    }
}

/// The struct of a field, of its items or of its values.
fn inner_struct(ty: &Type) -> Option<StructId> {
    match &ty.shape {
        Shape::Struct(id) => Some(*id),
        Shape::Pointer(ty) | Shape::List(ty) | Shape::Map(ty) => inner_struct(ty),
        _ => None,
    }
}

/// The schema that a property, its items or its values refer to.
fn referenced(property: &Value) -> Option<String> {
    let inner = [
        property,
        &property["items"],
        &property["additionalProperties"],
    ];
    let name = inner.iter().find_map(|schema| schema["$ref"].as_str())?;
    Some(name.trim_start_matches(REFERENCE_PREFIX).to_owned())
}

fn annotate(schema_value: &mut Value, id: StructId) {
    let ty = schema().get(id);
    if ty.is_atomic {
        schema_value["x-kubernetes-map-type"] = json!("atomic");
    }
    let is_optional = |name: &str| ty.field(name).is_some_and(|f| f.emit != Emit::Always);
    if is_optional("name") {
        not_required(schema_value, "name");
    }
    for field in &ty.fields {
        if let Some(Value::Object(property)) = schema_value["properties"].get_mut(field.name) {
            annotate_field(property, field);
        }
    }
}

/// k8s-openapi calls metadata required, and names too, which Go leaves out when they are empty.
fn not_required(schema_value: &mut Value, field: &str) {
    let Some(schema) = schema_value.as_object_mut() else {
        return;
    };
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.retain(|name| name != field);
        if required.is_empty() {
            schema.remove("required");
        }
    }
}

fn annotate_field(property: &mut Map<String, Value>, field: &Field) {
    let mut set = |name: &str, value: Value| property.insert(format!("x-kubernetes-{name}"), value);
    if !field.patch.tag.is_empty() {
        set("patch-strategy", json!(field.patch.tag));
    }
    if !field.patch.merge_key.is_empty() {
        set("patch-merge-key", json!(field.patch.merge_key));
    }
    match &field.list {
        ListType::Map(keys) => {
            set("list-type", json!("map"));
            set("list-map-keys", json!(keys));
        }
        ListType::Set => {
            set("list-type", json!("set"));
        }
        // The default of a list.
        ListType::Atomic => {}
    }
    if field.is_atomic {
        set("map-type", json!("atomic"));
    }
}

/// OpenAPI ignores members next to a reference, so a reference with a description is wrapped.
fn wrap_references(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.values_mut().for_each(wrap_references);
            if members.len() > 1
                && let Some(target) = members.remove("$ref")
            {
                members.insert("allOf".to_owned(), json!([{"$ref": target}]));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(wrap_references),
        _ => {}
    }
}

/// The two types that are a number or a text.
fn replace_unions(schemas: &mut BTreeMap<String, Value>) {
    let unions = [
        (
            "io.k8s.apimachinery.pkg.api.resource.Quantity",
            json!([{"type": "string"}, {"type": "number"}]),
            None,
        ),
        (
            "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
            json!([{"type": "integer"}, {"type": "string"}]),
            Some("int-or-string"),
        ),
    ];
    for (name, alternatives, format) in unions {
        let Some(Value::Object(schema)) = schemas.get_mut(name) else {
            continue;
        };
        schema.remove("x-kubernetes-int-or-string");
        schema.insert("oneOf".to_owned(), alternatives);
        if let Some(format) = format {
            schema.insert("format".to_owned(), json!(format));
        }
    }
}

/// Adds every schema that `value` refers to, directly or through others.
pub(super) fn collect_references(
    value: &Value,
    schemas: &BTreeMap<String, Value>,
    used: &mut BTreeMap<String, Value>,
) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match member.as_str().filter(|_| name == "$ref") {
                    Some(target) => collect_reference(target, schemas, used),
                    None => collect_references(member, schemas, used),
                }
            }
        }
        Value::Array(items) => {
            items
                .iter()
                .for_each(|item| collect_references(item, schemas, used));
        }
        _ => {}
    }
}

fn collect_reference(
    target: &str,
    schemas: &BTreeMap<String, Value>,
    used: &mut BTreeMap<String, Value>,
) {
    let name = target.trim_start_matches(REFERENCE_PREFIX);
    if used.contains_key(name) {
        return;
    }
    if let Some(schema) = schemas.get(name) {
        used.insert(name.to_owned(), schema.clone());
        collect_references(schema, schemas, used);
    }
}
