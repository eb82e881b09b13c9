//! Defaults of the core group, pods apart.

use k8s_openapi::api::core::v1::LimitRange;
use plimsoll_core::object::limit_range::LimitRangeView;
use plimsoll_core::quantity::Quantity;
use serde_json::{Value, json};

use crate::machinery::schema::{Shape, Struct};

use super::{Object, child, default, text};

/// Amounts are kept in thousandths; smaller parts are rounded up.
const MILLI: i32 = -3;

pub(super) fn of(name: &str) -> Option<fn(&mut Object)> {
    Some(match name {
        "Secret" => |secret| default(secret, "type", "Opaque"),
        "Namespace" => label_namespace,
        "NamespaceStatus" => |status| default(status, "phase", "Active"),
        "NodeStatus" => |status| {
            if let Some(capacity) = status.get("capacity").cloned() {
                default(status, "allocatable", capacity);
            }
        },
        "LimitRange" => limit_range,
        "ReplicationController" => replication_controller,
        "Service" => service,
        "PersistentVolume" => |volume| {
            default(child(volume, "status"), "phase", "Pending");
            let spec = child(volume, "spec");
            default(spec, "persistentVolumeReclaimPolicy", "Retain");
            default(spec, "volumeMode", "Filesystem");
        },
        "PersistentVolumeClaim" => |claim| default(child(claim, "status"), "phase", "Pending"),
        "PersistentVolumeClaimSpec" => |spec| default(spec, "volumeMode", "Filesystem"),
        "EndpointPort" => |port| default(port, "protocol", "TCP"),
        _ => return None,
    })
}

/// The fields of a struct that are lists of resources.
pub(super) fn resource_lists(fields: &Struct) -> Vec<&'static str> {
    let is_list = |shape: &Shape| match shape {
        Shape::Map(of) => matches!(of.shape, Shape::Quantity),
        _ => false,
    };
    let lists = fields
        .fields
        .iter()
        .filter(|field| is_list(&field.ty.shape));
    lists.map(|field| field.name).collect()
}

/// Rounds the amounts of a resource list.
pub(super) fn round_amounts(object: &mut Object, list: &str) {
    let amounts = object.get_mut(list).and_then(Value::as_object_mut);
    for amount in amounts.into_iter().flat_map(Object::values_mut) {
        round(amount);
    }
}

fn round(amount: &mut Value) {
    let quantity = amount
        .as_str()
        .and_then(|text| text.parse::<Quantity>().ok());
    if let Some(mut quantity) = quantity {
        quantity.round_up(MILLI);
        *amount = Value::from(quantity.to_string());
    }
}

/// A namespace without a name gets its label once it has one.
fn label_namespace(object: &mut Object) {
    let metadata = child(object, "metadata");
    let name = text(metadata, "name").to_owned();
    if !name.is_empty() {
        let labels = child(metadata, "labels");
        labels.insert("kubernetes.io/metadata.name".to_owned(), Value::from(name));
    }
}

fn limit_range(object: &mut Object) {
    let value = Value::Object(object.clone());
    let Ok(mut typed) = serde_json::from_value::<LimitRange>(value) else {
        return;
    };
    let Ok(mut view) = LimitRangeView::from_api(&typed) else {
        return;
    };
    view.apply_defaults();
    view.write_to(&mut typed);
    if let Ok(spec) = serde_json::to_value(typed.spec) {
        object.insert("spec".to_owned(), spec);
    }
}

/// The template's labels are the default of the selector and the labels.
fn replication_controller(object: &mut Object) {
    let spec = child(object, "spec");
    default(spec, "replicas", 1);
    let labels = spec
        .get("template")
        .map_or(&Value::Null, |template| &template["metadata"]["labels"]);
    if let Value::Object(labels) = labels.clone() {
        default(spec, "selector", labels.clone());
        default(child(object, "metadata"), "labels", labels);
    }
}

fn service(object: &mut Object) {
    let spec = child(object, "spec");
    default(spec, "sessionAffinity", "None");
    match text(spec, "sessionAffinity") {
        "None" => {
            spec.remove("sessionAffinityConfig");
        }
        "ClientIP" => {
            default(
                child(child(spec, "sessionAffinityConfig"), "clientIP"),
                "timeoutSeconds",
                10800,
            );
        }
        _ => {}
    }
    default(spec, "type", "ClusterIP");
    for port in spec
        .get_mut("ports")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        let Some(port) = port.as_object_mut() else {
            continue;
        };
        default(port, "protocol", "TCP");
        let number = port.get("port").cloned().unwrap_or(json!(0));
        let target = port.entry("targetPort").or_insert(Value::Null);
        if target.is_null() || *target == json!(0) || *target == json!("") {
            *target = number;
        }
    }
    service_traffic(spec);
    if text(child(object, "spec"), "type") == "LoadBalancer" {
        let ingress = child(child(object, "status"), "loadBalancer").get_mut("ingress");
        for entry in ingress.and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(entry) = entry
                .as_object_mut()
                .filter(|entry| !text(entry, "ip").is_empty())
            {
                default(entry, "ipMode", "VIP");
            }
        }
    }
}

fn service_traffic(spec: &mut Object) {
    let service_type = text(spec, "type").to_owned();
    let has_external_ips = spec.contains_key("externalIPs");
    let is_reached_from_outside = match service_type.as_str() {
        "LoadBalancer" | "NodePort" => true,
        "ClusterIP" => has_external_ips,
        _ => false,
    };
    if is_reached_from_outside {
        default(spec, "externalTrafficPolicy", "Cluster");
    }
    if ["NodePort", "LoadBalancer", "ClusterIP"].contains(&service_type.as_str()) {
        default(spec, "internalTrafficPolicy", "Cluster");
    }
    if service_type == "LoadBalancer" {
        default(spec, "allocateLoadBalancerNodePorts", true);
    }
}
