//! Decoding the operations of a JSON patch.

use serde_json::{Map, Value};

use super::json_patch::Operation;
use super::request::{json_word, undecodable};
use crate::machinery::decoding::FieldValidation;
use crate::status::Status;

/// Decodes the operations; unknown members are added to `strict`.
pub(super) fn read_operations(
    body: Value,
    validation: FieldValidation,
    strict: &mut Vec<String>,
) -> Result<Vec<Operation>, Status> {
    let is_lenient = validation == FieldValidation::Ignore;
    let (list_type, item_type) = if is_lenient {
        ("jsonpatch.Patch", "jsonpatch.Operation")
    } else {
        ("[]handlers.jsonPatchOp", "handlers.jsonPatchOp")
    };
    let refuse = |value: &Value, target: &str| {
        let what = json_word(value);
        undecodable(
            &format!("json: cannot unmarshal {what} into Go {target}"),
            validation,
        )
    };
    let items = match body {
        Value::Array(items) => items,
        Value::Null => Vec::new(),
        other => return Err(refuse(&other, &format!("value of type {list_type}"))),
    };
    let mut operations = Vec::with_capacity(items.len());
    for (index, item) in items.into_iter().enumerate() {
        let operation = match item {
            Value::Object(operation) => operation,
            Value::Null => Map::new(),
            other => return Err(refuse(&other, &format!("value of type {item_type}"))),
        };
        for (key, value) in &operation {
            let is_text = value.is_string() || value.is_null();
            match key.as_str() {
                "op" | "path" | "from" if is_text || is_lenient => {}
                "op" | "path" | "from" => {
                    let target = format!("struct field jsonPatchOp.{key} of type string");
                    return Err(refuse(value, &target));
                }
                "value" => {}
                _ => strict.push(format!("json patch unknown field \"[{index}].{key}\"")),
            }
        }
        operations.push(operation);
    }
    Ok(operations)
}

/// The objects that operations have accessed, as a tree. It is no deeper than the document:
/// only resolved paths count, and `from` is ignored for operations that do not need it.
pub(super) fn touched_by(operations: &[Operation]) -> Value {
    let mut tree = Map::new();
    for operation in operations {
        let op = operation.get("op").and_then(Value::as_str);
        let followed: &[&str] = match op {
            Some("move" | "copy") => &["path", "from"],
            _ => &["path"],
        };
        for member in followed.iter().copied() {
            let path = operation
                .get(member)
                .and_then(Value::as_str)
                .unwrap_or_default();
            let mut parts: Vec<&str> = path.split('/').skip(1).collect();
            parts.pop();
            let mut branch = &mut tree;
            for part in parts {
                let next = branch
                    .entry(part.replace("~1", "/").replace("~0", "~"))
                    .or_insert_with(|| Value::Object(Map::new()));
                branch = match next {
                    Value::Object(next) => next,
                    _ => unreachable!("only objects are inserted"),
                };
            }
        }
    }
    Value::Object(tree)
}
