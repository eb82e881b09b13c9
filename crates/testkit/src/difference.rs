//! Where two JSON values differ, one line per place.

use serde_json::Value;

/// The places where `got` is not `want`. Empty when they are equal.
///
/// An absent member, `null`, `{}` and `[]` count as the same, and so do integers written as
/// integers or as floats without a fraction.
pub fn differences(got: &Value, want: &Value) -> Vec<String> {
    let mut found = Vec::new();
    walk("", got, want, &mut found);
    found
}

fn walk(path: &str, got: &Value, want: &Value, found: &mut Vec<String>) {
    if is_empty(got) && is_empty(want) {
        return;
    }
    match (got, want) {
        (Value::Object(got), Value::Object(want)) => {
            let mut keys: Vec<&String> = got.keys().chain(want.keys()).collect();
            keys.sort();
            keys.dedup();
            for key in keys {
                let member = |map: &serde_json::Map<String, Value>| {
                    map.get(key).cloned().unwrap_or(Value::Null)
                };
                walk(&format!("{path}.{key}"), &member(got), &member(want), found);
            }
        }
        (Value::Array(got), Value::Array(want)) => {
            for index in 0..got.len().max(want.len()) {
                let item = |list: &[Value]| list.get(index).cloned().unwrap_or(Value::Null);
                walk(&format!("{path}[{index}]"), &item(got), &item(want), found);
            }
        }
        _ if is_equal_scalar(got, want) => {}
        _ => found.push(format!(
            "{}: got {got}, want {want}",
            if path.is_empty() { "." } else { path }
        )),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.values().all(is_empty),
        _ => false,
    }
}

fn is_equal_scalar(got: &Value, want: &Value) -> bool {
    got == want
        || matches!((got.as_f64(), want.as_f64()), (Some(a), Some(b)) if got.as_i64().is_none() != want.as_i64().is_none() && a == b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn absent_null_and_empty_are_the_same() {
        assert!(differences(&json!({"a": {}, "b": null}), &json!({"c": []})).is_empty());
    }

    #[test]
    fn each_place_is_named_with_its_path() {
        let found = differences(&json!({"a": [1, 2]}), &json!({"a": [1, 3], "b": "x"}));
        assert_eq!(found, [".a[1]: got 2, want 3", ".b: got null, want \"x\""]);
    }

    #[test]
    fn large_integers_are_compared_exactly() {
        let found = differences(
            &json!(9_223_372_036_854_775_807i64),
            &json!(9_223_372_036_854_775_806i64),
        );
        assert_eq!(found.len(), 1);
    }
}
