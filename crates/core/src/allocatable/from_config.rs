//! What a node's configuration keeps from pods.

use crate::config::{Enforcement, NodeConfig};
use crate::threshold::Statements;

use super::compute::Settings;
use super::machine::PodCount;
use super::reserved::replace_cpu;

impl Settings {
    /// The settings of a configuration. Of one that has problems, the parts that can be read.
    pub fn from_config(config: &NodeConfig) -> Settings {
        let mut kube_reserved = config.kube_reserved.value.clone();
        let mut system_reserved = config.system_reserved.value.clone();
        let cpus = u32::try_from(config.reserved_system_cpus.len()).unwrap_or(u32::MAX);
        replace_cpu(&mut kube_reserved, &mut system_reserved, cpus);
        let hard_eviction = if *config.experimental_allocatable_ignore_eviction {
            Vec::new()
        } else {
            let hard = config.eviction_hard.value.clone();
            let statements = Statements {
                hard,
                ..Statements::default()
            };
            statements.readable()
        };
        Settings {
            kube_reserved,
            system_reserved,
            hard_eviction,
            pod_count: PodCount {
                max_pods: i64::from(*config.max_pods),
                pods_per_core: i64::from(*config.pods_per_core),
            },
            is_enforced_on_pods: *config.cgroups_per_qos
                && config.enforce_node_allocatable.contains(&Enforcement::Pods),
        }
    }
}
