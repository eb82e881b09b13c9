//! A PATCH request's body, from bytes to the changed object or upstream's error.
//!
//! Matches v1.36 apiserver/pkg/endpoints/handlers/patch.go up to the point where the result is an
//! object of its kind: defaulting, admission and validation come after.

use plimsoll_core::problem::quoted;
use serde_json::{Map, Value};

use super::json_patch::JsonPatchError;
use super::operations::{read_operations, touched_by};
use super::{json_patch, merge_patch, strategic, strategic_merge_patch};
use crate::machinery::decoding::{FieldValidation, Json, parse_json};
use crate::machinery::go::print;
use crate::machinery::schema::{self, Decoded, StructId, encode, schema};
use crate::status::Status;

/// The maximum number of operations in a JSON patch.
const MOST_OPERATIONS: usize = 10_000;

/// The kinds of patch, by content type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchType {
    /// `application/json-patch+json`
    Json,
    /// `application/merge-patch+json`
    Merge,
    /// `application/strategic-merge-patch+json`
    Strategic,
    /// `application/apply-patch+yaml`: server-side apply.
    Apply,
}

impl PatchType {
    /// The type of a `Content-Type` header; parameters are ignored.
    pub fn from_content_type(header: &str) -> Result<PatchType, Status> {
        let media_type = header.split(';').next().unwrap_or_default();
        match media_type.trim() {
            "application/json-patch+json" => Ok(PatchType::Json),
            "application/merge-patch+json" => Ok(PatchType::Merge),
            "application/strategic-merge-patch+json" => Ok(PatchType::Strategic),
            "application/apply-patch+yaml" => Ok(PatchType::Apply),
            _ => Err(Status::unrouted_media_type()),
        }
    }
}

/// A changed object.
#[derive(Clone, Debug, PartialEq)]
pub struct Patched {
    /// The object as Go's structs represent it, before defaulting.
    pub object: Value,
    /// Texts for `Warning` headers.
    pub warnings: Vec<String>,
    /// The result of the patch, before it was decoded as its kind: with its empty lists and maps.
    pub given: Value,
}

/// Applies a patch to `current`, an object of the struct `kind`.
pub fn apply_patch(
    kind: StructId,
    patch_type: PatchType,
    current: &Value,
    body: &[u8],
    validation: FieldValidation,
) -> Result<Patched, Status> {
    match patch_type {
        PatchType::Json => apply_json(kind, current, body, validation),
        PatchType::Merge => apply_merge(kind, current, body, validation),
        PatchType::Strategic => apply_strategic(kind, current, body, validation),
        PatchType::Apply => Err(Status::unrouted_media_type()),
    }
}

fn apply_json(
    kind: StructId,
    current: &Value,
    body: &[u8],
    validation: FieldValidation,
) -> Result<Patched, Status> {
    let document = parse_json(body).map_err(|error| undecodable(&error, validation))?;
    let mut strict = duplicate_texts(&document, "json patch ");
    let operations = read_operations(document.value, validation, &mut strict)?;
    if operations.len() > MOST_OPERATIONS {
        return Err(Status::too_large(&format!(
            "The allowed maximum operations in a JSON patch is {MOST_OPERATIONS}, got {}",
            operations.len()
        )));
    }
    let patched = json_patch(current.clone(), &operations).map_err(|error| match error {
        JsonPatchError::Inapplicable(_) => Status::rejected(),
        JsonPatchError::TooDeep => Status::too_deep(),
        JsonPatchError::TooMuch => Status::too_large(&error.to_string()),
    })?;
    let shape = touched_by(&operations);
    finish_text(kind, patched, &shape, strict, validation)
}

fn apply_merge(
    kind: StructId,
    current: &Value,
    body: &[u8],
    validation: FieldValidation,
) -> Result<Patched, Status> {
    let document = parse_json(body).map_err(|error| match validation {
        FieldValidation::Ignore => Status::bad_request("Invalid JSON Patch"),
        _ => undecodable(&error, validation),
    })?;
    let strict = duplicate_texts(&document, "");
    let patch = match document.value {
        Value::Object(patch) => patch,
        // Upstream's strict decoder treats null as an empty map; the patch library does not.
        Value::Null => return Err(Status::bad_request("Invalid JSON Patch")),
        other => {
            let what = json_word(&other);
            let text = format!(
                "json: cannot unmarshal {what} into Go value of type map[string]interface {{}}"
            );
            return Err(undecodable(&text, validation));
        }
    };
    let patch = Value::Object(patch);
    let patched = merge_patch(current.clone(), patch.clone());
    finish_text(kind, patched, &patch, strict, validation)
}

