//! Parsing the tables.
//!
//! The tables are part of the program: an error in them is a bug, found by the
//! first test that uses them.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use super::structs::{
    Emit, Field, FieldNames, ListType, Patch, Schema, Shape, Struct, StructId, Type,
};

const TABLES: [&str; 18] = [
    include_str!("tables/meta.txt"),
    include_str!("tables/core.txt"),
    include_str!("tables/apps.txt"),
    include_str!("tables/authentication.txt"),
    include_str!("tables/authorization.txt"),
    include_str!("tables/autoscaling.txt"),
    include_str!("tables/batch.txt"),
    include_str!("tables/certificates.txt"),
    include_str!("tables/coordination.txt"),
    include_str!("tables/discovery.txt"),
    include_str!("tables/events.txt"),
    include_str!("tables/networking.txt"),
    include_str!("tables/node.txt"),
    include_str!("tables/policy.txt"),
    include_str!("tables/rbac.txt"),
    include_str!("tables/resource.txt"),
    include_str!("tables/scheduling.txt"),
    include_str!("tables/storage.txt"),
];

/// Names of all packages: structs by index, aliases by their target.
#[derive(Default)]
struct Names {
    structs: BTreeMap<(&'static str, &'static str), StructId>,
    aliases: BTreeMap<(&'static str, &'static str), &'static str>,
}

pub(super) fn parse_tables() -> Schema {
    let names = collect_names();
    let mut schema = Schema {
        structs: Vec::with_capacity(names.structs.len()),
        kinds: BTreeMap::new(),
        packages: BTreeMap::new(),
        types: BTreeMap::new(),
    };
    for ((package, name), id) in &names.structs {
        schema
            .packages
            .entry(package)
            .or_default()
            .insert(name, *id);
    }
    for table in TABLES {
        let (mut package, mut api_version, mut is_kind) = ("", "", false);
        for line in table.lines() {
            let words: Vec<&'static str> = line.split_whitespace().collect();
            match words.as_slice() {
                ["package", name, version] => (package, api_version) = (name, version),
                ["alias", ..] => {}
                ["struct", name, marks @ ..] => {
                    is_kind = marks.contains(&"kind");
                    if is_kind {
                        let id = StructId(schema.structs.len());
                        schema
                            .kinds
                            .entry(api_version)
                            .or_default()
                            .insert(name, id);
                        let (group, version) =
                            api_version.split_once('/').unwrap_or(("", api_version));
                        schema.types.insert((name, version, group), id);
                    }
                    schema.structs.push(Struct {
                        package,
                        name,
                        is_atomic: marks.contains(&"atomic"),
                        fields: Vec::new(),
                        by_name: FieldNames::default(),
                        printed: Vec::new(),
                        empty: OnceLock::new(),
                    });
                }
                [name, ty, marks @ ..] => {
                    let mut field = parse_field(name, parse_type(&names, package, ty), marks);
                    if is_kind && matches!(*name, "kind" | "apiVersion") {
                        field.embedded_in.push("TypeMeta");
                    }
                    let last = schema.structs.last_mut().expect("a field follows a struct");
                    last.by_name.insert(name, last.fields.len());
                    if field.is_printed_unset() {
                        last.printed.push(last.fields.len());
                    }
                    last.fields.push(field);
                }
                _ => unreachable!("table line {line:?}"),
            }
        }
    }
    schema
}

fn collect_names() -> Names {
    let mut names = Names::default();
    for table in TABLES {
        let mut package = "";
        for line in table.lines() {
            match line.split_whitespace().collect::<Vec<_>>().as_slice() {
                ["package", name, _] => package = name,
                ["alias", name, target] => {
                    names.aliases.insert((package, name), target);
                }
                ["struct", name, ..] => {
                    let id = StructId(names.structs.len());
                    names.structs.insert((package, name), id);
                }
                _ => {}
            }
        }
    }
    names
}

