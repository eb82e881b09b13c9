//! The part of a node's configuration that concerns cgroups.

use plimsoll_core::allocatable::Settings;
use plimsoll_core::cgroup::container::{ContainerSettings, Swap};
use plimsoll_core::cgroup::node::Enforced;
use plimsoll_core::cgroup::pod::PodSettings;
use plimsoll_core::cgroup::{
    CgroupName, Driver, Host, MemoryQos, ReservedCgroup, TierSettings, Version,
};
use plimsoll_core::config::{Enforcement, MemoryReservationPolicy, NodeConfig};
use plimsoll_core::resources::{Bytes, ResourceName};

/// For the cgroups of pods.
pub fn pod_settings(config: &NodeConfig, version: Version) -> PodSettings {
    PodSettings {
        enforces_cpu_limits: *config.cpu_cfs_quota,
        cpu_period_micros: period_micros(config),
        pids_limit: config.pod_pids_limit.map_or(-1, |limit| limit.0),
        memory_qos: memory_qos(config, version),
    }
}

/// For the tiers. `allocatable_memory` is what all pods may use together.
pub fn tier_settings(config: &NodeConfig, host: &Host, allocatable_memory: Bytes) -> TierSettings {
    let percent = config.qos_reserved.get(&ResourceName::MEMORY);
    let is_reserved = config.is_alpha_gate_on("QOSReserved");
    TierSettings {
        huge_page_sizes: host.huge_page_sizes.clone(),
        memory_qos: memory_qos(config, host.version),
        reserved_memory_percent: percent
            .filter(|_| is_reserved)
            .map(|percent| i64::from(*percent)),
        allocatable_memory,
    }
}

/// For containers, on a machine with that much memory. `swap` is how much there is, where the
/// kernel can limit it.
pub fn container_settings(
    config: &NodeConfig,
    host: &Host,
    machine_memory: Bytes,
    allocatable_memory: Bytes,
    swap: Option<Bytes>,
) -> ContainerSettings {
    let page_size = i64::try_from(rustix::param::page_size()).unwrap_or(4096);
    ContainerSettings {
        host: host.clone(),
        machine_memory,
        enforces_cpu_limits: *config.cpu_cfs_quota,
        cpu_period_micros: period_micros(config),
        // cgroup v1 cannot kill a whole container.
        single_process_oom_kill: config
            .single_process_oom_kill
            .unwrap_or(host.version == Version::V1),
        memory_qos: memory_qos(config, host.version),
        memory_throttling_factor: *config.memory_throttling_factor,
        allocatable_memory,
        page_size: Bytes(page_size),
        swap: swap.map(|capacity| Swap {
            behavior: *config.swap_behavior,
            capacity,
        }),
    }
}

/// The operator's cgroups that reservations are enforced on, with the setting that says so.
pub fn reserved_cgroups(config: &NodeConfig, driver: Driver) -> Vec<(Enforcement, ReservedCgroup)> {
    let reservations = Settings::from_config(config);
    // The order in which upstream enforces them.
    let kinds = [
        Enforcement::SystemReserved,
        Enforcement::KubeReserved,
        Enforcement::SystemReservedCompressible,
        Enforcement::KubeReservedCompressible,
    ];
    let enforced = |kind: &Enforcement| config.enforce_node_allocatable.contains(kind);
    let cgroup = |kind: Enforcement| {
        let (name, reservation) = match kind {
            Enforcement::SystemReserved | Enforcement::SystemReservedCompressible => (
                &config.system_reserved_cgroup,
                &reservations.system_reserved,
            ),
            _ => (&config.kube_reserved_cgroup, &reservations.kube_reserved),
        };
        let enforced = match kind {
            Enforcement::SystemReserved | Enforcement::KubeReserved => Enforced::All,
            _ => Enforced::Compressible,
        };
        let reserved = ReservedCgroup {
            name: CgroupName::parse(name, driver),
            reservation: reservation.clone(),
            enforced,
        };
        (kind, reserved)
    };
    kinds.into_iter().filter(enforced).map(cgroup).collect()
}

/// The feature is an alpha gate, and for cgroup v2 only.
fn memory_qos(config: &NodeConfig, version: Version) -> MemoryQos {
    match *config.memory_reservation_policy {
        _ if version == Version::V1 || !config.is_alpha_gate_on("MemoryQoS") => MemoryQos::Off,
        MemoryReservationPolicy::TieredReservation => MemoryQos::TieredReservation,
        MemoryReservationPolicy::None => MemoryQos::NoReservation,
    }
}

fn period_micros(config: &NodeConfig) -> u64 {
    let nanos = config.cpu_cfs_quota_period.as_nanos();
    u64::try_from(nanos / 1000).unwrap_or(0)
}
