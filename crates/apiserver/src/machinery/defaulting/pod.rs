//! Defaults of pods and their parts.

use k8s_openapi::api::core::v1::Pod;
use plimsoll_core::admission::draft::PodDraft;
use plimsoll_core::admission::pod_defaults;
use serde_json::{Value, json};

use super::image::default_pull_policy;
use super::{Object, child, default, text};

pub(super) fn of(name: &str) -> Option<fn(&mut Object)> {
    Some(match name {
        "Pod" => pod,
        "PodSpec" => |spec| {
            default(spec, "dnsPolicy", "ClusterFirst");
            default(spec, "restartPolicy", "Always");
            default(spec, "securityContext", Object::new());
            default(spec, "terminationGracePeriodSeconds", 30);
            default(spec, "schedulerName", "default-scheduler");
        },
        "Container" | "EphemeralContainer" => |container| {
            let policy = default_pull_policy(text(container, "image"));
            default(container, "imagePullPolicy", policy);
            default(container, "terminationMessagePath", "/dev/termination-log");
            default(container, "terminationMessagePolicy", "File");
        },
        "ContainerPort" => |port| default(port, "protocol", "TCP"),
        "FileKeySelector" => |selector| default(selector, "optional", false),
        "Probe" => |probe| {
            default(probe, "timeoutSeconds", 1);
            default(probe, "periodSeconds", 10);
            default(probe, "successThreshold", 1);
            default(probe, "failureThreshold", 3);
        },
        "GRPCAction" => |action| {
            if action.get("service").is_none_or(Value::is_null) {
                action.insert("service".to_owned(), Value::from(""));
            }
        },
        "HTTPGetAction" => |action| {
            default(action, "path", "/");
            default(action, "scheme", "HTTP");
        },
        "ObjectFieldSelector" => |selector| default(selector, "apiVersion", "v1"),
        _ => return None,
    })
}

/// The defaults of pods that templates of pods do not have.
fn pod(object: &mut Object) {
    if has_resources(child(object, "spec")) {
        default_resources(object);
    }
    let spec = child(object, "spec");
    default(spec, "enableServiceLinks", true);
    if spec.get("hostNetwork") == Some(&Value::Bool(true)) {
        default_host_ports(spec);
    }
}

/// Whether core's resource defaults apply to the pod.
fn has_resources(spec: &Object) -> bool {
    let lists =
        ["containers", "initContainers"].map(|field| spec.get(field).and_then(Value::as_array));
    let mut containers = lists.into_iter().flatten().flatten();
    spec.contains_key("resources")
        || containers.any(|container| container["resources"]["limits"].is_object())
}

fn default_resources(object: &mut Object) {
    // A pod that does not decode has been rejected before.
    let Ok(mut pod) = serde_json::from_value::<Pod>(Value::Object(object.clone())) else {
        return;
    };
    let Ok(mut draft) = PodDraft::from_api(&pod) else {
        return;
    };
    pod_defaults::apply(&mut draft.pod);
    draft.write_to(&mut pod);
    let Some(typed) = pod.spec else { return };
    let spec = child(object, "spec");
    write_containers(spec, "containers", Some(&typed.containers));
    write_containers(spec, "initContainers", typed.init_containers.as_ref());
    write(spec, "resources", &typed.resources);
    write(spec, "overhead", &typed.overhead);
}

fn write_containers(
    spec: &mut Object,
    field: &str,
    typed: Option<&Vec<k8s_openapi::api::core::v1::Container>>,
) {
    let containers = spec
        .get_mut(field)
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten();
    for (container, typed) in containers.zip(typed.into_iter().flatten()) {
        if let Some(container) = container.as_object_mut() {
            write(container, "resources", &typed.resources);
        }
    }
}

fn write(object: &mut Object, field: &str, value: &Option<impl serde::Serialize>) {
    if let Some(value) = value
        .as_ref()
        .and_then(|value| serde_json::to_value(value).ok())
    {
        object.insert(field.to_owned(), value);
    }
}

/// On the node's network a port is the node's port.
fn default_host_ports(spec: &mut Object) {
    for field in ["containers", "initContainers"] {
        let containers = spec
            .get_mut(field)
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten();
        let ports = containers.filter_map(|container| container.get_mut("ports")?.as_array_mut());
        for port in ports.flatten().filter_map(Value::as_object_mut) {
            let number = port.get("containerPort").cloned().unwrap_or(json!(0));
            if number != json!(0) {
                default(port, "hostPort", number);
            }
        }
    }
}
