//! The way of an object from the wire to the store: create and update, without the store.
//!
//! Decoding, defaults, mutating admission, the kind's strategy, validation, validating admission,
//! in upstream's order: an object that is both malformed and forbidden is malformed.

use plimsoll_core::problem::Problem;
use serde_json::{Value, json};

use super::admission::{self, Cluster};
use super::conversion::round_trip;
use super::decoding::{BodyFormat, DecodeError, FieldValidation, decode};
use super::defaulting::apply_defaults;
use super::kind::Kind;
use super::strategy::{complete, prepare_for_create, prepare_for_update};
use super::validation::{
    Part, Rules, validate_create, validate_update, warnings_on_create, warnings_on_update,
};

/// The longest beginning of a name; what is added to it has five characters.
const MAX_NAME_PREFIX: usize = 58;

/// A body and how to read it.
#[derive(Clone, Copy, Debug)]
pub struct Body<'a> {
    /// The bytes.
    pub bytes: &'a [u8],
    /// How they are written.
    pub format: BodyFormat,
    /// What to do about unknown fields.
    pub validation: FieldValidation,
}

/// What a server invents for a new object.
#[derive(Clone, Copy, Debug)]
pub struct Identity<'a> {
    /// The uid.
    pub uid: &'a str,
    /// The time, as objects print it.
    pub now: &'a str,
    /// What `generateName` is followed by.
    pub name_suffix: &'a str,
}

/// An object that may be stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Accepted {
    /// The object.
    pub object: Value,
    /// What the caller should be told.
    pub warnings: Vec<String>,
}

/// Why an object may not be stored.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    /// The body is no object of the kind.
    Undecodable(DecodeError),
    /// The object and the path disagree, in these words.
    Mismatch(String),
    /// A new object that says it has been stored before.
    AlreadyVersioned,
    /// The object breaks rules.
    Invalid {
        /// The object's name.
        name: String,
        /// The broken rules.
        problems: Vec<Problem>,
    },
    /// Admission refuses it.
    Forbidden {
        /// The object's name, or what it begins with.
        name: String,
        /// Why.
        reason: String,
    },
}

const OTHER_NAMESPACE: &str =
    "the namespace of the provided object does not match the namespace sent on the request";

/// Prepares a new object; `namespace` is the request's, empty for kinds without.
pub fn create(
    kind: &Kind,
    namespace: &str,
    body: Body<'_>,
    identity: Identity<'_>,
    cluster: &Cluster,
    rules: Rules,
) -> Result<Accepted, Refusal> {
    let (mut object, mut warnings) = read(kind, body)?;
    let meta = &mut object["metadata"];
    for field in [
        "creationTimestamp",
        "uid",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "selfLink",
    ] {
        remove(meta, field);
    }
    match_namespace(kind, namespace, meta)?;
    admission::admit_new(kind, &mut object, cluster)
        .map_err(|reason| forbidden(&object, reason))?;
    if !text(&object["metadata"]["resourceVersion"]).is_empty() {
        return Err(Refusal::AlreadyVersioned);
    }
    let meta = &mut object["metadata"];
    meta["uid"] = json!(identity.uid);
    meta["creationTimestamp"] = json!(identity.now);
    if text(&meta["name"]).is_empty() && !text(&meta["generateName"]).is_empty() {
        let prefix: String = text(&meta["generateName"])
            .chars()
            .take(MAX_NAME_PREFIX)
            .collect();
        meta["name"] = json!(format!("{prefix}{}", identity.name_suffix));
    }
    prepare_for_create(kind, &mut object, identity.now);
    let problems = validate_create(kind, &object, rules);
    if !problems.is_empty() {
        return Err(invalid(&object, problems));
    }
    warnings.extend(warnings_on_create(kind, &object));
    if (kind.group, kind.kind) == ("", "Namespace") {
        // A generated name was not known when defaults were set.
        let name = object["metadata"]["name"].clone();
        object["metadata"]["labels"]["kubernetes.io/metadata.name"] = name;
    }
    admission::check_new(kind, &object, cluster).map_err(|reason| forbidden(&object, reason))?;
    Ok(Accepted { object, warnings })
}

/// Where an update is sent to.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// The namespace in the path, empty for kinds without.
    pub namespace: &'a str,
    /// The name in the path.
    pub name: &'a str,
    /// The part of the object.
    pub part: Part,
}

