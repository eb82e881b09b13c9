//! RFC 6902 patches.
//!
//! Matches v1.36 vendor/gopkg.in/evanphx/json-patch.v4, which differs from the RFC: a negative
//! index counts from the end, `replace` and `copy` treat a missing member as null, a path without
//! its leading slash still works, and the document as a whole can be replaced and tested only.
//!
//! The document is bounded after every operation, not only at the end. No operation makes it deeper
//! than [`MAX_DEPTH`], so that it can be walked and dropped by recursion. It grows by the size of
//! the patch and by `COPY_LIMIT`. The number of values that operations visit and shift is bounded
//! by `MOST_STEPS` for all of them together.

use plimsoll_core::problem::quoted;
use serde_json::{Map, Value};
use thiserror::Error;

use crate::bounds::{MAX_DEPTH, fits};

/// All `copy` operations of one patch together may add this many bytes.
const COPY_LIMIT: usize = 3 * 1024 * 1024;

const MISSING: &str = "missing value";
const TEST_FAILED: &str = "test failed";

/// All operations of one patch together may visit this many values, which takes a fifth of a
/// second. The most operations that a patch may have can each move an object of 1,600 values.
const MOST_STEPS: usize = 16 * 1024 * 1024;

/// Moving this many items of a list within memory costs as much as visiting one value.
const SHIFTED_PER_STEP: usize = 16;

/// Why a patch does not apply.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum JsonPatchError {
    /// An operation does not fit the document; the text is upstream's.
    #[error("{0}")]
    Inapplicable(String),
    /// The document would be nested too deeply.
    #[error("an operation exceeds the max depth of {MAX_DEPTH} levels")]
    TooDeep,
    /// The operations are too much work.
    #[error("the operations of a JSON patch visit more than {MOST_STEPS} values")]
    TooMuch,
}

impl From<String> for JsonPatchError {
    fn from(text: String) -> JsonPatchError {
        JsonPatchError::Inapplicable(text)
    }
}

/// One operation: `op`, `path`, and `value` or `from`.
pub type Operation = Map<String, Value>;

type Outcome<T> = Result<T, String>;

/// The remaining budget of a patch's operations.
struct Budget {
    copied: usize,
    steps: usize,
}

impl Budget {
    /// Charges for inserting an item into a list or removing it, which shifts the items
    /// after it.
    fn shift(&mut self, container: &Value) -> Result<(), JsonPatchError> {
        let items = container.as_array().map_or(0, Vec::len);
        let left = self.steps.checked_sub(1 + items / SHIFTED_PER_STEP);
        self.steps = left.ok_or(JsonPatchError::TooMuch)?;
        Ok(())
    }

    /// Rejects a value that would be nested too deeply; `level` is that of its container, from 1
    /// on.
    fn check_depth(&mut self, value: &Value, level: usize) -> Result<(), JsonPatchError> {
        let levels = MAX_DEPTH.saturating_sub(level);
        match fits(value, levels, &mut self.steps) {
            Some(true) => Ok(()),
            Some(false) => Err(JsonPatchError::TooDeep),
            None => Err(JsonPatchError::TooMuch),
        }
    }
}

/// The location of an operation.
struct Place<'a> {
    /// The object or list.
    container: &'a mut Value,
    /// Its level; the document is at 1.
    level: usize,
    /// The member or item.
    key: String,
}

/// Applies `operations` to `document` one after the other.
pub fn json_patch(mut document: Value, operations: &[Operation]) -> Result<Value, JsonPatchError> {
    let mut budget = Budget {
        copied: 0,
        steps: MOST_STEPS,
    };
    for operation in operations {
        apply(&mut document, operation, &mut budget)?;
    }
    Ok(document)
}

