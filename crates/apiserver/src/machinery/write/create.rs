//! Creating objects.

use serde_json::{Value, json};

use super::context::{Input, WriteContext};
use super::identity::{match_name, match_namespace, match_uid, version};
use super::owners::{Found, remove_duplicates};
use super::read::read;
use super::{
    Accepted, Admission, Body, Identity, Request, metadata, remove, text, without_field_sets,
};
use crate::machinery::strategy::prepare_for_create;
use crate::machinery::validation::check_create;
use crate::status::Status;

/// The maximum length of a name prefix; the generated suffix has five characters.
const MAX_NAME_PREFIX: usize = 58;

/// Prepares a new object.
///
/// A request with a name is a PUT of an object that does not exist: the object must have that name,
/// and none is generated.
pub fn create(
    request: &Request<'_>,
    body: Body<'_>,
    identity: Identity<'_>,
    admission: &mut dyn Admission,
) -> Result<Accepted, Status> {
    let mut context = WriteContext::new(request, admission, Input::Body(body.bytes));
    let outcome = created(&mut context, body, identity);
    context.finish(outcome)
}

fn created(
    context: &mut WriteContext<'_>,
    body: Body<'_>,
    identity: Identity<'_>,
) -> Result<Accepted, Status> {
    let request = context.request;
    let mut object = read(context, body)?;
    let is_put = !request.name.is_empty();
    if !is_put {
        forget_system_fields(&mut object);
    }
    match_namespace(request, &mut object)?;
    if is_put {
        match_name(request, &object)?;
        match_uid(request, &object, "")?;
    }
    remove_duplicates(&mut object, Found::InRequest, &mut context.warnings);
    let object = request.track(None, object);
    let accepted = finish(context, object, identity)?;
    // In upstream the store rejects it, and only for POST.
    let given = accepted.resource_version.as_deref().unwrap_or_default();
    if !is_put && version(given).is_ok_and(|version| version != 0) {
        return Err(Status::unexpected(
            "resourceVersion should not be set on objects to be created",
        ));
    }
    Ok(accepted)
}

fn forget_system_fields(object: &mut Value) {
    let meta = metadata(object);
    for field in [
        "creationTimestamp",
        "uid",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "selfLink",
    ] {
        remove(meta, field);
    }
}

/// Admission, strategy and validation of an object whose fields have their managers.
pub(super) fn finish(
    context: &mut WriteContext<'_>,
    mut object: Value,
    identity: Identity<'_>,
) -> Result<Accepted, Status> {
    let request = context.request;
    let kind = request.kind;
    context.admission.admit(&mut object, None)?;
    remove_duplicates(&mut object, Found::AfterAdmission, &mut context.warnings);
    let resource_version = take_version(&mut object);
    let meta = metadata(&mut object);
    meta["uid"] = json!(identity.uid);
    meta["creationTimestamp"] = json!(request.now);
    let prefix = text(&meta["generateName"]);
    if text(&meta["name"]).is_empty() && !prefix.is_empty() {
        let prefix: String = prefix.chars().take(MAX_NAME_PREFIX).collect();
        meta["name"] = json!(format!("{prefix}{}", identity.name_suffix));
    }
    prepare_for_create(kind, &mut object, request.now);
    let rules = request.rules;
    let verdict = without_field_sets(&mut object, |object| check_create(kind, object, rules));
    context.check(&object, verdict.problems)?;
    context.warnings.extend(verdict.warnings);
    if (kind.group, kind.kind) == ("", "Namespace") {
        // A generated name was not known when defaults were set.
        let meta = metadata(&mut object);
        meta["labels"]["kubernetes.io/metadata.name"] = meta["name"].clone();
    }
    context.admit(&object, None)?;
    Ok(Accepted {
        object,
        warnings: Vec::new(),
        is_new: true,
        resource_version,
    })
}

/// Removes the version from the object.
fn take_version(object: &mut Value) -> Option<String> {
    let meta = metadata(object).as_object_mut()?;
    match meta.remove("resourceVersion") {
        Some(Value::String(version)) if !version.is_empty() => Some(version),
        _ => None,
    }
}
