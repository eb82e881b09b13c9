//! JSON to typed objects, strictly.

use k8s_openapi::serde::Serialize;
use k8s_openapi::serde::de::DeserializeOwned;
use plimsoll_core::problem::Problem;
use serde_json::Value;

use super::Entry;

/// The typed object. Reports wrong types and unknown fields; returns `None` for a wrong type.
pub(super) fn decode<T: DeserializeOwned + Serialize>(
    entry: &mut Entry<'_, '_>,
    json: &Value,
) -> Option<T> {
    match serde_path_to_error::deserialize::<_, T>(json) {
        Err(error) => {
            let path = error.path().to_string();
            let value = json.pointer(&format!(
                "/{}",
                path.replace(['.', '['], "/").replace(']', "")
            ));
            let value = value.map_or_else(String::new, Value::to_string);
            entry.problem(&Problem::wrong_type(
                path,
                value,
                error.into_inner().to_string(),
            ));
            None
        }
        Ok(object) => {
            // Unknown fields are missing after the object is serialized again.
            let kept = serde_json::to_value(&object).unwrap_or_default();
            let mut problems = Vec::new();
            report_lost("", json, &kept, &mut problems);
            entry.problems(&problems);
            Some(object)
        }
    }
}

fn report_lost(path: &str, given: &Value, kept: &Value, problems: &mut Vec<Problem>) {
    match (given, kept) {
        (Value::Object(given), Value::Object(kept)) => {
            for (key, value) in given.iter().filter(|(_, value)| !is_empty(value)) {
                let path = if path.is_empty() {
                    key.clone()
                } else {
                    format!("{path}.{key}")
                };
                match kept.get(key) {
                    Some(kept) => report_lost(&path, value, kept, problems),
                    None => problems.push(Problem::unknown(path, "no such field in this kind")),
                }
            }
        }
        (Value::Array(given), Value::Array(kept)) => {
            for (index, (given, kept)) in given.iter().zip(kept).enumerate() {
                report_lost(&format!("{path}[{index}]"), given, kept, problems);
            }
        }
        _ => {}
    }
}

/// Empty values may be dropped without being unknown.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    }
}
