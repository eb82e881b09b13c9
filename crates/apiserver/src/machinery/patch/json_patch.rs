//! RFC 6902 patches.
//!
//! Matches v1.36 vendor/gopkg.in/evanphx/json-patch.v4, which differs from the RFC: a negative
//! index counts from the end, `replace` and `copy` take a missing member for null, a path without
//! its leading slash still works, and the document as a whole can be replaced and tested only.

use plimsoll_core::problem::quoted;
use serde_json::{Map, Value};
use thiserror::Error;

/// All `copy` operations of one patch together may add this many bytes.
const COPY_LIMIT: usize = 3 * 1024 * 1024;

const MISSING: &str = "missing value";
const TEST_FAILED: &str = "test failed";

/// Why a patch does not apply.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct JsonPatchError(String);

/// One operation: `op`, `path`, and `value` or `from`.
pub type Operation = Map<String, Value>;

type Outcome<T> = Result<T, String>;

/// Applies `operations` to `document` one after the other.
pub fn json_patch(mut document: Value, operations: &[Operation]) -> Result<Value, JsonPatchError> {
    let mut copied = 0;
    for operation in operations {
        apply(&mut document, operation, &mut copied).map_err(JsonPatchError)?;
    }
    Ok(document)
}

fn apply(document: &mut Value, operation: &Operation, copied: &mut usize) -> Outcome<()> {
    match operation
        .get("op")
        .and_then(Value::as_str)
        .unwrap_or("unknown")
    {
        "add" => add(document, operation),
        "remove" => remove(document, operation),
        "replace" => replace(document, operation),
        "move" => relocate(document, operation),
        "test" => test(document, operation),
        "copy" => copy(document, operation, copied),
        other => Err(format!("Unexpected kind: {other}")),
    }
}

fn add(document: &mut Value, operation: &Operation) -> Outcome<()> {
    let path = text_of(operation, "path")
        .map_err(|_| format!("add operation failed to decode path: {MISSING}"))?;
    let (container, key) = find(document, path).ok_or_else(|| {
        format!("add operation does not apply: doc is missing path: \"{path}\": {MISSING}")
    })?;
    let value = operation.get("value").cloned().unwrap_or_default();
    insert(container, &key, value).map_err(|e| format!("error in add for path: '{path}': {e}"))
}

fn remove(document: &mut Value, operation: &Operation) -> Outcome<()> {
    let path = text_of(operation, "path")
        .map_err(|_| format!("remove operation failed to decode path: {MISSING}"))?;
    let (container, key) = find(document, path).ok_or_else(|| {
        format!("remove operation does not apply: doc is missing path: \"{path}\": {MISSING}")
    })?;
    take(container, &key).map_err(|e| format!("error in remove for path: '{path}': {e}"))?;
    Ok(())
}

fn replace(document: &mut Value, operation: &Operation) -> Outcome<()> {
    let path = text_of(operation, "path")
        .map_err(|e| format!("replace operation failed to decode path: {e}"))?;
    let value = operation.get("value").cloned().unwrap_or_default();
    if path.is_empty() {
        if !value.is_object() && !value.is_array() {
            // Upstream wraps an error that is not there, and Go prints that.
            return Err("replace operation value must be object or array: %!w(<nil>)".to_owned());
        }
        *document = value;
        return Ok(());
    }
    let (container, key) = find(document, path).ok_or_else(|| {
        format!("replace operation does not apply: doc is missing path: {path}: {MISSING}")
    })?;
    match container {
        Value::Array(items) => {
            let index = existing_index(items.len(), &key).map_err(|_| {
                format!("replace operation does not apply: doc is missing key: {path}: {MISSING}")
            })?;
            items[index] = value;
        }
        container => insert(container, &key, value)?,
    }
    Ok(())
}

fn relocate(document: &mut Value, operation: &Operation) -> Outcome<()> {
    let from = text_of(operation, "from")
        .map_err(|e| format!("move operation failed to decode from: {e}"))?;
    let (container, key) = find(document, from).ok_or_else(|| {
        format!("move operation does not apply: doc is missing from path: {from}: {MISSING}")
    })?;
    let value =
        take(container, &key).map_err(|e| format!("error in move for path: '{key}': {e}"))?;
    let path = text_of(operation, "path")
        .map_err(|e| format!("move operation failed to decode path: {e}"))?;
    let (container, key) = find(document, path).ok_or_else(|| {
        format!("move operation does not apply: doc is missing destination path: {path}: {MISSING}")
    })?;
    insert(container, &key, value).map_err(|e| format!("error in move for path: '{path}': {e}"))
}

fn test(document: &mut Value, operation: &Operation) -> Outcome<()> {
    let path = text_of(operation, "path")
        .map_err(|e| format!("test operation failed to decode path: {e}"))?;
    // A member that is absent and one that is null are the same here.
    let want = operation.get("value").unwrap_or(&Value::Null);
    let is_equal = if path.is_empty() {
        document == want
    } else {
        let (container, key) = find(document, path).ok_or_else(|| {
            format!("test operation does not apply: is missing path: {path}: {MISSING}")
        })?;
        let got =
            get(container, &key).map_err(|e| format!("error in test for path: '{path}': {e}"))?;
        got == want
    };
    if is_equal {
        Ok(())
    } else {
        Err(format!("testing value {path} failed: {TEST_FAILED}"))
    }
}

