//! Which quotas count a pod.

use crate::object::pod::QosClass;
use crate::object::resource_quota::{QuotaView, Scope, ScopeOperator};
use crate::object::resource_rules::{COMPUTE, REQUESTS_PREFIX};
use crate::resources::ResourceName;

use super::charge::{DEVICE_CLASS_PREFIX, POD_OBJECTS, PodCharge};

/// The resources under which pods themselves are counted.
const COUNTS: [&str; 2] = [POD_OBJECTS, "pods"];

impl PodCharge {
    /// Whether the quota limits something that pods use, and counts this one.
    pub fn is_counted_by(&self, quota: &QuotaView) -> bool {
        quota.hard.names().any(is_charged_to_pods)
            && quota.scopes.iter().all(|scope| self.meets(scope))
    }

    fn meets(&self, scope: &Scope) -> bool {
        let is_best_effort = || self.pod.qos_class() == QosClass::BestEffort;
        match scope.name.as_str() {
            "Terminating" => self.is_terminating,
            "NotTerminating" => !self.is_terminating,
            "BestEffort" => is_best_effort(),
            "NotBestEffort" => !is_best_effort(),
            "PriorityClass" => has_priority_class(&self.pod.priority_class_name, scope),
            "CrossNamespacePodAffinity" => self.uses_cross_namespace_affinity,
            // Such as `VolumeAttributesClass`, which only claims can meet.
            _ => false,
        }
    }
}

/// Whether quotas count the resource for pods.
pub fn is_charged_to_pods(name: &ResourceName) -> bool {
    let is_named = COUNTS.contains(&name.as_str()) || COMPUTE.contains(&name.as_str());
    if is_named || name.huge_page_size().is_some() {
        return true;
    }
    let Some(requested) = name.as_str().strip_prefix(REQUESTS_PREFIX) else {
        return false;
    };
    !name.is_native()
        || requested.starts_with(DEVICE_CLASS_PREFIX)
        || ResourceName::new(requested).huge_page_size().is_some()
}

fn has_priority_class(class: &str, scope: &Scope) -> bool {
    let is_listed = scope.values.iter().any(|value| value == class);
    match scope.operator {
        ScopeOperator::Exists => !class.is_empty(),
        ScopeOperator::DoesNotExist => class.is_empty(),
        ScopeOperator::In => !class.is_empty() && is_listed,
        ScopeOperator::NotIn => class.is_empty() || !is_listed,
    }
}
