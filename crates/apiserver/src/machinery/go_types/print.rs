//! Values as Go's encoder writes them: fields in the order of their declaration.

use plimsoll_core::problem::json_text;
use serde::Serialize;
use serde_json::Value;

use super::{Schema, Shape, TypeId, canonicalize};

/// The JSON text of a value of the named type, such as `meta.LabelSelector`.
///
/// Errors show values this way, and their texts are compared.
pub fn go_json(type_name: &str, value: &impl Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    match Schema::get().by_name.get(type_name) {
        Some(id) => {
            let mut value = value;
            if !value.is_null() {
                canonicalize(*id, &mut value);
            }
            let mut text = String::new();
            print(*id, &value, &mut text);
            text
        }
        None => json_text(&value),
    }
}

fn print(id: TypeId, value: &Value, out: &mut String) {
    let schema = Schema::get();
    match (&schema[id].shape, value) {
        (Shape::Pointer(inner), value) => print(*inner, value, out),
        (Shape::List(item), Value::Array(items)) => {
            print_joined(out, ('[', ']'), items, |item_value, out| {
                print(*item, item_value, out)
            });
        }
        (Shape::Map(of), Value::Object(members)) => {
            print_joined(out, ('{', '}'), members, |(key, value), out| {
                out.push_str(&json_text(key));
                out.push(':');
                print(*of, value, out);
            });
        }
        (Shape::Struct(fields), Value::Object(members)) => {
            let given = fields
                .fields
                .iter()
                .filter_map(|f| Some((f, members.get(f.name)?)));
            print_joined(out, ('{', '}'), given, |(field, value), out| {
                out.push_str(&json_text(&field.name));
                out.push(':');
                print(field.of, value, out);
            });
        }
        (_, value) => out.push_str(&json_text(value)),
    }
}

fn print_joined<T>(
    out: &mut String,
    (open, close): (char, char),
    items: impl IntoIterator<Item = T>,
    mut print_item: impl FnMut(T, &mut String),
) {
    out.push(open);
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        print_item(item, out);
    }
    out.push(close);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_stand_in_the_order_of_their_declaration() {
        let selector = json!({"matchExpressions": [{"values": ["b"], "operator": "In", "key": "a"}],
            "matchLabels": {"x": "<y>"}});
        assert_eq!(
            go_json("meta.LabelSelector", &selector),
            "{\"matchLabels\":{\"x\":\"\\u003cy\\u003e\"},\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"In\",\"values\":[\"b\"]}]}"
        );
        assert_eq!(go_json("meta.LabelSelector", &Value::Null), "null");
    }
}
