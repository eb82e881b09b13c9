//! JSON pointers as the server's own tables have them: without escapes, so that a lookup
//! copies nothing.

use serde_json::Value;

/// The value at `/metadata/labels` and the like.
pub(crate) fn at<'a>(value: &'a Value, pointer: &str) -> Option<&'a Value> {
    let mut parts = pointer.split('/').skip(1);
    parts.try_fold(value, |value, part| match value {
        Value::Object(members) => members.get(part),
        Value::Array(items) => items.get(part.parse::<usize>().ok()?),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_and_items_are_found_as_serde_json_finds_them() {
        let value = json!({"a": {"b": [1, {"c": null}]}, "": 2});
        for pointer in [
            "", "/a", "/a/b/0", "/a/b/1/c", "/a/b/2", "/a/b/x", "/", "/a/b/0/d",
        ] {
            assert_eq!(at(&value, pointer), value.pointer(pointer), "{pointer}");
        }
    }
}
