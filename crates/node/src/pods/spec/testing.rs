//! Pods and nodes for tests of this module.

use std::path::PathBuf;

use k8s_openapi::api::core::v1::Pod;
use plimsoll_core::cgroup::container::ContainerSettings;
use plimsoll_core::cgroup::{CgroupName, Driver, Host, HugePageSize, MemoryQos, Version};
use plimsoll_core::resources::{Bytes, ResourceName};
use plimsoll_runtime::wire::{IdMapping, NamespaceMode, UserNamespace};
use serde_json::{Value, json};

use super::NodeFacts;

/// The users of the node.
pub(crate) fn of_node() -> UserNamespace {
    UserNamespace {
        mode: NamespaceMode::Node.into(),
        ..UserNamespace::default()
    }
}

/// Users of a pod's own.
pub(crate) fn own_users() -> UserNamespace {
    let ids = vec![IdMapping {
        host_id: 65_536,
        container_id: 0,
        length: 65_536,
    }];
    UserNamespace {
        mode: NamespaceMode::Pod.into(),
        uids: ids.clone(),
        gids: ids,
    }
}

/// A pod `ns/pod` with the spec; one without containers gets none.
pub(crate) fn pod_with(mut spec: Value) -> Pod {
    if spec["containers"].is_null() {
        spec["containers"] = json!([]);
    }
    let meta = json!({"name": "pod", "namespace": "ns", "uid": "uid-1"});
    serde_json::from_value(json!({"metadata": meta, "spec": spec})).unwrap()
}

pub(crate) fn container_settings() -> ContainerSettings {
    ContainerSettings {
        host: Host {
            version: Version::V1,
            huge_page_sizes: vec![HugePageSize(Bytes(2 << 20))],
            has_hugetlb: true,
        },
        machine_memory: Bytes(32 << 30),
        enforces_cpu_limits: true,
        cpu_period_micros: 100_000,
        single_process_oom_kill: true,
        memory_qos: MemoryQos::Off,
        memory_throttling_factor: 0.9,
        allocatable_memory: Bytes(30 << 30),
        page_size: Bytes(4096),
        swap: None,
    }
}

/// A node with 4 CPUs and 8Gi to give, and its files in the directory.
pub(crate) fn node(root_dir: impl Into<PathBuf>) -> NodeFacts {
    let allocatable = [("cpu", "4"), ("memory", "8Gi")];
    NodeFacts {
        ips: vec!["192.0.2.1".parse().unwrap()],
        allocatable: allocatable
            .into_iter()
            .map(|(name, amount)| (ResourceName::new(name), amount.parse().unwrap()))
            .collect(),
        cluster_dns: vec!["10.0.0.10".parse().unwrap()],
        cluster_domain: "cluster.local".to_owned(),
        root_dir: root_dir.into(),
        pod_logs_dir: "/var/log/pods".into(),
        hosts_file: "/etc/hosts".into(),
        seccomp_default: false,
        supports_recursive_read_only: true,
        has_selinux: false,
        masked_paths: Vec::new(),
        kubepods: CgroupName::kubepods(&CgroupName::ROOT),
        cgroup_driver: Driver::Cgroupfs,
        container_settings: container_settings(),
    }
}
