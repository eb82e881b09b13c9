//! The effects of upstream's conversion to its internal form and back.
//!
//! Fields that exist twice in the API agree afterwards.
//! Matches v1.36 pkg/apis/core/v1/conversion.go.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use super::go::base64;
use super::schema::{Visits, schema};
use crate::kinds::GroupVersionKind;

type Object = Map<String, Value>;

/// The annotation of a DaemonSet's template generation.
pub(super) const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// Annotations of releases before init containers were a field.
const INIT_CONTAINER_ANNOTATIONS: [&str; 4] = [
    "pod.beta.kubernetes.io/init-containers",
    "pod.alpha.kubernetes.io/init-containers",
    "pod.beta.kubernetes.io/init-container-statuses",
    "pod.alpha.kubernetes.io/init-container-statuses",
];

static EFFECTS: LazyLock<Visits<fn(&mut Object)>> = LazyLock::new(|| {
    Visits::new(|fields| {
        let effect: fn(&mut Object) = match (fields.package, fields.name) {
            ("core", "Pod") => pod,
            ("core", "PodTemplateSpec") => drop_init_container_annotations,
            ("core", "PodSpec") => pod_spec,
            ("core", "PodStatus") => pod_status,
            ("core", "NodeSpec") => node_spec,
            ("core", "Secret") => secret,
            ("apps", "DaemonSet") => daemon_set,
            _ => return None,
        };
        Some(effect)
    })
});

/// Makes duplicate fields agree. The object must have its defaults.
pub fn round_trip(of: GroupVersionKind, object: &mut Value) {
    if let Some(id) = schema().of(of) {
        EFFECTS.walk(id, object, &|effect, members| effect(members));
    }
}

fn pod(pod: &mut Object) {
    drop_init_container_annotations(pod);
    let spec = pod.get_mut("spec").and_then(Value::as_object_mut);
    let seconds = spec.and_then(|spec| spec.get_mut("terminationGracePeriodSeconds"));
    if let Some(seconds) = seconds.filter(|seconds| seconds.as_i64() < Some(0)) {
        *seconds = json!(1);
    }
}

/// The template generation is a field of the internal form and an annotation outside.
fn daemon_set(set: &mut Object) {
    let meta = set.entry("metadata").or_insert_with(|| json!({}));
    let annotations = &mut meta["annotations"];
    if annotations.is_null() {
        *annotations = json!({});
    }
    if let Value::Object(annotations) = annotations {
        let count = annotations.entry(TEMPLATE_GENERATION);
        count.or_insert_with(|| json!("0"));
    }
}

fn drop_init_container_annotations(object: &mut Object) {
    let meta = object.get_mut("metadata").and_then(Value::as_object_mut);
    let Some(meta) = meta else { return };
    if let Some(annotations) = meta.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.retain(|key, _| !INIT_CONTAINER_ANNOTATIONS.contains(&key.as_str()));
        if annotations.is_empty() {
            meta.remove("annotations");
        }
    }
}

/// `serviceAccount` is the deprecated name of `serviceAccountName`.
fn pod_spec(spec: &mut Object) {
    let name = spec
        .get("serviceAccountName")
        .or_else(|| spec.get("serviceAccount"))
        .cloned();
    if let Some(name) = name {
        spec.insert("serviceAccountName".to_owned(), name.clone());
        spec.insert("serviceAccount".to_owned(), name);
    }
}

fn pod_status(status: &mut Object) {
    first_of_list(status, "podIP", "podIPs", |ip| json!({"ip": ip}), "ip");
}

fn node_spec(spec: &mut Object) {
    let single = spec
        .get("podCIDR")
        .and_then(Value::as_str)
        .map(str::to_owned);
    let first = spec.get("podCIDRs").and_then(|list| list[0].as_str());
    match single {
        Some(single) if first != Some(single.as_str()) => {
            spec.insert("podCIDRs".to_owned(), json!([single]));
        }
        None => {
            if let Some(first) = first.map(str::to_owned) {
                spec.insert("podCIDR".to_owned(), Value::from(first));
            }
        }
        Some(_) => {}
    }
}

/// A field that is the first entry of a list; the field wins if they differ.
fn first_of_list(
    object: &mut Object,
    field: &str,
    list: &str,
    entry: fn(&str) -> Value,
    key: &str,
) {
    let single = object.get(field).and_then(Value::as_str).map(str::to_owned);
    let first = object
        .get(list)
        .and_then(|list| list[0][key].as_str())
        .map(str::to_owned);
    match (single, first) {
        (Some(single), first) if first.as_ref() != Some(&single) => {
            object.insert(list.to_owned(), json!([entry(&single)]));
        }
        (None, Some(first)) => {
            object.insert(field.to_owned(), Value::from(first));
        }
        _ => {}
    }
}

/// `stringData` is converted to `data`, and is not kept.
fn secret(secret: &mut Object) {
    let Some(Value::Object(texts)) = secret.remove("stringData") else {
        return;
    };
    let data = secret.entry("data").or_insert_with(|| json!({}));
    for (key, text) in texts {
        data[key] = Value::from(base64::encode(text.as_str().unwrap_or_default().as_bytes()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn core(kind: &'static str) -> GroupVersionKind {
        GroupVersionKind {
            group: "",
            version: "v1",
            kind,
        }
    }

    #[test]
    fn duplicate_fields_agree() {
        let mut pod =
            json!({"spec": {"serviceAccount": "a"}, "status": {"podIPs": [{"ip": "1.2.3.4"}]}});
        round_trip(core("Pod"), &mut pod);
        assert_eq!(pod["spec"]["serviceAccountName"], "a");
        assert_eq!(pod["status"]["podIP"], "1.2.3.4");
        let mut node =
            json!({"spec": {"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.1.0.0/24", "x"]}});
        round_trip(core("Node"), &mut node);
        assert_eq!(node["spec"]["podCIDRs"], json!(["10.0.0.0/24"]));
    }

    #[test]
    fn string_data_of_secrets_becomes_data() {
        let mut secret = json!({"data": {"a": "eA=="}, "stringData": {"a": "abc", "b": ""}});
        round_trip(core("Secret"), &mut secret);
        assert_eq!(secret, json!({"data": {"a": "YWJj", "b": ""}}));
    }
}