/// Prepares an object that replaces `old`. Whether its resourceVersion is current is the store's to
/// say.
pub fn update(
    kind: &Kind,
    target: Target<'_>,
    body: Body<'_>,
    old: &Value,
    cluster: &Cluster,
    rules: Rules,
) -> Result<Accepted, Refusal> {
    let (mut object, warnings) = read(kind, body)?;
    match_namespace(kind, target.namespace, &mut object["metadata"])?;
    let name = text(&object["metadata"]["name"]);
    if name != target.name {
        return Err(Refusal::Mismatch(if name.is_empty() {
            "name must be provided".to_owned()
        } else {
            let expected = target.name;
            format!(
                "the name of the object ({name}) does not match the name on the URL ({expected})"
            )
        }));
    }
    replace(kind, target.part, object, warnings, old, cluster, rules)
}

/// Prepares a decoded and defaulted object, such as the outcome of a patch, that replaces `old`.
pub fn replace(
    kind: &Kind,
    part: Part,
    mut object: Value,
    mut warnings: Vec<String>,
    old: &Value,
    cluster: &Cluster,
    rules: Rules,
) -> Result<Accepted, Refusal> {
    admission::admit_changed(kind, part, &mut object, old, cluster)
        .map_err(|reason| forbidden(&object, reason))?;
    prepare_for_update(kind, part, &mut object, old);
    keep_identity(&mut object["metadata"], &old["metadata"]);
    let problems = validate_update(kind, part, &object, old, rules);
    if !problems.is_empty() {
        return Err(invalid(&object, problems));
    }
    warnings.extend(warnings_on_update(kind, &object, old));
    admission::check_changed(kind, part, &object, cluster)
        .map_err(|reason| forbidden(&object, reason))?;
    Ok(Accepted { object, warnings })
}

fn read(kind: &Kind, body: Body<'_>) -> Result<(Value, Vec<String>), Refusal> {
    let decoded = decode(body.bytes, body.format, kind, body.validation);
    let mut decoded = decoded.map_err(Refusal::Undecodable)?;
    apply_defaults(kind.group, kind.kind, &mut decoded.object);
    round_trip(kind.group, kind.kind, &mut decoded.object);
    complete(kind, &mut decoded.object);
    Ok((decoded.object, decoded.warnings))
}

/// An object without a namespace gets the request's; one of a kind without namespaces loses its own.
fn match_namespace(kind: &Kind, namespace: &str, meta: &mut Value) -> Result<(), Refusal> {
    let expected = if kind.is_namespaced { namespace } else { "" };
    let given = text(&meta["namespace"]);
    if given == expected {
        return Ok(());
    }
    if expected.is_empty() {
        remove(meta, "namespace");
        return Ok(());
    }
    if !given.is_empty() {
        return Err(Refusal::Mismatch(OTHER_NAMESPACE.to_owned()));
    }
    meta["namespace"] = json!(expected);
    Ok(())
}

/// What an update cannot leave out.
fn keep_identity(meta: &mut Value, old: &Value) {
    if text(&meta["uid"]).is_empty() && !old["uid"].is_null() {
        meta["uid"] = old["uid"].clone();
    }
    for field in ["creationTimestamp", "deletionTimestamp"] {
        if !old[field].is_null() {
            meta[field] = old[field].clone();
        }
    }
    if meta["deletionGracePeriodSeconds"].is_null() && !old["deletionGracePeriodSeconds"].is_null()
    {
        meta["deletionGracePeriodSeconds"] = old["deletionGracePeriodSeconds"].clone();
    }
    let cleared: Vec<String> = match meta.as_object() {
        Some(meta) => meta
            .iter()
            .filter(|(_, v)| v.is_null())
            .map(|(k, _)| k.clone())
            .collect(),
        None => Vec::new(),
    };
    for field in cleared {
        remove(meta, &field);
    }
}

fn invalid(object: &Value, problems: Vec<Problem>) -> Refusal {
    Refusal::Invalid {
        name: text(&object["metadata"]["name"]).to_owned(),
        problems,
    }
}

fn forbidden(object: &Value, reason: String) -> Refusal {
    let meta = &object["metadata"];
    let name = match text(&meta["name"]) {
        "" => text(&meta["generateName"]),
        name => name,
    };
    Refusal::Forbidden {
        name: name.to_owned(),
        reason,
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn remove(object: &mut Value, field: &str) {
    if let Some(object) = object.as_object_mut() {
        object.remove(field);
    }
}
