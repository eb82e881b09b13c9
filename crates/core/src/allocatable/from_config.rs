//! The reservations in a node's configuration.

use crate::config::{Enforcement, NodeConfig};
use crate::problem::Problem;
use crate::quantity::Quantity;
use crate::resources::Bytes;
use crate::threshold::Statements;

use super::OverReserved;
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

impl OverReserved {
    /// The error for the author of the configuration; a node does not start with it.
    pub fn problem(&self, config: &NodeConfig) -> Problem {
        let origin = config.kube_reserved.origin.as_ref();
        let origin = origin.or(config.system_reserved.origin.as_ref());
        let path = origin.map_or("kubeReserved", |origin| origin.path.as_str());
        let readable = |quantity: &Quantity| {
            if self.resource.is_in_bytes() {
                Bytes::from_quantity(quantity).readable()
            } else {
                quantity.canonical()
            }
        };
        let detail = format!(
            "reserved {}, which is kube-reserved, system-reserved and the hard eviction threshold \
             together, exceeds the capacity of {}; the node does not start",
            self.resource,
            readable(&self.capacity),
        );
        let position = origin.and_then(|origin| origin.position);
        Problem::invalid(path, &readable(&self.reservation), detail).at(position)
    }
}
