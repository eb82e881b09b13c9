//! Stands in for defaulting, admission and the strategies of kinds, as far as the recorded patches
//! and applies need them.

use plimsoll_apiserver::machinery::schema::decode::Source;
use plimsoll_apiserver::machinery::schema::{StructId, decode, schema};
use serde_json::{Value, json};

/// The struct of an object.
pub(super) fn struct_of(object: &Value) -> StructId {
    let text = |key: &str| object[key].as_str().expect("an object has a type");
    schema()
        .kind(text("apiVersion"), text("kind"))
        .expect("a known kind")
}

/// The object as it is after decoding a body: typed and defaulted.
pub(super) fn read(object: &Value) -> Value {
    let mut object = decode(struct_of(object), object, Source::Text)
        .expect("recorded bodies fit their types")
        .value;
    default(&mut object);
    object
}

pub(super) fn default(object: &mut Value) {
    match object["kind"].as_str() {
        Some("Pod") => {
            default_pod_spec(&mut object["spec"]);
            or(&mut object["spec"], "enableServiceLinks", json!(true));
            for container in items(&mut object["spec"], "containers") {
                copy_missing(&mut container["resources"], "limits", "requests");
            }
            agree_on(
                &mut object["status"],
                "podIP",
                "podIPs",
                |ip| json!({"ip": ip}),
            );
        }
        Some("Deployment") => {
            let spec = &mut object["spec"];
            or(spec, "replicas", json!(1));
            or(spec, "revisionHistoryLimit", json!(10));
            or(spec, "progressDeadlineSeconds", json!(600));
            or(&mut spec["strategy"], "type", json!("RollingUpdate"));
            if spec["strategy"]["type"] == "RollingUpdate" {
                or(&mut spec["strategy"], "rollingUpdate", json!({}));
                let rolling = &mut spec["strategy"]["rollingUpdate"];
                or(rolling, "maxSurge", json!("25%"));
                or(rolling, "maxUnavailable", json!("25%"));
            }
            default_pod_spec(&mut spec["template"]["spec"]);
        }
        Some("DaemonSet") => {
            let spec = &mut object["spec"];
            or(spec, "revisionHistoryLimit", json!(10));
            or(&mut spec["updateStrategy"], "type", json!("RollingUpdate"));
            default_pod_spec(&mut spec["template"]["spec"]);
        }
        Some("Node") => {
            agree_on(&mut object["spec"], "podCIDR", "podCIDRs", |cidr| {
                json!(cidr)
            });
            let status = &mut object["status"];
            if let Some(capacity) = status.get("capacity").cloned() {
                or(status, "allocatable", capacity);
            }
        }
        Some("LimitRange") => {
            for limit in
                items(&mut object["spec"], "limits").filter(|limit| limit["type"] == "Container")
            {
                copy_missing(limit, "max", "default");
                copy_missing(limit, "default", "defaultRequest");
                copy_missing(limit, "min", "defaultRequest");
            }
        }
        _ => {}
    }
}

/// A list begins with what the old single field says, or is that alone.
fn agree_on(object: &mut Value, single: &str, list: &str, item: fn(&str) -> Value) {
    let Some(value) = object.get(single).and_then(Value::as_str) else {
        return;
    };
    let first = item(value);
    if object.get(list).and_then(|items| items.get(0)) != Some(&first) {
        object[list] = json!([first]);
    }
}

fn default_pod_spec(spec: &mut Value) {
    or(spec, "dnsPolicy", json!("ClusterFirst"));
    or(spec, "restartPolicy", json!("Always"));
    or(spec, "schedulerName", json!("default-scheduler"));
    or(spec, "securityContext", json!({}));
    or(spec, "terminationGracePeriodSeconds", json!(30));
    for list in ["containers", "initContainers"] {
        for container in items(spec, list) {
            let image = container["image"].as_str().unwrap_or_default();
            let policy = if image.contains(':') && !image.ends_with(":latest") {
                "IfNotPresent"
            } else {
                "Always"
            };
            or(container, "imagePullPolicy", json!(policy));
            or(
                container,
                "terminationMessagePath",
                json!("/dev/termination-log"),
            );
            or(container, "terminationMessagePolicy", json!("File"));
            for port in items(container, "ports") {
                or(port, "protocol", json!("TCP"));
            }
            for variable in items(container, "env") {
                if let Some(reference) = variable.pointer_mut("/valueFrom/fieldRef") {
                    or(reference, "apiVersion", json!("v1"));
                }
            }
        }
    }
    for volume in items(spec, "volumes") {
        if let Some(source) = volume.get_mut("configMap") {
            or(source, "defaultMode", json!(420));
        }
    }
}

