//! Defaults of the remaining groups.

use serde_json::{Value, json};

use super::{Object, child, default, text};

const RBAC_GROUP: &str = "rbac.authorization.k8s.io";

pub(super) fn of(package: &str, name: &str) -> Option<fn(&mut Object)> {
    Some(match (package, name) {
        ("scheduling", "PriorityClass") => {
            |class| default(class, "preemptionPolicy", "PreemptLowerPriority")
        }
        ("rbac", "ClusterRoleBinding" | "RoleBinding") => {
            |binding| set_if_empty(child(binding, "roleRef"), "apiGroup", RBAC_GROUP)
        }
        ("rbac", "Subject") => |subject| {
            if ["User", "Group"].contains(&text(subject, "kind")) {
                default(subject, "apiGroup", RBAC_GROUP);
            }
        },
        ("storage", "StorageClass") => |class| {
            default(class, "reclaimPolicy", "Delete");
            default(class, "volumeBindingMode", "Immediate");
        },
        ("storage", "CSIDriver") => |driver| {
            let spec = child(driver, "spec");
            default(spec, "attachRequired", true);
            default(spec, "podInfoOnMount", false);
            default(spec, "storageCapacity", false);
            default(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
            default(spec, "volumeLifecycleModes", json!(["Persistent"]));
            default(spec, "requiresRepublish", false);
            default(spec, "seLinuxMount", false);
        },
        ("resource", "ExactDeviceRequest" | "DeviceSubRequest") => |request| {
            default(request, "allocationMode", "ExactCount");
            if text(request, "allocationMode") == "ExactCount" {
                default(request, "count", 1);
            }
        },
        ("resource", "DeviceToleration") => |toleration| default(toleration, "operator", "Equal"),
        ("resource", "Device") => |device| {
            let mappings = device.get_mut("nodeAllocatableResourceMappings");
            let mappings = mappings.and_then(Value::as_object_mut).into_iter();
            for mapping in mappings
                .flat_map(Object::values_mut)
                .filter_map(Value::as_object_mut)
            {
                default(mapping, "allocationMultiplier", "1");
            }
        },
        ("autoscaling", "HorizontalPodAutoscalerSpec") => |spec| default(spec, "minReplicas", 1),
        _ => return None,
    })
}

/// For fields that are printed even when empty.
fn set_if_empty(object: &mut Object, field: &str, value: &str) {
    if text(object, field).is_empty() {
        object.insert(field.to_owned(), Value::from(value));
    }
}
