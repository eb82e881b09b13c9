//! The strategies: preparing objects of a kind before validation.
//!
//! Matches v1.36 pkg/registry/*/strategy.go.

pub mod certificates;
mod pod;
mod service;
mod volume;

use k8s_openapi::api::batch::v1::Job;
use serde_json::{Map, Value, json};

use super::conversion::TEMPLATE_GENERATION;
use super::schema::{canonicalize, schema};
use super::validation::Part;
use crate::kinds::{Generation, GroupVersionKind, Kind};

type Object = Map<String, Value>;

/// Prepares a new object. It has its name and uid; `now` is the time in the format of objects.
pub fn prepare_for_create(kind: &Kind, object: &mut Value, now: &str) {
    if let Generation::One | Generation::Counts(_) = kind.strategy.generation {
        object["metadata"]["generation"] = json!(1);
    }
    // A new node may set its status.
    if kind.has_status() && (kind.group, kind.kind) != ("", "Node") {
        object["status"] = json!({});
    }
    match (kind.group, kind.kind) {
        ("", "Pod") => pod::prepare_for_create(object, now),
        ("", "Service") => service::prepare_for_create(object),
        ("", "Namespace") => prepare_namespace(object),
        ("apps", "DaemonSet") => {
            let annotations = child(child(root(object), "metadata"), "annotations");
            let given = annotations.get(TEMPLATE_GENERATION).and_then(Value::as_str);
            let given = given
                .and_then(|text| text.parse::<i64>().ok())
                .unwrap_or_default();
            let generation = Value::from(given.max(1).to_string());
            annotations.insert(TEMPLATE_GENERATION.to_owned(), generation);
        }
        ("batch", "Job") => generate_job_selector(object),
        ("certificates.k8s.io", "CertificateSigningRequest") => {
            certificates::prepare_for_create(object);
        }
        ("", "PersistentVolumeClaim") => {
            object["status"] = json!({"phase": "Pending"});
            volume::match_data_sources(object, None);
        }
        ("", "PersistentVolume") => {
            object["status"] = json!({"phase": "Pending", "lastPhaseTransitionTime": now});
        }
        _ => {}
    }
    complete(kind.group_version_kind(), object);
}

/// Prepares an updated object for the main resource or a subresource.
pub fn prepare_for_update(kind: &Kind, part: Part, new: &mut Value, old: &Value, now: &str) {
    new["metadata"]["generation"] = old["metadata"]["generation"].clone();
    match (part, kind.group, kind.kind) {
        (_, "", "Pod") => pod::prepare_for_update(part, new, old),
        (Part::Finalize, "", "Namespace") => copy(new, old, "status"),
        (part, "certificates.k8s.io", "CertificateSigningRequest") => {
            certificates::prepare_for_update(part, new, old);
        }
        (Part::Status, group, name) => {
            copy(new, old, "spec");
            if (group, name) == ("apps", "Deployment") {
                let labels = old["metadata"]["labels"].clone();
                set(child(root(new), "metadata"), "labels", labels);
            }
            if (group, name) == ("", "PersistentVolume") {
                volume::keep_transition_time(new, old, now);
            }
            if (group, name) == ("", "Node") && old["status"]["config"].is_null() {
                child(root(new), "status").remove("config");
            }
        }
        (_, group, name) => {
            if kind.has_status() {
                copy(new, old, "status");
            }
            match (group, name) {
                ("", "Namespace") => {
                    let finalizers = old["spec"]["finalizers"].clone();
                    set(child(root(new), "spec"), "finalizers", finalizers);
                }
                ("", "Secret") if new["type"].as_str().unwrap_or_default().is_empty() => {
                    copy(new, old, "type")
                }
                ("", "Service") => {
                    service::prepare_for_update(new, old);
                    if new["spec"]["type"] != "LoadBalancer" {
                        child(root(new), "status").remove("loadBalancer");
                    }
                }
                ("", "PersistentVolumeClaim") => volume::match_data_sources(new, Some(old)),
                ("apps", "DaemonSet") => count_template_changes(new, old),
                _ => {}
            }
        }
    }
    complete(kind.group_version_kind(), new);
    if part != Part::Status && is_generation_raised(kind, new, old) {
        let generation = old["metadata"]["generation"].as_i64().unwrap_or_default();
        new["metadata"]["generation"] = json!(generation.saturating_add(1));
    }
}

