//! The subresource `scale`: an object's number of replicas.
//!
//! Matches `ScaleREST` of v1.36 pkg/registry/apps/deployment/storage/storage.go and of the other
//! kinds that have one. `old` and the result are the object, not its scale.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use plimsoll_core::object::selector;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::context::WriteContext;
use super::identity::match_version;
use super::{Accepted, Part, Request, metadata, name_of, remove, text, update};
use crate::kinds::{GroupVersionKind, Kind};
use crate::machinery::apply::scale::{to_parent, to_scale};
use crate::machinery::strategy::complete;
use crate::machinery::validation::validate_scale;
use crate::status::Status;

pub(super) const SCALE: GroupVersionKind = GroupVersionKind {
    group: "autoscaling",
    version: "v1",
    kind: "Scale",
};

/// The scale of an object, as it is returned.
pub fn scale_of(object: &Value) -> Value {
    let mut meta = Map::new();
    for field in [
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "creationTimestamp",
    ] {
        meta.insert(field.to_owned(), object["metadata"][field].clone());
    }
    let mut scale = json!({
        "kind": SCALE.kind,
        "apiVersion": SCALE.api_version(),
        "metadata": meta,
        "spec": {"replicas": object["spec"]["replicas"]},
        "status": {
            "replicas": object["status"]["replicas"],
            "selector": selector_text(&object["spec"]["selector"]),
        },
    });
    complete(SCALE, &mut scale);
    scale
}

/// The selector in one line. A ReplicationController's is a plain map.
fn selector_text(given: &Value) -> String {
    let is_map = given
        .as_object()
        .is_some_and(|members| members.values().all(Value::is_string));
    let structured = if is_map {
        LabelSelector::deserialize(json!({"matchLabels": given}))
    } else {
        LabelSelector::deserialize(given)
    };
    let parsed = structured
        .ok()
        .and_then(|given| selector::LabelSelector::from_api(Some(&given)).ok());
    parsed
        .map(|selector| selector.to_string())
        .unwrap_or_default()
}

/// The scale with those of the object's managers that own its replicas.
pub(super) fn with_managers(kind: &Kind, object: &Value) -> Result<Value, Status> {
    let mut scale = scale_of(object);
    let entries = to_scale(managers(object), &kind.api_version()).map_err(Status::unexpected)?;
    if let Some(entries) = entries {
        metadata(&mut scale)["managedFields"] = entries;
    }
    Ok(scale)
}

fn managers(object: &Value) -> &[Value] {
    let entries = object["metadata"]["managedFields"].as_array();
    entries.map(Vec::as_slice).unwrap_or_default()
}

/// Prepares the object whose new scale is `scale`.
pub(super) fn finish(
    context: &mut WriteContext<'_>,
    mut scale: Value,
    old_scale: &Value,
    old: &Value,
) -> Result<Accepted, Status> {
    let request = context.request;
    context.admission.admit(&mut scale, Some(old_scale))?;
    let problems = validate_scale(&scale);
    if !problems.is_empty() {
        let name = name_of(old);
        return Err(Status::invalid_kind(
            SCALE.group,
            SCALE.kind,
            name,
            &problems,
        ));
    }
    match_uid(request, &scale, old)?;
    let mut object = old.clone();
    let replicas = scale["spec"]["replicas"].as_i64().unwrap_or_default();
    set(&mut object["spec"], "replicas", json!(replicas));
    let entries = to_parent(managers(old), managers(&scale), &request.kind.api_version())
        .map_err(Status::unexpected)?;
    let meta = metadata(&mut object);
    set(meta, "managedFields", entries.unwrap_or_default());
    set(
        meta,
        "resourceVersion",
        scale["metadata"]["resourceVersion"].clone(),
    );
    let resource_version = match_version(request, &object, old)?;
    update::settle(context, Part::Main, &mut object, old)?;
    context.admit(&scale_of(&object), Some(old_scale))?;
    remove(metadata(&mut object), "resourceVersion");
    Ok(Accepted {
        object,
        warnings: Vec::new(),
        is_new: false,
        resource_version,
    })
}

/// A patched scale may still name another object.
fn match_uid(request: &Request<'_>, scale: &Value, old: &Value) -> Result<(), Status> {
    let (given, stored) = (
        text(&scale["metadata"]["uid"]),
        text(&old["metadata"]["uid"]),
    );
    if given.is_empty() || given == stored {
        return Ok(());
    }
    let resource = format!("{}/scale", request.kind.plural);
    let reason =
        format!("Precondition failed: UID in precondition: {given}, UID in object meta: {stored}");
    Err(Status::conflict_with(
        request.kind.group,
        &resource,
        name_of(old),
        &reason,
    ))
}

fn set(object: &mut Value, field: &str, value: Value) {
    match (object.as_object_mut(), value) {
        (Some(object), Value::Null) => {
            object.remove(field);
        }
        (Some(object), value) => {
            object.insert(field.to_owned(), value);
        }
        (None, _) => {}
    }
}
