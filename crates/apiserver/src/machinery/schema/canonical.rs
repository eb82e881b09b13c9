//! Objects as upstream prints them.

use serde_json::{Map, Value};

use super::structs::{Emit, Field, Shape, StructId, Type, schema};

/// Leaves out members that Go's encoder leaves out, and adds the zeros that it prints.
///
/// The value must be of the type, as it is after decoding; unknown members are
/// dropped.
pub fn canonicalize(id: StructId, value: &mut Value) {
    let mut given = match value.take() {
        Value::Object(given) => given,
        _ => Map::new(),
    };
    let definition = schema().get(id);
    let mut is_clean = true;
    for (name, value) in &mut given {
        is_clean &= definition.field(name).is_some_and(|field| {
            canonicalize_type(&field.ty, value);
            !is_left_out(field, value)
        });
    }
    // Most objects have nothing to be left out, and removing members from a map is costly.
    if !is_clean {
        given.retain(|name, value| {
            let field = definition.field(name);
            field.is_some_and(|field| !is_left_out(field, value))
        });
    }
    for field in definition.printed_fields() {
        if !given.contains_key(field.name)
            && let Some(zero) = zero_field(field)
        {
            given.insert(field.name.to_owned(), zero);
        }
    }
    *value = Value::Object(given);
}

fn canonicalize_type(ty: &Type, value: &mut Value) {
    match &ty.shape {
        Shape::Pointer(_) if value.is_null() => {}
        Shape::Pointer(inner) => canonicalize_type(inner, value),
        Shape::List(item) => {
            for value in value.as_array_mut().into_iter().flatten() {
                canonicalize_type(item, value);
            }
        }
        Shape::Map(of) => {
            for value in value.as_object_mut().into_iter().flat_map(Map::values_mut) {
                canonicalize_type(of, value);
            }
        }
        Shape::Struct(id) => canonicalize(*id, value),
        _ if value.is_null() => *value = zero(ty),
        _ => {}
    }
}

/// The printed value of an unset field, if it is printed.
pub(super) fn zero_field(field: &Field) -> Option<Value> {
    field.is_printed_unset().then(|| zero(&field.ty))
}

/// Whether Go's encoder skips the field.
pub(super) fn is_left_out(field: &Field, value: &Value) -> bool {
    match field.emit {
        Emit::Always => false,
        Emit::OmitEmpty => is_empty(&field.ty, value),
        Emit::OmitZero => is_empty(&field.ty, value) || *value == zero(&field.ty),
    }
}

/// Go's `omitempty`: false, zero, "", nil and whatever has no items; structs are never empty.
fn is_empty(ty: &Type, value: &Value) -> bool {
    match (&ty.shape, value) {
        (Shape::Pointer(_) | Shape::List(_) | Shape::Map(_) | Shape::Bytes, Value::Null)
        | (Shape::Bool, Value::Bool(false)) => true,
        (Shape::List(_), Value::Array(items)) => items.is_empty(),
        (Shape::Map(_), Value::Object(map)) => map.is_empty(),
        (Shape::String | Shape::Bytes, Value::String(text)) => text.is_empty(),
        (Shape::Int(_) | Shape::Float, Value::Number(number)) => number.as_f64() == Some(0.0),
        _ => false,
    }
}

/// A type's zero value as Go writes it.
pub(super) fn zero(ty: &Type) -> Value {
    match &ty.shape {
        Shape::Bool => Value::Bool(false),
        Shape::Int(_) | Shape::Float | Shape::IntOrString => Value::from(0),
        Shape::String => Value::from(""),
        Shape::Quantity => Value::from("0"),
        Shape::Struct(id) => zero_struct(*id),
        Shape::Bytes
        | Shape::Time
        | Shape::MicroTime
        | Shape::Raw
        | Shape::Pointer(_)
        | Shape::List(_)
        | Shape::Map(_) => Value::Null,
    }
}

fn zero_struct(id: StructId) -> Value {
    let mut out = Map::new();
    for field in schema().get(id).printed_fields() {
        if let Some(zero) = zero_field(field) {
            out.insert(field.name.to_owned(), zero);
        }
    }
    Value::Object(out)
}

/// The zero object of a kind, as Go encodes it.
pub fn empty(id: StructId) -> &'static Value {
    schema().get(id).empty.get_or_init(|| zero_struct(id))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn canonical(group: &str, kind: &str, mut value: Value) -> Value {
        canonicalize(schema().kind(group, kind).unwrap(), &mut value);
        value
    }

    #[test]
    fn empty_values_are_left_out_unless_they_are_pointers() {
        let pod = json!({"spec": {
            "containers": [{"name": "a", "image": "", "resources": {}}],
            "hostNetwork": false, "enableServiceLinks": false, "priority": 0, "volumes": [],
        }});
        assert_eq!(
            canonical("v1", "Pod", pod),
            json!({
                "metadata": {},
                "spec": {
                    "containers": [{"name": "a", "resources": {}}],
                    "enableServiceLinks": false, "priority": 0,
                },
                "status": {},
            })
        );
    }

    #[test]
    fn zeros_are_added_for_fields_without_omitempty() {
        let event = canonical("v1", "Event", json!({}));
        assert_eq!(event["reportingComponent"], json!(""));
        assert_eq!(event["firstTimestamp"], Value::Null);
        assert_eq!(
            canonical("v1", "Node", json!({}))["status"]["daemonEndpoints"],
            json!({"kubeletEndpoint": {"Port": 0}})
        );
    }
}
