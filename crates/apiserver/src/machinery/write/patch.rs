//! PATCH of all four types.

use serde_json::Value;

use super::context::{Input, WriteContext};
use super::identity::{match_name, match_namespace};
use super::read::{forget_managers, set_defaults};
use super::{
    Accepted, Admission, Body, FieldValidation, Identity, Part, PatchType, Request, create, scale,
    text, update,
};
use crate::machinery::decoding::read_configuration;
use crate::machinery::patch::apply_patch;
use crate::machinery::schema::schema;
use crate::status::Status;

/// Applies a PATCH to `old`, which has its resourceVersion; `None` if there is no such
/// object, which an apply then creates. `force` takes fields over from their managers.
pub fn patch(
    request: &Request<'_>,
    patch: PatchType,
    force: bool,
    body: Body<'_>,
    old: Option<&Value>,
    identity: Identity<'_>,
    admission: &mut dyn Admission,
) -> Result<Accepted, Status> {
    let mut context = WriteContext::new(request, admission, Input::Nothing);
    let outcome = match old {
        Some(old) => changed(&mut context, patch, force, body, old),
        // Subresources never create.
        None if patch != PatchType::Apply || request.part != Part::Main => {
            Err(Status::not_found(request.kind, request.name))
        }
        None => created(&mut context, force, body, identity),
    };
    context.finish(outcome)
}

fn created(
    context: &mut WriteContext<'_>,
    force: bool,
    body: Body<'_>,
    identity: Identity<'_>,
) -> Result<Accepted, Status> {
    let request = context.request;
    let mut object = applied(context, force, body, None)?;
    match_no_uid(request, &object)?;
    match_namespace(request, &mut object)?;
    match_name(request, &object)?;
    create::finish(context, object, identity)
}

fn changed(
    context: &mut WriteContext<'_>,
    patch: PatchType,
    force: bool,
    body: Body<'_>,
    old: &Value,
) -> Result<Accepted, Status> {
    let request = context.request;
    let old_scale = match request.part {
        Part::Scale => Some(scale::with_managers(request.kind, old)?),
        _ => None,
    };
    let before = old_scale.as_ref().unwrap_or(old);
    let mut object = match patch {
        PatchType::Apply => applied(context, force, body, Some(before))?,
        _ => computed(context, patch, body, before)?,
    };
    match_namespace(request, &mut object)?;
    match_name(request, &object)?;
    match &old_scale {
        Some(before) => scale::finish(context, object, before, old),
        None => update::finish(context, object, old),
    }
}

/// An object that does not exist has no uid.
fn match_no_uid(request: &Request<'_>, object: &Value) -> Result<(), Status> {
    let uid = text(&object["metadata"]["uid"]);
    if uid.is_empty() {
        return Ok(());
    }
    let reason = format!(
        "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
    );
    Err(Status::conflict(request.kind, request.name, &reason))
}

/// One of the three patches that clients compute; the result has its defaults and managers.
fn computed(
    context: &mut WriteContext<'_>,
    patch: PatchType,
    body: Body<'_>,
    old: &Value,
) -> Result<Value, Status> {
    let request = context.request;
    let of = request.body_type();
    let id = schema().of(of).ok_or_else(Status::unrouted_media_type)?;
    let patched = apply_patch(id, patch, old, body.bytes, request.validation)?;
    let mut object = patched.object;
    set_defaults(of, &mut object);
    if resets_managers(&patched.given) {
        forget_managers(&mut object);
    }
    context.warnings.extend(patched.warnings);
    context.input = Input::Patched(patched.given);
    Ok(request.track(Some(old), object))
}

/// An empty list, unlike none, requests a reset.
fn resets_managers(patched: &Value) -> bool {
    let entries = patched.pointer("/metadata/managedFields");
    entries.and_then(Value::as_array).is_some_and(Vec::is_empty)
}

/// Server-side apply; the result has its defaults and managers.
fn applied(
    context: &mut WriteContext<'_>,
    force: bool,
    body: Body<'_>,
    old: Option<&Value>,
) -> Result<Value, Status> {
    let request = context.request;
    let fields = request
        .field_manager()
        .ok_or_else(Status::unrouted_media_type)?;
    let configuration = read_configuration(body.bytes)
        .map_err(|error| Status::bad_request(format!("error decoding YAML: {error}")))?;
    let applied = &configuration.value;
    let mut object = fields.apply(old, applied, request.manager, force, request.now)?;
    set_defaults(request.body_type(), &mut object);
    let duplicates = configuration.duplicates;
    match request.validation {
        FieldValidation::Ignore => {}
        FieldValidation::Strict if !duplicates.is_empty() => {
            return Err(Status::bad_request(format!(
                "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal \
                 errors:\n  {}",
                duplicates.join("\n  ")
            )));
        }
        _ => context.warnings.extend(duplicates),
    }
    Ok(object)
}