/// The items of a list that may be missing.
fn items<'a>(object: &'a mut Value, key: &str) -> impl Iterator<Item = &'a mut Value> {
    let list = object.get_mut(key).and_then(Value::as_array_mut);
    list.into_iter().flatten()
}

/// Sets a member that is missing or empty.
fn or(object: &mut Value, key: &str, value: Value) {
    let member = &mut object[key];
    if member.is_null() || *member == "" {
        *member = value;
    }
}

/// Gives `to` the entries of `from` that it does not have.
fn copy_missing(object: &mut Value, from: &str, to: &str) {
    let Some(entries) = object.get(from).and_then(Value::as_object).cloned() else {
        return;
    };
    for (key, value) in entries {
        or(&mut object[to], &key, value);
    }
}

/// What admission and the kind's strategy do to a new object.
pub(super) fn admit_create(object: &mut Value) {
    match object["kind"].as_str() {
        Some("Pod") => {
            object["metadata"]["generation"] = json!(1);
            let spec = &mut object["spec"];
            or(spec, "priority", json!(0));
            or(spec, "preemptionPolicy", json!("PreemptLowerPriority"));
            spec["tolerations"] = ["not-ready", "unreachable"]
                .map(|what| {
                    json!({
                        "key": format!("node.kubernetes.io/{what}"),
                        "operator": "Exists",
                        "effect": "NoExecute",
                        "tolerationSeconds": 300,
                    })
                })
                .as_slice()
                .into();
            let is_best_effort = spec["containers"]
                .as_array()
                .into_iter()
                .flatten()
                .all(|container| container["resources"]["requests"].is_null());
            let qos = if is_best_effort {
                "BestEffort"
            } else {
                "Burstable"
            };
            let is_gated = spec["schedulingGates"].is_array();
            object["status"] = json!({"phase": "Pending", "qosClass": qos});
            if is_gated {
                object["status"]["conditions"] = json!([{
                    "type": "PodScheduled",
                    "status": "False",
                    "reason": "SchedulingGated",
                    "message": "Scheduling is blocked due to non-empty scheduling gates",
                }]);
            }
        }
        Some("Deployment") => {
            object["metadata"]["generation"] = json!(1);
            object["status"] = json!({});
        }
        Some("Node") => {
            let taint = json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"});
            object["spec"]["taints"] = json!([taint]);
        }
        _ => {}
    }
}

/// What the kind's strategy keeps of the old object.
pub(super) fn admit_update(object: &mut Value, old: &Value, subresource: &str) {
    let kept: &[&str] = match (subresource, object["kind"].as_str()) {
        ("", Some("Pod" | "Node" | "Deployment" | "DaemonSet" | "ResourceQuota")) => &["status"],
        ("status", _) => &["spec"],
        _ => &[],
    };
    for key in kept {
        keep(object, old, key);
    }
    for key in ["generation", "uid", "resourceVersion", "creationTimestamp"] {
        keep(&mut object["metadata"], &old["metadata"], key);
    }
    let counts = matches!(
        object["kind"].as_str(),
        Some("Pod" | "Deployment" | "DaemonSet")
    );
    // Annotations of a Deployment count too.
    let has_changed = object["spec"] != old["spec"]
        || (object["kind"] == "Deployment"
            && object["metadata"]["annotations"] != old["metadata"]["annotations"]);
    if counts && subresource.is_empty() && has_changed {
        let generation = old["metadata"]["generation"].as_i64().unwrap_or(0);
        object["metadata"]["generation"] = json!(generation + 1);
    }
    let annotation = "deprecated.daemonset.template.generation";
    if object["kind"] == "DaemonSet" && object["spec"]["template"] != old["spec"]["template"] {
        let before: i64 = old["metadata"]["annotations"][annotation]
            .as_str()
            .map_or(0, |text| text.parse().expect("a number"));
        object["metadata"]["annotations"][annotation] = json!((before + 1).to_string());
    }
}

/// Takes a member over from the old object, be it absent.
fn keep(object: &mut Value, old: &Value, key: &str) {
    match old.get(key) {
        Some(value) => object[key] = value.clone(),
        None => {
            object.as_object_mut().expect("an object").remove(key);
        }
    }
}
