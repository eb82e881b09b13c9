//! A visit to every struct of an object.

use serde_json::{Map, Value};

use super::{Schema, Shape, Struct, TypeId};

/// Calls `visit` on each struct that is there, outer ones before those within.
///
/// `visit` may add members; they are visited too.
pub fn walk(
    id: TypeId,
    value: &mut Value,
    visit: &mut impl FnMut(&Struct, &mut Map<String, Value>),
) {
    let schema = Schema::get();
    match (&schema[id].shape, value) {
        (Shape::Pointer(inner), value) => walk(*inner, value, visit),
        (Shape::List(item), Value::Array(items)) => {
            for value in items {
                walk(*item, value, visit);
            }
        }
        (Shape::Map(of), Value::Object(members)) => {
            for value in members.values_mut() {
                walk(*of, value, visit);
            }
        }
        (Shape::Struct(fields), Value::Object(members)) => {
            visit(fields, members);
            for (name, value) in members {
                if let Some(field) = fields.field(name) {
                    walk(field.of, value, visit);
                }
            }
        }
        _ => {}
    }
}
