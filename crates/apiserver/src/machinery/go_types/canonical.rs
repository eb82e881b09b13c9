//! Objects as upstream prints them.

use serde_json::{Map, Value};

use super::{Field, Omit, Schema, Shape, TypeId};

/// Leaves out what Go's encoder leaves out, and adds the zeros that it prints.
///
/// The value must be of the type, as it is after decoding; members that the type does not know are
/// dropped.
pub fn canonicalize(id: TypeId, value: &mut Value) {
    let schema = Schema::get();
    match &schema[id].shape {
        Shape::Pointer(_) if value.is_null() => {}
        Shape::Pointer(inner) => canonicalize(*inner, value),
        Shape::List(item) => {
            for value in value.as_array_mut().into_iter().flatten() {
                canonicalize(*item, value);
            }
        }
        Shape::Map(of) => {
            for value in value.as_object_mut().into_iter().flat_map(Map::values_mut) {
                canonicalize(*of, value);
            }
        }
        Shape::Struct(fields) => {
            let mut given = match value.take() {
                Value::Object(given) => given,
                _ => Map::new(),
            };
            let mut printed = Map::new();
            for field in &fields.fields {
                let of_field = given.remove(field.name).unwrap_or(Value::Null);
                if let Some(shown) = canonical_field(field, of_field) {
                    printed.insert(field.name.to_owned(), shown);
                }
            }
            *value = Value::Object(printed);
        }
        _ if value.is_null() => *value = zero(&schema[id].shape),
        _ => {}
    }
}

/// The field's value as it is printed; `None` where it is left out.
fn canonical_field(field: &Field, mut value: Value) -> Option<Value> {
    canonicalize(field.of, &mut value);
    let shape = &Schema::get()[field.of].shape;
    let is_left_out = match field.omit {
        Omit::Never => false,
        Omit::Empty => is_empty(shape, &value),
        Omit::Zero => is_empty(shape, &value) || value == zero(shape),
    };
    (!is_left_out).then_some(value)
}

/// Whether Go's `omitempty` leaves the value out.
fn is_empty(shape: &Shape, value: &Value) -> bool {
    match shape {
        Shape::Pointer(_) => value.is_null(),
        // Raw JSON is a list of bytes or a pointer to one.
        Shape::Raw => value.is_null(),
        Shape::List(_) | Shape::Bytes | Shape::Map(_) => match value {
            Value::Array(items) => items.is_empty(),
            Value::Object(members) => members.is_empty(),
            Value::String(text) => text.is_empty(),
            _ => true,
        },
        Shape::String | Shape::Bool | Shape::Integer { .. } | Shape::Float => *value == zero(shape),
        // The rest are structs to Go.
        _ => false,
    }
}

/// What an unset value of the shape prints.
fn zero(shape: &Shape) -> Value {
    match shape {
        Shape::String => Value::from(""),
        Shape::Bool => Value::from(false),
        Shape::Integer { .. } | Shape::Float | Shape::IntOrString => Value::from(0),
        Shape::Quantity => Value::from("0"),
        Shape::Duration => Value::from("0s"),
        Shape::Struct(_) => Value::Object(Map::new()),
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn canonical(group: &str, kind: &str, mut value: Value) -> Value {
        canonicalize(Schema::get().kind(group, kind).unwrap(), &mut value);
        value
    }

    #[test]
    fn empty_values_are_left_out_unless_they_are_pointers() {
        let pod = json!({"spec": {
            "containers": [{"name": "a", "image": "", "resources": {}}],
            "hostNetwork": false, "enableServiceLinks": false, "priority": 0, "volumes": [],
        }});
        assert_eq!(
            canonical("", "Pod", pod),
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
    fn zeros_of_fields_that_are_always_printed_are_added() {
        let event = canonical("", "Event", json!({}));
        assert_eq!(event["reportingComponent"], json!(""));
        assert_eq!(event["firstTimestamp"], Value::Null);
        assert_eq!(
            canonical("", "Node", json!({}))["status"]["daemonEndpoints"],
            json!({"kubeletEndpoint": {"Port": 0}})
        );
    }
}