fn copy(document: &mut Value, operation: &Operation, copied: &mut usize) -> Outcome<()> {
    let from = text_of(operation, "from")
        .map_err(|e| format!("copy operation failed to decode from: {e}"))?;
    let (container, key) = find(document, from).ok_or_else(|| {
        format!("copy operation does not apply: doc is missing from path: {from}: {MISSING}")
    })?;
    let value = get(container, &key)
        .map_err(|e| format!("error in copy for from: '{from}': {e}"))?
        .clone();
    let path = text_of(operation, "path")
        .map_err(|_| format!("copy operation failed to decode path: {MISSING}"))?;
    let (container, key) = find(document, path).ok_or_else(|| {
        format!("copy operation does not apply: doc is missing destination path: {path}: {MISSING}")
    })?;
    *copied += if value.is_null() {
        0
    } else {
        value.to_string().len()
    };
    if *copied > COPY_LIMIT {
        return Err(format!(
            "Unable to complete the copy, the accumulated size increase of copy is {copied}, exceeding the limit {COPY_LIMIT}"
        ));
    }
    insert(container, &key, value).map_err(|e| format!("error while adding value during copy: {e}"))
}

/// A text member of an operation; the error is Go's.
fn text_of<'a>(operation: &'a Operation, name: &str) -> Outcome<&'a str> {
    let comma = if name == "from" { "," } else { "" };
    let what = match operation.get(name) {
        Some(Value::String(text)) => return Ok(text),
        None | Some(Value::Null) => {
            return Err(format!("operation{comma} missing {name} field: {MISSING}"));
        }
        Some(Value::Bool(_)) => "bool",
        Some(Value::Number(_)) => "number",
        Some(Value::Array(_)) => "array",
        Some(Value::Object(_)) => "object",
    };
    Err(format!(
        "json: cannot unmarshal {what} into Go value of type string"
    ))
}

/// The object or list that a path's last part belongs to, and that part.
///
/// What stands before the first slash is not looked at.
fn find<'a>(document: &'a mut Value, path: &str) -> Option<(&'a mut Value, String)> {
    let (_, rest) = path.split_once('/')?;
    let mut parts: Vec<String> = rest.split('/').map(unescape).collect();
    let key = parts.pop()?;
    let mut container = document;
    for part in parts {
        container = match container {
            Value::Object(map) => map.get_mut(&part)?,
            Value::Array(items) => {
                let index = existing_index(items.len(), &part).ok()?;
                &mut items[index]
            }
            _ => return None,
        };
    }
    (container.is_object() || container.is_array()).then_some((container, key))
}

/// Both escapes in one pass from left to right, as Go's replacer does.
fn unescape(part: &str) -> String {
    let mut out = String::with_capacity(part.len());
    let mut rest = part;
    while let Some(at) = rest.find('~') {
        out.push_str(&rest[..at]);
        let (plain, length) = match rest.as_bytes().get(at + 1) {
            Some(b'1') => ("/", 2),
            Some(b'0') => ("~", 2),
            _ => ("~", 1),
        };
        out.push_str(plain);
        rest = &rest[at + length..];
    }
    out.push_str(rest);
    out
}

fn get<'a>(container: &'a Value, key: &str) -> Outcome<&'a Value> {
    match container {
        Value::Array(items) => Ok(&items[existing_index(items.len(), key)?]),
        other => Ok(other.get(key).unwrap_or(&Value::Null)),
    }
}

fn insert(container: &mut Value, key: &str, value: Value) -> Outcome<()> {
    match container {
        Value::Array(items) if key == "-" => items.push(value),
        Value::Array(items) => {
            let index = parse_index(key)
                .map_err(|e| format!("value was not a proper array index: '{key}': {e}"))?;
            // The new item counts: -1 is behind the last.
            items.insert(in_bounds(index, items.len() + 1)?, value);
        }
        Value::Object(map) => {
            map.insert(key.to_owned(), value);
        }
        _ => return Err(MISSING.to_owned()),
    }
    Ok(())
}

fn take(container: &mut Value, key: &str) -> Outcome<Value> {
    match container {
        Value::Array(items) => {
            let index = existing_index(items.len(), key)?;
            Ok(items.remove(index))
        }
        Value::Object(map) => map
            .remove(key)
            .ok_or_else(|| format!("Unable to remove nonexistent key: {key}: {MISSING}")),
        _ => Err(MISSING.to_owned()),
    }
}

fn existing_index(length: usize, key: &str) -> Outcome<usize> {
    in_bounds(parse_index(key)?, length)
}

/// Go's `strconv.Atoi`: a sign and leading zeros are fine.
fn parse_index(key: &str) -> Outcome<i64> {
    let digits = key.strip_prefix(['+', '-']).unwrap_or(key);
    let shown = quoted(key);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(format!("strconv.Atoi: parsing {shown}: invalid syntax"));
    }
    key.parse()
        .map_err(|_| format!("strconv.Atoi: parsing {shown}: value out of range"))
}

fn in_bounds(index: i64, length: usize) -> Outcome<usize> {
    let size = i64::try_from(length).unwrap_or(i64::MAX);
    let from_start = if index < 0 {
        index.checked_add(size)
    } else {
        Some(index)
    };
    from_start
        .filter(|at| (0..size).contains(at))
        .and_then(|at| usize::try_from(at).ok())
        .ok_or_else(|| format!("Unable to access invalid index: {index}: invalid index referenced"))
}
