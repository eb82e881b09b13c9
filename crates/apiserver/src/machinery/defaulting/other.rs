//! Defaults of the remaining groups.

use serde_json::{Value, json};

use super::{Object, child, default, text};

const RBAC_GROUP: &str = "rbac.authorization.k8s.io";

pub(super) fn apply(package: &str, name: &str, object: &mut Object) {
    match (package, name) {
        ("scheduling", "PriorityClass") => {
            default(object, "preemptionPolicy", "PreemptLowerPriority")
        }
        ("rbac", "ClusterRoleBinding") | ("rbac", "RoleBinding") => {
            set_if_empty(child(object, "roleRef"), "apiGroup", RBAC_GROUP);
        }
        ("rbac", "Subject") if ["User", "Group"].contains(&text(object, "kind")) => {
            default(object, "apiGroup", RBAC_GROUP);
        }
        ("storage", "StorageClass") => {
            default(object, "reclaimPolicy", "Delete");
            default(object, "volumeBindingMode", "Immediate");
        }
        ("storage", "CSIDriver") => {
            let spec = child(object, "spec");
            default(spec, "attachRequired", true);
            default(spec, "podInfoOnMount", false);
            default(spec, "storageCapacity", false);
            default(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
            default(spec, "volumeLifecycleModes", json!(["Persistent"]));
            default(spec, "requiresRepublish", false);
            default(spec, "seLinuxMount", false);
        }
        ("resource", "ExactDeviceRequest") | ("resource", "DeviceSubRequest") => {
            default(object, "allocationMode", "ExactCount");
            if text(object, "allocationMode") == "ExactCount" {
                default(object, "count", 1);
            }
        }
        ("resource", "DeviceToleration") => default(object, "operator", "Equal"),
        ("resource", "Device") => {
            let mappings = object.get_mut("nodeAllocatableResourceMappings");
            let mappings = mappings.and_then(Value::as_object_mut).into_iter();
            for mapping in mappings
                .flat_map(Object::values_mut)
                .filter_map(Value::as_object_mut)
            {
                default(mapping, "allocationMultiplier", "1");
            }
        }
        ("autoscaling", "HorizontalPodAutoscalerSpec") => default(object, "minReplicas", 1),
        _ => {}
    }
}

/// For fields that are printed even when empty.
fn set_if_empty(object: &mut Object, field: &str, value: &str) {
    if text(object, field).is_empty() {
        object.insert(field.to_owned(), Value::from(value));
    }
}
