//! Decoding request bodies into objects.
//!
//! A body is parsed into a tree that keeps the order and the duplicates of its keys, then decoded
//! by the Go type of the kind: unknown fields, duplicates and wrong types are reported in the words
//! of Go's decoder, in the order in which that decoder finds them. The result is the object as
//! upstream would print it.
//!
//! Reading order: `document` (the tree), `json` (the parser), `yaml`, `typed` (trees to
//! objects).

mod document;
mod json;
mod typed;
mod yaml;

#[cfg(test)]
mod tests;

use plimsoll_core::config::document::Node;
use serde_json::Value;

use crate::http::protobuf;
use crate::kinds::GroupVersionKind;
use crate::machinery::schema::{canonicalize, schema};

use document::Document;

pub use typed::{Mistake, MistakeKind};

/// The handling of unknown fields and duplicate keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    /// They are dropped silently.
    Ignore,
    /// They are dropped with a warning each.
    #[default]
    Warn,
    /// They are an error.
    Strict,
}

impl FieldValidation {
    /// The value of the query parameter `fieldValidation`; empty means the default.
    pub fn from_parameter(text: &str) -> Option<FieldValidation> {
        match text {
            "" | "Warn" => Some(FieldValidation::Warn),
            "Ignore" => Some(FieldValidation::Ignore),
            "Strict" => Some(FieldValidation::Strict),
            _ => None,
        }
    }
}

/// The format of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFormat {
    /// `application/json`.
    Json,
    /// `application/yaml`.
    Yaml,
    /// `application/vnd.kubernetes.protobuf`: protobuf in an envelope.
    Protobuf,
}

/// A decoded body.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    /// The object, without defaults.
    pub object: Value,
    /// The warnings of [`FieldValidation::Warn`].
    pub warnings: Vec<String>,
    /// Whether the body has an empty list of managers, which the object does not show.
    pub resets_managers: bool,
}

/// Why a body is not an object of the kind; each is a 400 with this text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The kind was recognized, the rest is invalid.
    #[error("{given} in version {version:?} cannot be handled as a {expected}: {reason}")]
    Object {
        /// The kind in the body, or the expected one if it has none.
        given: String,
        /// The version in the body, or the expected one.
        version: String,
        /// The kind of the path.
        expected: String,
        /// The error.
        reason: String,
    },
    /// The kind was not recognized.
    #[error("the object provided is unrecognized (must be of type {expected}): {reason} ({start})")]
    Unrecognized {
        /// The kind of the path.
        expected: String,
        /// The error.
        reason: String,
        /// The beginning of the body.
        start: String,
    },
    /// An object of another version than the path's.
    #[error(
        "the API version in the data ({given}) does not match the expected API version ({expected})"
    )]
    OtherVersion {
        /// The `apiVersion` in the body.
        given: String,
        /// The `apiVersion` of the path.
        expected: String,
    },
}

