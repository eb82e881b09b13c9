//! Updating objects.

use serde_json::Value;

use super::context::{Input, WriteContext};
use super::identity::{match_name, match_namespace, match_uid, match_version};
use super::owners::{Found, remove_duplicates};
use super::read::read;
use super::{
    Accepted, Admission, Body, Part, Request, metadata, remove, scale, text, without_field_sets,
};
use crate::machinery::strategy::{complete, prepare_for_update};
use crate::machinery::validation::{validate_update, warnings_on_update};
use crate::status::Status;

/// Prepares the update of `old`, which has its resourceVersion, by a PUT.
pub fn update(
    request: &Request<'_>,
    body: Body<'_>,
    old: &Value,
    admission: &mut dyn Admission,
) -> Result<Accepted, Status> {
    let mut context = WriteContext::new(request, admission, Input::Body(body.bytes));
    let outcome = updated(&mut context, body, old);
    context.finish(outcome)
}

fn updated(
    context: &mut WriteContext<'_>,
    body: Body<'_>,
    old: &Value,
) -> Result<Accepted, Status> {
    let request = context.request;
    let mut object = read(context, body)?;
    match_namespace(request, &mut object)?;
    match_name(request, &object)?;
    match_uid(request, &object, text(&old["metadata"]["uid"]))?;
    if request.part == Part::Scale {
        let old_scale = scale::with_managers(request.kind, old)?;
        let scale = request.track(Some(&old_scale), object);
        return scale::finish(context, scale, &old_scale, old);
    }
    remove_duplicates(&mut object, Found::InRequest, &mut context.warnings);
    let object = request.track(Some(old), object);
    finish(context, object, old)
}

/// Prepares an object that the server itself has changed, such as a pod that is bound or an object
/// whose deletion begins. Its managers change only if the request names one.
pub fn replace(
    request: &Request<'_>,
    mut new: Value,
    old: &Value,
    admission: &mut dyn Admission,
) -> Result<Accepted, Status> {
    complete(request.kind.group_version_kind(), &mut new);
    if !request.manager.is_empty() {
        new = request.track(Some(old), new);
    }
    let mut context = WriteContext::new(request, admission, Input::Nothing);
    let outcome = finish(&mut context, new, old);
    context.finish(outcome)
}

/// Admission, strategy and validation of an object whose fields have their managers.
pub(super) fn finish(
    context: &mut WriteContext<'_>,
    mut object: Value,
    old: &Value,
) -> Result<Accepted, Status> {
    let request = context.request;
    context.admission.admit(&mut object, Some(old))?;
    remove_duplicates(&mut object, Found::AfterAdmission, &mut context.warnings);
    let resource_version = match_version(request, &object, old)?;
    settle(context, request.part, &mut object, old)?;
    context.admit(&object, Some(old))?;
    remove(metadata(&mut object), "resourceVersion");
    Ok(Accepted {
        object,
        warnings: Vec::new(),
        is_new: false,
        resource_version,
    })
}

/// The strategy's part of an update.
pub(super) fn settle(
    context: &mut WriteContext<'_>,
    part: Part,
    object: &mut Value,
    old: &Value,
) -> Result<(), Status> {
    let (kind, rules) = (context.request.kind, context.request.rules);
    metadata(object)["resourceVersion"] = old["metadata"]["resourceVersion"].clone();
    prepare_for_update(kind, part, object, old, context.request.now);
    keep_identity(metadata(object), &old["metadata"]);
    let before = without_managers(old);
    let (problems, warnings) = without_field_sets(object, |object| {
        let problems = validate_update(kind, part, object, &before, rules);
        (problems, warnings_on_update(kind, object, &before))
    });
    context.check(object, problems)?;
    context.warnings.extend(warnings);
    keep_times_of_managers(object, old);
    Ok(())
}

/// A copy of the object for validation, which does not use its managers.
fn without_managers(object: &Value) -> Value {
    let Some(members) = object.as_object() else {
        return object.clone();
    };
    let copied = members.iter().map(|(name, value)| {
        let value = match value.as_object() {
            Some(meta) if name == "metadata" => meta
                .iter()
                .filter(|(name, _)| *name != "managedFields")
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
            _ => value.clone(),
        };
        (name.clone(), value)
    });
    copied.collect()
}

/// Restores fields that an update cannot remove.
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
    if let Some(meta) = meta.as_object_mut() {
        meta.retain(|_, value| !value.is_null());
    }
}

/// An update that changes nothing but the times in `managedFields` is not a change.
///
/// Matches v1.36 apiserver/pkg/endpoints/handlers/fieldmanager/equality.go.
fn keep_times_of_managers(object: &mut Value, old: &Value) {
    let old_entries = &old["metadata"]["managedFields"];
    let entries = metadata(object)["managedFields"].take();
    let is_same = match (entries.as_array(), old_entries.as_array()) {
        (Some(new), Some(old)) => {
            new.len() == old.len()
                && new
                    .iter()
                    .zip(old)
                    .all(|(new, old)| is_same_entry(new, old))
        }
        _ => false,
    };
    if !is_same {
        restore(object, entries);
        return;
    }
    restore(object, old_entries.clone());
    if object != old {
        restore(object, entries);
    }
}

fn restore(object: &mut Value, entries: Value) {
    let meta = metadata(object);
    if entries.is_null() {
        remove(meta, "managedFields");
    } else {
        meta["managedFields"] = entries;
    }
}

/// Whether two entries differ at most in their time.
fn is_same_entry(new: &Value, old: &Value) -> bool {
    let (Some(new), Some(old)) = (new.as_object(), old.as_object()) else {
        return false;
    };
    let fields = |entry: &serde_json::Map<String, Value>| {
        entry.keys().filter(|key| key.as_str() != "time").count()
    };
    let is_equal = |(key, value): (&String, &Value)| key == "time" || old.get(key) == Some(value);
    fields(new) == fields(old) && new.iter().all(is_equal)
}
