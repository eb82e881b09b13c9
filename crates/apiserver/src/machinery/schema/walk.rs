//! Visiting every struct of an object.

use serde_json::{Map, Value};

use super::structs::{Shape, Struct, StructId, Type, schema};

/// Calls `visit` on each struct in the object, outer ones before those within.
///
/// `visit` may add members; they are visited too.
pub fn walk(
    id: StructId,
    value: &mut Value,
    visit: &mut impl FnMut(&Struct, &mut Map<String, Value>),
) {
    let Value::Object(members) = value else {
        return;
    };
    let definition = schema().get(id);
    visit(definition, members);
    for (name, value) in members {
        if let Some(field) = definition.field(name) {
            walk_type(&field.ty, value, visit);
        }
    }
}

fn walk_type(
    ty: &Type,
    value: &mut Value,
    visit: &mut impl FnMut(&Struct, &mut Map<String, Value>),
) {
    match (&ty.shape, value) {
        (Shape::Pointer(inner), value) => walk_type(inner, value, visit),
        (Shape::List(item), Value::Array(items)) => {
            for value in items {
                walk_type(item, value, visit);
            }
        }
        (Shape::Map(of), Value::Object(members)) => {
            for value in members.values_mut() {
                walk_type(of, value, visit);
            }
        }
        (Shape::Struct(id), value) => walk(*id, value, visit),
        _ => {}
    }
}