/// Decodes a body into an object of the kind.
///
/// Matches v1.36 apimachinery/pkg/runtime/serializer/json and the handlers' `transformDecodeError`.
pub fn decode(
    body: &[u8],
    format: BodyFormat,
    kind: GroupVersionKind,
    validation: FieldValidation,
) -> Result<Decoded, DecodeError> {
    if format == BodyFormat::Protobuf {
        return decode_protobuf(body, kind);
    }
    let unrecognized = |reason: String| DecodeError::Unrecognized {
        expected: kind.kind.to_owned(),
        reason,
        start: summary(body),
    };
    let document = match format {
        BodyFormat::Json => json::parse(body)
            .map_err(|error| format!("couldn't get version/kind; json parse error: {error}")),
        BodyFormat::Yaml | BodyFormat::Protobuf => yaml::parse(body),
    };
    let document = document.map_err(unrecognized)?;
    let given = given_type(&document).map_err(unrecognized)?;
    let name = or_expected(&given.kind, kind.kind);
    let (group, version) = match given.api_version.as_str() {
        "" => (kind.group, kind.version),
        text => text.split_once('/').unwrap_or(("", text)),
    };
    let error = |reason: String| DecodeError::Object {
        given: name.to_owned(),
        version: version.to_owned(),
        expected: kind.kind.to_owned(),
        reason,
    };
    let is_expected = (name, group, version) == (kind.kind, kind.group, kind.version);
    // The one kind that is accepted in an older version, too: it is decoded in the same way, and
    // kubectl before 1.22 drains with it.
    let is_old_eviction = (kind.group, kind.kind) == ("policy", "Eviction")
        && (name, group, version) == ("Eviction", "policy", "v1beta1");
    if !is_expected && !is_old_eviction {
        return Err(other_kind(name, group, version, kind, error));
    }
    let id = schema().of(kind);
    let id = id.ok_or_else(|| error(not_registered(name, group, version)))?;
    let mut read = typed::read(&document, id).map_err(error)?;
    let object = &mut read.object;
    canonicalize(id, object);
    object["kind"] = Value::from(kind.kind);
    object["apiVersion"] = Value::from(kind.api_version());
    let warnings = match validation {
        FieldValidation::Ignore => Vec::new(),
        FieldValidation::Strict if !read.strict.is_empty() => {
            let findings = read.strict.join(", ");
            return Err(error(format!("strict decoding error: {findings}")));
        }
        _ => read.strict,
    };
    Ok(Decoded {
        object: read.object,
        warnings,
        resets_managers: resets_managers(&document),
    })
}

/// Decodes a parsed text as far as possible: the object without the values that are wrong, and all
/// mistakes. An error if it cannot be an object of the kind at all.
pub fn decode_all(tree: &Node, kind: GroupVersionKind) -> Result<(Value, Vec<Mistake>), String> {
    let document = yaml::to_bounded_document(tree)?;
    let id = schema().of(kind);
    let id = id.ok_or_else(|| not_registered(kind.kind, kind.group, kind.version))?;
    let (mut object, mistakes) = typed::read_all(&document, id);
    canonicalize(id, &mut object);
    object["kind"] = Value::from(kind.kind);
    object["apiVersion"] = Value::from(kind.api_version());
    Ok((object, mistakes))
}

/// An empty list, unlike none, requests a reset.
fn resets_managers(document: &Document<'_>) -> bool {
    let entries = document
        .member("metadata")
        .and_then(|meta| meta.member("managedFields"));
    matches!(entries, Some(Document::Array(entries)) if entries.is_empty())
}

/// Protobuf has no unknown fields or duplicates.
fn decode_protobuf(body: &[u8], kind: GroupVersionKind) -> Result<Decoded, DecodeError> {
    let mut object = protobuf::decode(body, &kind.api_version(), kind.kind).map_err(|error| {
        DecodeError::Unrecognized {
            expected: kind.kind.to_owned(),
            reason: error.to_string(),
            start: summary(body),
        }
    })?;
    let text = |key: &str| object[key].as_str().unwrap_or_default();
    let name = text("kind").to_owned();
    let (group, version) = match text("apiVersion").split_once('/') {
        Some((group, version)) => (group.to_owned(), version.to_owned()),
        None => (String::new(), text("apiVersion").to_owned()),
    };
    let error = |reason: String| DecodeError::Object {
        given: name.clone(),
        version: version.clone(),
        expected: kind.kind.to_owned(),
        reason,
    };
    if (name.as_str(), group.as_str(), version.as_str()) != (kind.kind, kind.group, kind.version) {
        return Err(other_kind(&name, &group, &version, kind, error));
    }
    let id = schema().of(kind);
    let id = id.ok_or_else(|| error(not_registered(&name, &group, &version)))?;
    canonicalize(id, &mut object);
    Ok(Decoded {
        object,
        warnings: Vec::new(),
        resets_managers: false,
    })
}

/// The body of a server-side apply: some fields of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Configuration {
    /// The fields, decoded without their types.
    pub value: Value,
    /// The errors of strict decoding: duplicate members.
    pub duplicates: Vec<String>,
}

/// Decodes the body of an apply: YAML, of which JSON is a subset.
pub fn read_configuration(body: &[u8]) -> Result<Configuration, String> {
    yaml::read_configuration(body)
}