fn parse_field(name: &'static str, ty: Type, marks: &[&'static str]) -> Field {
    let mut field = Field {
        name,
        ty,
        emit: Emit::OmitEmpty,
        patch: Patch::default(),
        list: ListType::Atomic,
        is_atomic: false,
        key_default: None,
        embedded_in: Vec::new(),
        numbers: Vec::new(),
    };
    for mark in marks {
        match mark.split_once('=') {
            None if *mark == "always" => field.emit = Emit::Always,
            None if *mark == "omitzero" => field.emit = Emit::OmitZero,
            None if *mark == "atomic" => field.is_atomic = true,
            Some(("patch", value)) => field.patch = parse_patch(value),
            Some(("list", "set")) => field.list = ListType::Set,
            Some(("list", keys)) => {
                let keys = keys.trim_start_matches("map:");
                field.list = ListType::Map(keys.split(',').collect());
            }
            Some(("in", structs)) => field.embedded_in = structs.split('.').collect(),
            Some(("pb", numbers)) => {
                let numbers = numbers.split('.').map(str::parse);
                let numbers: Result<Vec<u32>, _> = numbers.collect();
                field.numbers = numbers.expect("protobuf numbers are numbers");
            }
            Some(("default", value)) => {
                field.key_default =
                    Some(serde_json::from_str(value).expect("defaults are JSON in the tables"));
            }
            _ => unreachable!("mark {mark:?} of {name}"),
        }
    }
    field
}

/// `merge,retainKeys:name`. `$retainKeys` is supported wherever a patch has it, so only the other
/// strategy is kept.
fn parse_patch(value: &'static str) -> Patch {
    let (strategies, merge_key) = value.split_once(':').unwrap_or((value, ""));
    let strategy = strategies
        .split(',')
        .find(|strategy| *strategy != "retainKeys")
        .unwrap_or_default();
    Patch {
        strategy,
        merge_key,
        tag: strategies,
    }
}

fn parse_type(names: &Names, package: &'static str, text: &'static str) -> Type {
    if let Some(inner) = text.strip_prefix('*') {
        return Type::unnamed(Shape::Pointer(Box::new(parse_type(names, package, inner))));
    }
    if text == "[]byte" {
        return Type::unnamed(Shape::Bytes);
    }
    if let Some(inner) = text.strip_prefix("[]") {
        return Type::unnamed(Shape::List(Box::new(parse_type(names, package, inner))));
    }
    if let Some(rest) = text.strip_prefix("map[") {
        let (key, value) = rest.split_once(']').expect("a map has a key type");
        let key = parse_type(names, package, key).go_name();
        let value = parse_type(names, package, value);
        let go_name = format!("map[{key}]{}", value.go_name());
        return Type {
            shape: Shape::Map(Box::new(value)),
            go_name,
        };
    }
    if let Some(builtin) = parse_builtin(text) {
        return builtin;
    }
    let (package, name) = text.split_once('.').unwrap_or((package, text));
    if let Some(id) = names.structs.get(&(package, name)) {
        return named(Shape::Struct(*id), name);
    }
    let target = names
        .aliases
        .get(&(package, name))
        .unwrap_or_else(|| panic!("type {package}.{name} is in no table"));
    named(parse_type(names, package, target).shape, name)
}

/// All API packages are called `v1`.
fn named(shape: Shape, name: &str) -> Type {
    Type {
        shape,
        go_name: format!("v1.{name}"),
    }
}

fn parse_builtin(text: &str) -> Option<Type> {
    let (shape, go_name) = match text {
        "bool" => (Shape::Bool, ""),
        "int32" => (Shape::Int(32), ""),
        "int64" => (Shape::Int(64), ""),
        "int" => (Shape::Int(64), "int"),
        "float64" => (Shape::Float, ""),
        "string" => (Shape::String, ""),
        "UID" => (Shape::String, "types.UID"),
        "NodeName" => (Shape::String, "types.NodeName"),
        "Quantity" => (Shape::Quantity, "resource.Quantity"),
        "IntOrString" => (Shape::IntOrString, "intstr.IntOrString"),
        "Time" => (Shape::Time, "v1.Time"),
        "MicroTime" => (Shape::MicroTime, "v1.MicroTime"),
        "RawExtension" => (Shape::Raw, "runtime.RawExtension"),
        "FieldsV1" => (Shape::Raw, "v1.FieldsV1"),
        _ => return None,
    };
    Some(Type {
        shape,
        go_name: go_name.to_owned(),
    })
}