fn apply(
    document: &mut Value,
    operation: &Operation,
    budget: &mut Budget,
) -> Result<(), JsonPatchError> {
    match operation
        .get("op")
        .and_then(Value::as_str)
        .unwrap_or("unknown")
    {
        "add" => add(document, operation, budget),
        "remove" => remove(document, operation, budget),
        "replace" => replace(document, operation, budget),
        "move" => relocate(document, operation, budget),
        "test" => Ok(test(document, operation)?),
        "copy" => copy(document, operation, budget),
        other => Err(format!("Unexpected kind: {other}").into()),
    }
}

fn add(
    document: &mut Value,
    operation: &Operation,
    budget: &mut Budget,
) -> Result<(), JsonPatchError> {
    let path = text_of(operation, "path")
        .map_err(|_| format!("add operation failed to decode path: {MISSING}"))?;
    let place = find(document, path).ok_or_else(|| {
        format!("add operation does not apply: doc is missing path: \"{path}\": {MISSING}")
    })?;
    let value = operation.get("value").cloned().unwrap_or_default();
    insert(place, value, budget)?
        .map_err(|e| format!("error in add for path: '{path}': {e}").into())
}

fn remove(
    document: &mut Value,
    operation: &Operation,
    budget: &mut Budget,
) -> Result<(), JsonPatchError> {
    let path = text_of(operation, "path")
        .map_err(|_| format!("remove operation failed to decode path: {MISSING}"))?;
    let place = find(document, path).ok_or_else(|| {
        format!("remove operation does not apply: doc is missing path: \"{path}\": {MISSING}")
    })?;
    take(place, budget)?.map_err(|e| format!("error in remove for path: '{path}': {e}"))?;
    Ok(())
}

fn replace(
    document: &mut Value,
    operation: &Operation,
    budget: &mut Budget,
) -> Result<(), JsonPatchError> {
    let path = text_of(operation, "path")
        .map_err(|e| format!("replace operation failed to decode path: {e}"))?;
    let value = operation.get("value").cloned().unwrap_or_default();
    if path.is_empty() {
        if !value.is_object() && !value.is_array() {
            // Upstream wraps an error that is not there, and Go prints that.
            let text = "replace operation value must be object or array: %!w(<nil>)";
            return Err(text.to_owned().into());
        }
        budget.check_depth(&value, 0)?;
        *document = value;
        return Ok(());
    }
    let place = find(document, path).ok_or_else(|| {
        format!("replace operation does not apply: doc is missing path: {path}: {MISSING}")
    })?;
    match place.container {
        Value::Array(items) => {
            budget.check_depth(&value, place.level)?;
            let index = existing_index(items.len(), &place.key).map_err(|_| {
                format!("replace operation does not apply: doc is missing key: {path}: {MISSING}")
            })?;
            items[index] = value;
        }
        _ => insert(place, value, budget)??,
    }
    Ok(())
}

fn relocate(
    document: &mut Value,
    operation: &Operation,
    budget: &mut Budget,
) -> Result<(), JsonPatchError> {
    let from = text_of(operation, "from")
        .map_err(|e| format!("move operation failed to decode from: {e}"))?;
    let place = find(document, from).ok_or_else(|| {
        format!("move operation does not apply: doc is missing from path: {from}: {MISSING}")
    })?;
    let key = place.key.clone();
    let value =
        take(place, budget)?.map_err(|e| format!("error in move for path: '{key}': {e}"))?;
    let path = text_of(operation, "path")
        .map_err(|e| format!("move operation failed to decode path: {e}"))?;
    let place = find(document, path).ok_or_else(|| {
        format!("move operation does not apply: doc is missing destination path: {path}: {MISSING}")
    })?;
    insert(place, value, budget)?
        .map_err(|e| format!("error in move for path: '{path}': {e}").into())
}