fn is_generation_raised(kind: &Kind, new: &Value, old: &Value) -> bool {
    let (Generation::Counts(counted) | Generation::CountsFromZero(counted)) =
        kind.strategy.generation
    else {
        return false;
    };
    let is_changed = |old: &Value| {
        let mut counted = counted.iter();
        counted.any(|pointer| new.pointer(pointer) != old.pointer(pointer))
    };
    // Stored objects are in canonical form, unless another program has stored them.
    is_changed(old) && {
        let mut old = old.clone();
        complete(kind.group_version_kind(), &mut old);
        is_changed(&old)
    }
}

/// Puts the object into canonical form.
pub fn complete(of: GroupVersionKind, object: &mut Value) {
    if let Some(id) = schema().of(of) {
        canonicalize(id, object);
    }
}

fn prepare_namespace(object: &mut Value) {
    object["status"] = json!({"phase": "Active"});
    let spec = child(root(object), "spec");
    let finalizers = spec.entry("finalizers").or_insert_with(|| json!([]));
    if let Value::Array(finalizers) = finalizers
        && !finalizers.contains(&json!("kubernetes"))
    {
        finalizers.push(json!("kubernetes"));
    }
}

/// The template generation of a DaemonSet is kept in an annotation.
fn count_template_changes(new: &mut Value, old: &Value) {
    let before = old["metadata"]["annotations"][TEMPLATE_GENERATION].as_str();
    let before: i64 = before
        .and_then(|text| text.parse().ok())
        .unwrap_or_default();
    let is_changed = new["spec"]["template"] != old["spec"]["template"];
    let generation = before.saturating_add(i64::from(is_changed));
    let annotations = child(child(root(new), "metadata"), "annotations");
    annotations.insert(
        TEMPLATE_GENERATION.to_owned(),
        Value::from(generation.to_string()),
    );
}

/// A job selects its pods by its own uid unless the caller sets a manual selector.
fn generate_job_selector(object: &mut Value) {
    let Ok(job) = serde_json::from_value::<Job>(object.clone()) else {
        return;
    };
    let spec = job.spec.unwrap_or_default();
    if spec.manual_selector == Some(true) {
        return;
    }
    let (name, uid) = (
        job.metadata.name.unwrap_or_default(),
        job.metadata.uid.unwrap_or_default(),
    );
    let spec = child(root(object), "spec");
    let labels = child(child(child(spec, "template"), "metadata"), "labels");
    for (key, value) in [
        ("job-name", &name),
        ("batch.kubernetes.io/job-name", &name),
        ("controller-uid", &uid),
        ("batch.kubernetes.io/controller-uid", &uid),
    ] {
        labels
            .entry(key)
            .or_insert_with(|| Value::from(value.as_str()));
    }
    let selector = child(child(spec, "selector"), "matchLabels");
    selector
        .entry("batch.kubernetes.io/controller-uid")
        .or_insert_with(|| Value::from(uid));
}

fn copy(new: &mut Value, old: &Value, field: &str) {
    set(root(new), field, old[field].clone());
}

fn set(object: &mut Object, field: &str, value: Value) {
    if value.is_null() {
        object.remove(field);
    } else {
        object.insert(field.to_owned(), value);
    }
}

fn root(object: &mut Value) -> &mut Object {
    if !object.is_object() {
        *object = Value::Object(Object::new());
    }
    object
        .as_object_mut()
        .expect("anything else was replaced by an object")
}

fn child<'a>(object: &'a mut Object, field: &str) -> &'a mut Object {
    root(object.entry(field).or_insert(Value::Null))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deployments() -> &'static Kind {
        crate::kinds::by_kind("apps/v1", "Deployment").unwrap()
    }

    #[test]
    fn generation_counts_only_spec_changes() {
        let old = json!({"metadata": {"name": "d", "generation": 3}, "spec": {"replicas": 1}});
        let mut new = old.clone();
        new["status"] = json!({"replicas": 5});
        prepare_for_update(deployments(), Part::Main, &mut new, &old, "");
        assert_eq!(new["metadata"]["generation"], 3);
        assert_eq!(new["status"], json!({}));
        new["spec"]["replicas"] = json!(2);
        prepare_for_update(deployments(), Part::Main, &mut new, &old, "");
        assert_eq!(new["metadata"]["generation"], 4);
    }

    #[test]
    fn status_update_keeps_the_spec() {
        let old = json!({"metadata": {"generation": 3}, "spec": {"replicas": 1}});
        let mut new = json!({"metadata": {}, "spec": {"replicas": 2}, "status": {"replicas": 1}});
        prepare_for_update(deployments(), Part::Status, &mut new, &old, "");
        assert_eq!(new["spec"]["replicas"], 1);
        assert_eq!(new["status"]["replicas"], 1);
        assert_eq!(new["metadata"]["generation"], 3);
    }
}