/// Untyped JSON.
#[derive(Clone, Debug, PartialEq)]
pub struct Json {
    /// The content; of duplicate members, the last.
    pub value: Value,
    /// The paths of duplicate members, such as `spec.containers[0].name`.
    pub duplicates: Vec<String>,
}

/// Decodes JSON whose type does not matter, such as a patch. Errors are in the words of Go's
/// decoder.
pub fn parse_json(body: &[u8]) -> Result<Json, String> {
    let document = json::parse(body).map_err(|error| error.to_string())?;
    let mut duplicates = Vec::new();
    document.find_duplicates(&mut String::new(), &mut duplicates);
    Ok(Json {
        value: typed::untyped(&document),
        duplicates,
    })
}

/// Why bytes are not a JSON object, in the words of Go's decoder.
pub fn check_json_object(bytes: &[u8]) -> Result<(), String> {
    match json::parse(bytes) {
        Ok(Document::Object(_) | Document::Null) => Ok(()),
        Ok(other) => {
            let found = other.go_kind();
            Err(format!(
                "json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
            ))
        }
        Err(error) => Err(error.to_string()),
    }
}

/// The error for an object of another kind than the path's: an unknown kind, another version,
/// or another kind.
fn other_kind(
    name: &str,
    group: &str,
    version: &str,
    kind: GroupVersionKind,
    error: impl Fn(String) -> DecodeError,
) -> DecodeError {
    if schema().kind(&api_version(group, version), name).is_none() {
        return error(not_registered(name, group, version));
    }
    let given = api_version(group, version);
    if given != kind.api_version() {
        return DecodeError::OtherVersion {
            given,
            expected: kind.api_version(),
        };
    }
    error(format!(
        "converting ({name}) to ({}): unknown conversion",
        kind.kind
    ))
}

fn not_registered(kind: &str, group: &str, version: &str) -> String {
    let version = api_version(group, version);
    format!(
        "no kind {kind:?} is registered for version {version:?} in scheme \
         \"pkg/api/legacyscheme/scheme.go:30\""
    )
}

fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    }
}

struct GivenType {
    kind: String,
    api_version: String,
}

/// The type in the body.
fn given_type(document: &Document<'_>) -> Result<GivenType, String> {
    let wrong = |found: &Document<'_>, field: &str| {
        let place = if field.is_empty() {
            "Go value of type struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; \
             Kind string \"json:\\\"kind,omitempty\\\"\" }"
                .to_owned()
        } else {
            format!("Go struct field .{field} of type string")
        };
        let found = found.go_kind();
        format!(
            "couldn't get version/kind; json parse error: json: cannot unmarshal {found} into {place}"
        )
    };
    let entries = match document {
        Document::Object(entries) => entries.as_slice(),
        Document::Null => &[],
        other => return Err(wrong(other, "")),
    };
    let mut given = GivenType {
        kind: String::new(),
        api_version: String::new(),
    };
    for (key, value) in entries {
        // The decoder that looks for these two ignores their case.
        let target = if key.eq_ignore_ascii_case("kind") {
            &mut given.kind
        } else if key.eq_ignore_ascii_case("apiVersion") {
            &mut given.api_version
        } else {
            continue;
        };
        match value {
            Document::String(text) => *target = text.clone().into_owned(),
            Document::Null => {}
            other => {
                return Err(wrong(
                    other,
                    if key.len() == 4 { "kind" } else { "apiVersion" },
                ));
            }
        }
    }
    if given.api_version.matches('/').count() > 1 {
        return Err(format!(
            "unexpected GroupVersion string: {}",
            given.api_version
        ));
    }
    Ok(given)
}

fn or_expected<'a>(given: &'a str, expected: &'a str) -> &'a str {
    if given.is_empty() { expected } else { given }
}

/// The beginning of the body: as text if it looks like JSON, else in hexadecimal digits.
fn summary(body: &[u8]) -> String {
    const SHOWN_BYTES: usize = 30;
    let shown = &body[..body.len().min(SHOWN_BYTES)];
    let rest = if shown.len() < body.len() { " ..." } else { "" };
    match body.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => format!("{}{rest}", String::from_utf8_lossy(shown)),
        Some(_) => {
            let digits: String = shown.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{digits}{rest}")
        }
    }
}