fn test(document: &mut Value, operation: &Operation) -> Outcome<()> {
    let path = text_of(operation, "path")
        .map_err(|e| format!("test operation failed to decode path: {e}"))?;
    // A member that is absent and one that is null are the same here.
    let want = operation.get("value").unwrap_or(&Value::Null);
    let is_equal = if path.is_empty() {
        document == want
    } else {
        let place = find(document, path).ok_or_else(|| {
            format!("test operation does not apply: is missing path: {path}: {MISSING}")
        })?;
        let got = get(&place).map_err(|e| format!("error in test for path: '{path}': {e}"))?;
        got == want
    };
    if is_equal {
        Ok(())
    } else {
        Err(format!("testing value {path} failed: {TEST_FAILED}"))
    }
}

fn copy(
    document: &mut Value,
    operation: &Operation,
    budget: &mut Budget,
) -> Result<(), JsonPatchError> {
    let from = text_of(operation, "from")
        .map_err(|e| format!("copy operation failed to decode from: {e}"))?;
    let place = find(document, from).ok_or_else(|| {
        format!("copy operation does not apply: doc is missing from path: {from}: {MISSING}")
    })?;
    let value = get(&place)
        .map_err(|e| format!("error in copy for from: '{from}': {e}"))?
        .clone();
    let path = text_of(operation, "path")
        .map_err(|_| format!("copy operation failed to decode path: {MISSING}"))?;
    let place = find(document, path).ok_or_else(|| {
        format!("copy operation does not apply: doc is missing destination path: {path}: {MISSING}")
    })?;
    if !value.is_null() {
        budget.copied += value.to_string().len();
    }
    if budget.copied > COPY_LIMIT {
        let copied = budget.copied;
        return Err(format!(
            "Unable to complete the copy, the accumulated size increase of copy is {copied}, exceeding the limit {COPY_LIMIT}"
        ).into());
    }
    insert(place, value, budget)?
        .map_err(|e| format!("error while adding value during copy: {e}").into())
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

/// The location of a path: the object or list that its last part belongs to, and that part.
///
/// Text before the first slash is ignored.
fn find<'a>(document: &'a mut Value, path: &str) -> Option<Place<'a>> {
    let (_, rest) = path.split_once('/')?;
    let (mut container, mut level) = (document, 1);
    let mut parts = rest.split('/').map(unescape);
    let mut key = parts.next()?;
    for next in parts {
        container = match container {
            Value::Object(map) => map.get_mut(&key)?,
            Value::Array(items) => {
                let index = existing_index(items.len(), &key).ok()?;
                &mut items[index]
            }
            _ => return None,
        };
        level += 1;
        key = next;
    }
    let is_found = container.is_object() || container.is_array();
    is_found.then_some(Place {
        container,
        level,
        key,
    })
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

fn get<'a>(place: &'a Place<'_>) -> Outcome<&'a Value> {
    match &*place.container {
        Value::Array(items) => Ok(&items[existing_index(items.len(), &place.key)?]),
        other => Ok(other.get(&place.key).unwrap_or(&Value::Null)),
    }
}

/// Inserts a value. The outer error ends the patch, whatever the operation does with the inner.
fn insert(
    place: Place<'_>,
    value: Value,
    budget: &mut Budget,
) -> Result<Outcome<()>, JsonPatchError> {
    budget.check_depth(&value, place.level)?;
    budget.shift(place.container)?;
    Ok(put(place, value))
}

fn put(place: Place<'_>, value: Value) -> Outcome<()> {
    let key = place.key;
    match place.container {
        Value::Array(items) if key == "-" => items.push(value),
        Value::Array(items) => {
            let index = parse_index(&key)
                .map_err(|e| format!("value was not a proper array index: '{key}': {e}"))?;
            // The new item counts: -1 is after the last.
            items.insert(in_bounds(index, items.len() + 1)?, value);
        }
        Value::Object(map) => {
            map.insert(key, value);
        }
        _ => return Err(MISSING.to_owned()),
    }
    Ok(())
}

