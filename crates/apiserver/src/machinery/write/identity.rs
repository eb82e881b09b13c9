//! Checks that the path, the object and the stored object have the same identity.
//!
//! Matches v1.36 apiserver/pkg/endpoints/handlers (checkName), apiserver/pkg/registry/rest and the
//! checks of versions in apiserver/pkg/registry/generic/registry/store.go.

use plimsoll_core::problem::{Problem, quoted};
use serde_json::{Value, json};

use super::{Request, metadata, name_of, remove, text};
use crate::status::Status;

/// An object without a namespace gets the request's; a cluster-scoped one loses its
/// own.
pub(super) fn match_namespace(request: &Request<'_>, object: &mut Value) -> Result<(), Status> {
    let expected = request.expected_namespace();
    let meta = metadata(object);
    let given = text(&meta["namespace"]);
    if given == expected {
        return Ok(());
    }
    if expected.is_empty() {
        remove(meta, "namespace");
        return Ok(());
    }
    if !given.is_empty() {
        return Err(Status::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    meta["namespace"] = json!(expected);
    Ok(())
}

/// The object must have the name in the path.
pub(super) fn match_name(request: &Request<'_>, object: &Value) -> Result<(), Status> {
    let (given, expected) = (name_of(object), request.name);
    if given == expected && !given.is_empty() {
        return Ok(());
    }
    Err(Status::bad_request(if given.is_empty() {
        format!(
            "the name of the object ({expected} based on URL) was undeterminable: name must be \
             provided"
        )
    } else {
        format!("the name of the object ({given}) does not match the name on the URL ({expected})")
    }))
}

/// A uid in the body is a precondition; `stored` is empty if there is no object.
pub(super) fn match_uid(request: &Request<'_>, object: &Value, stored: &str) -> Result<(), Status> {
    let given = text(&object["metadata"]["uid"]);
    if given.is_empty() || given == stored {
        return Ok(());
    }
    let kind = request.kind;
    let prefix = kind.storage.unwrap_or(kind.plural);
    let namespace = match request.expected_namespace() {
        "" => String::new(),
        namespace => format!("{namespace}/"),
    };
    let key = format!("/registry/{prefix}/{namespace}{}", request.name);
    let reason = format!(
        "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, \
         AdditionalErrorMsg: Precondition failed: UID in precondition: {given}, UID in object \
         meta: {stored}"
    );
    Err(Status::conflict(kind, request.name, &reason))
}

/// The object's version must be the stored one's. An object without a version overwrites
/// the stored one, if its kind allows that.
pub(super) fn match_version(
    request: &Request<'_>,
    object: &Value,
    old: &Value,
) -> Result<Option<String>, Status> {
    let kind = request.kind;
    let given = text(&object["metadata"]["resourceVersion"]);
    match version(given)? {
        0 if kind.strategy.allows_unconditional_update => Ok(None),
        0 => {
            let detail = "must be specified for an update";
            let problem = Problem::invalid_bare("metadata.resourceVersion", json!(0), detail);
            // Upstream has the resource in place of the kind.
            Err(Status::invalid_kind(
                kind.group,
                kind.plural,
                request.name,
                &[problem],
            ))
        }
        number => {
            if number == version(text(&old["metadata"]["resourceVersion"]))? {
                Ok(Some(given.to_owned()))
            } else {
                Err(Status::modified(kind, request.name))
            }
        }
    }
}

/// The number of a version; 0 if there is none.
pub(super) fn version(text: &str) -> Result<u64, Status> {
    if text.is_empty() {
        return Ok(0);
    }
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(version) if is_number => Ok(version),
        _ => {
            let problem = if is_number {
                "value out of range"
            } else {
                "invalid syntax"
            };
            let text = quoted(text);
            Err(Status::unexpected(format!(
                "strconv.ParseUint: parsing {text}: {problem}"
            )))
        }
    }
}
