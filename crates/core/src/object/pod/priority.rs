//! Priority and what it protects from.

use super::view::PodView;

/// From here up a pod is critical: never evicted for node pressure, always admitted.
pub const SYSTEM_CRITICAL_PRIORITY: i32 = 2_000_000_000;
/// The built-in class above all others.
pub const SYSTEM_NODE_CRITICAL: &str = "system-node-critical";
/// The built-in class below it.
pub const SYSTEM_CLUSTER_CRITICAL: &str = "system-cluster-critical";

impl PodView {
    /// Whether node-pressure eviction passes it over.
    pub fn is_critical(&self) -> bool {
        let is_high = self.priority.is_some_and(|p| p >= SYSTEM_CRITICAL_PRIORITY);
        self.is_static || self.is_mirror || is_high
    }

    /// Whether it is critical and of the class `system-node-critical`.
    pub fn is_node_critical(&self) -> bool {
        self.is_critical() && self.priority_class_name == SYSTEM_NODE_CRITICAL
    }
}