/// Removes a value; errors as of [`insert`].
fn take(place: Place<'_>, budget: &mut Budget) -> Result<Outcome<Value>, JsonPatchError> {
    budget.shift(place.container)?;
    let key = place.key;
    Ok(match place.container {
        Value::Array(items) => existing_index(items.len(), &key).map(|index| items.remove(index)),
        Value::Object(map) => map
            .remove(&key)
            .ok_or_else(|| format!("Unable to remove nonexistent key: {key}: {MISSING}")),
        _ => Err(MISSING.to_owned()),
    })
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn operations(list: Value) -> Vec<Operation> {
        serde_json::from_value(list).unwrap()
    }

    /// Copies the document into itself again and again: `{"a": {}}`, `{"a": {"a": {}}}` and so on.
    fn nesting(times: usize) -> Vec<Operation> {
        let once = json!([
            {"op": "add", "path": "/b", "value": {}},
            {"op": "move", "from": "/a", "path": "/b/a"},
            {"op": "move", "from": "/b", "path": "/a"},
        ]);
        let once = operations(once);
        std::iter::repeat_n(once, times).flatten().collect()
    }

    #[test]
    fn chained_moves_respect_the_depth_limit() {
        let document = json!({"a": {}});
        let deepest = json_patch(document.clone(), &nesting(MAX_DEPTH - 2)).unwrap();
        assert_eq!(fits(&deepest, MAX_DEPTH, &mut 1000), Some(true));
        assert_eq!(fits(&deepest, MAX_DEPTH - 1, &mut 1000), Some(false));
        for times in [MAX_DEPTH - 1, 3000] {
            let refused = json_patch(document.clone(), &nesting(times));
            assert_eq!(refused, Err(JsonPatchError::TooDeep), "{times}");
        }
    }

    #[test]
    fn every_inserting_operation_respects_the_depth_limit() {
        let mut deep = json!(1);
        for _ in 0..MAX_DEPTH - 1 {
            deep = json!([deep]);
        }
        let document = json!({"deep": deep, "a": {"b": [0]}});
        for operation in [
            json!({"op": "add", "path": "/a/c", "value": deep}),
            json!({"op": "add", "path": "/a/b/-", "value": deep}),
            json!({"op": "replace", "path": "/a/b", "value": deep}),
            json!({"op": "replace", "path": "/a/b/0", "value": deep}),
            json!({"op": "replace", "path": "", "value": [[deep]]}),
            json!({"op": "copy", "from": "/deep", "path": "/a/b/0"}),
            json!({"op": "move", "from": "/deep", "path": "/a/c"}),
        ] {
            let refused = json_patch(document.clone(), &operations(json!([operation])));
            assert_eq!(refused, Err(JsonPatchError::TooDeep), "{operation}");
        }
        let higher = json!([{"op": "move", "from": "/deep", "path": "/shallow"}]);
        assert!(json_patch(document, &operations(higher)).is_ok());
    }

    #[test]
    fn total_work_of_operations_is_limited() {
        let many = vec![Value::Null; 500_000];
        let front = json!({"op": "add", "path": "/list/0", "value": null});
        let object = json!({"op": "move", "from": "/list", "path": "/list"});
        for operation in [front, object] {
            let document = json!({"list": many});
            let chain: Vec<Operation> = operations(json!(vec![operation; 10_000]));
            assert_eq!(json_patch(document, &chain), Err(JsonPatchError::TooMuch));
        }
    }

    #[test]
    fn total_size_of_copies_is_limited() {
        let document = json!({"a": "x".repeat(1024)});
        let doubling = json!([
            {"op": "add", "path": "/b", "value": []},
            {"op": "copy", "from": "/a", "path": "/b/-"},
            {"op": "copy", "from": "/a", "path": "/b/-"},
            {"op": "move", "from": "/b", "path": "/a"},
        ]);
        let chain: Vec<Operation> = std::iter::repeat_n(operations(doubling), 50)
            .flatten()
            .collect();
        let refused = json_patch(document, &chain).unwrap_err().to_string();
        assert!(
            refused.starts_with("Unable to complete the copy"),
            "{refused}"
        );
    }
}