fn apply_strategic(
    kind: StructId,
    current: &Value,
    body: &[u8],
    validation: FieldValidation,
) -> Result<Patched, Status> {
    let document = parse_json(body).map_err(Status::bad_request)?;
    let mut strict = duplicate_texts(&document, "");
    let patch = match document.value {
        Value::Object(patch) => patch,
        Value::Null => Map::new(),
        other => {
            let what = json_word(&other);
            return Err(Status::bad_request(format!(
                "json: cannot unmarshal {what} into Go value of type map[string]interface {{}}"
            )));
        }
    };
    let original = current.as_object().cloned().unwrap_or_default();
    let merged = strategic_merge_patch(kind, original, patch.clone()).map_err(error_status)?;
    // The merge has removed the top-level directives from the patch that errors show.
    let shown = |_: &Value| quoted(&print::sprint(&Value::Object(patch.clone())));
    let merged = Value::Object(merged);
    let decoded = schema::decode(kind, &merged, schema::decode::Source::Maps)
        .map_err(|error| Status::invalid_patch(&shown(&merged), &error.to_string()))?;
    strict.extend(unknown_texts(&decoded));
    finish(decoded, merged, strict, shown, validation)
}

/// Upstream's responses to errors of the merge.
fn error_status(error: strategic::StrategicError) -> Status {
    use strategic::StrategicError as E;
    match error {
        E::PrimitiveList | E::RetainKeys | E::SetElementOrder => {
            Status::bad_request(error.to_string())
        }
        E::ListOfLists => Status::rejected(),
        E::Other(text) => Status::unexpected(text),
    }
}

/// Decodes the result as its kind; `patch` determines which objects Go has held as maps.
fn finish_text(
    kind: StructId,
    patched: Value,
    patch: &Value,
    mut strict: Vec<String>,
    validation: FieldValidation,
) -> Result<Patched, Status> {
    let shown = |patched: &Value| quoted(&encode::encode_sorted_until(kind, patched, patch));
    check_kind(kind, &patched, &|| shown(&patched))?;
    let decoded = schema::decode(kind, &patched, schema::decode::Source::Text)
        .map_err(|error| Status::invalid_patch(&shown(&patched), &error.to_string()))?;
    strict.extend(unknown_texts(&decoded));
    finish(decoded, patched, strict, shown, validation)
}

/// A patch must not change the kind of an object.
fn check_kind(kind: StructId, patched: &Value, shown: &dyn Fn() -> String) -> Result<(), Status> {
    let text = |key: &str| patched.get(key).and_then(Value::as_str).unwrap_or_default();
    let (version, name) = (text("apiVersion"), text("kind"));
    let wanted = schema().get(kind).name;
    match schema().kind(version, name) {
        Some(found) if found == kind => Ok(()),
        // An empty version or kind defaults to the expected one.
        None if version.is_empty() || name.is_empty() => Ok(()),
        Some(_) => Err(Status::invalid_patch(
            &shown(),
            &format!("converting (v1.{name}) to (core.{wanted}): unknown conversion"),
        )),
        None => Err(Status::invalid_patch(
            &shown(),
            &format!(
                "no kind {} is registered for version {} in scheme \"pkg/api/legacyscheme/scheme.go:30\"",
                quoted(name),
                quoted(version)
            ),
        )),
    }
}

fn finish(
    decoded: Decoded,
    given: Value,
    strict: Vec<String>,
    shown: impl Fn(&Value) -> String,
    validation: FieldValidation,
) -> Result<Patched, Status> {
    let warnings = match validation {
        FieldValidation::Ignore => Vec::new(),
        FieldValidation::Strict if !strict.is_empty() => {
            let problem = format!("strict decoding error: {}", strict.join(", "));
            return Err(Status::invalid_patch(&shown(&given), &problem));
        }
        _ => strict,
    };
    Ok(Patched {
        object: decoded.value,
        warnings,
        given,
    })
}

fn unknown_texts(decoded: &Decoded) -> impl Iterator<Item = String> {
    decoded
        .unknown
        .iter()
        .map(|path| format!("unknown field {}", quoted(path)))
}

pub(super) fn duplicate_texts(document: &Json, prefix: &str) -> Vec<String> {
    document
        .duplicates
        .iter()
        .map(|path| format!("{prefix}duplicate field {}", quoted(path)))
        .collect()
}

/// The error for a malformed patch; the strict decoder adds the position.
pub(super) fn undecodable(text: &str, validation: FieldValidation) -> Status {
    Status::bad_request(match validation {
        FieldValidation::Ignore => text.to_owned(),
        _ => format!("error decoding patch: {text}"),
    })
}

pub(crate) fn json_word(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
