//! JSON in Go's field order.
//!
//! Responses are objects, and clients do not care about the order of their members. Error messages
//! that quote an object do: they show it as Go encodes it.

use serde::Serialize;
use serde_json::Value;

use super::canonical::canonicalize;
use super::structs::{Shape, StructId, Type, schema};
use crate::machinery::go::print;

/// The JSON text of a value of the named struct, such as `meta.LabelSelector`, as errors show it.
pub fn go_json(name: &str, value: &impl Serialize) -> String {
    let mut value = serde_json::to_value(value).unwrap_or_default();
    match schema().named(name) {
        Some(id) if !value.is_null() => {
            canonicalize(id, &mut value);
            encode(id, &value)
        }
        _ => print::json(&value),
    }
}

/// The JSON text of an object of the struct `id`, fields in Go's order, unknown ones last.
pub fn encode(id: StructId, value: &Value) -> String {
    let mut out = String::new();
    write_struct(&mut out, id, value);
    out
}

/// The same with the outermost fields sorted, as they are after Go has changed one of them in a map
/// of raw fields.
pub fn encode_sorted_until(id: StructId, value: &Value, patched: &Value) -> String {
    let mut out = String::new();
    write_patched(&mut out, Some(id), value, patched);
    out
}

/// At the target of `patch`, Go has held a map, whose keys it sorts; everything else is still as
/// the structs were encoded.
fn write_patched(out: &mut String, id: Option<StructId>, value: &Value, patch: &Value) {
    let (Value::Object(map), Value::Object(changes)) = (value, patch) else {
        match id {
            Some(id) => write_struct(out, id, value),
            None => write_plain(out, value),
        }
        return;
    };
    out.push('{');
    for (index, (key, item)) in map.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_key(out, key);
        let ty = id
            .and_then(|id| schema().get(id).field(key))
            .map(|f| f.ty.pointee());
        match (changes.get(key), ty) {
            (Some(change), Some(ty)) => match ty.shape {
                Shape::Struct(inner) => write_patched(out, Some(inner), item, change),
                _ => write_patched(out, None, item, change),
            },
            (Some(change), None) => write_patched(out, None, item, change),
            (None, Some(ty)) => write_value(out, ty, item),
            (None, None) => write_plain(out, item),
        }
    }
    out.push('}');
}

fn write_struct(out: &mut String, id: StructId, value: &Value) {
    let Value::Object(map) = value else {
        write_plain(out, value);
        return;
    };
    let definition = schema().get(id);
    let known = definition
        .fields
        .iter()
        .filter_map(|field| Some((field.name, map.get(field.name)?, Some(&field.ty))));
    let unknown = map
        .iter()
        .filter(|(key, _)| definition.field(key).is_none())
        .map(|(key, item)| (key.as_str(), item, None));
    out.push('{');
    for (index, (key, item, ty)) in known.chain(unknown).enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_key(out, key);
        match ty {
            Some(ty) => write_value(out, ty, item),
            None => write_plain(out, item),
        }
    }
    out.push('}');
}

fn write_value(out: &mut String, ty: &Type, value: &Value) {
    match (&ty.shape, value) {
        (Shape::Pointer(inner), _) => write_value(out, inner, value),
        (Shape::Struct(id), _) => write_struct(out, *id, value),
        (Shape::List(inner), Value::Array(items)) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_value(out, inner, item);
            }
            out.push(']');
        }
        (Shape::Map(inner), Value::Object(map)) => {
            out.push('{');
            for (index, (key, item)) in map.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_key(out, key);
                write_value(out, inner, item);
            }
            out.push('}');
        }
        _ => write_plain(out, value),
    }
}

fn write_key(out: &mut String, key: &str) {
    write_plain(out, &Value::from(key));
    out.push(':');
}

fn write_plain(out: &mut String, value: &Value) {
    out.push_str(&print::json(value));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_are_in_declaration_order() {
        let selector = json!({"matchExpressions": [{"values": ["b"], "operator": "In", "key": "a"}],
            "matchLabels": {"x": "<y>"}});
        assert_eq!(
            go_json("meta.LabelSelector", &selector),
            "{\"matchLabels\":{\"x\":\"\\u003cy\\u003e\"},\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"In\",\"values\":[\"b\"]}]}"
        );
        assert_eq!(go_json("meta.LabelSelector", &Value::Null), "null");
    }
}
